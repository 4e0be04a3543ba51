package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// ErrRefused is matched by the errors of addresses that may not be fetched.
var ErrRefused = errors.New("the address may not be fetched")

// Error is why a download failed.
type Error struct {
	// Message is for the caller: a lower-case phrase that names no host, address or path.
	Message string
	// Err is the detail for the log, if there is any. It may name hosts, never an address with its query.
	Err error
}

// Error gives the message and the detail: it is for the log.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

// Unwrap gives the detail.
func (e *Error) Unwrap() error { return e.Err }

// refused is the error of an address that did not even get as far as the dialer.
func refused(message string) error { return &Error{Message: message, Err: ErrRefused} }

// failure tells the caller of an error of a download; otherwise is said of one that means nothing more to him.
func failure(err error, otherwise string) error {
	var (
		known       *Error
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		connection  *net.OpError
	)
	message := otherwise
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ErrRefused):
		message = ErrRefused.Error()
	case errors.Is(err, context.Canceled):
		message = "the download was cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		message = "the server took too long"
	case errors.As(err, &certificate):
		message = "the certificate of the server is not valid"
	case errors.As(err, &connection) && connection.Op == "dial":
		message = "the server could not be reached"
	}
	return &Error{Message: message, Err: err}
}

// Interface guards
var _ error = (*Error)(nil)
