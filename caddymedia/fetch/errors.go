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

// Error is a failed download.
type Error struct {
	// Message is for the caller: a lower-case phrase that names no host, address or path.
	Message string
	// Err is the detail for the log, if any. It may name hosts, never an address with its query.
	Err error
}

// Error returns the message and the detail, for the log.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

// Unwrap returns the detail.
func (e *Error) Unwrap() error { return e.Err }

// refused returns the error for an address that is refused before dialling.
func refused(message string) error { return &Error{Message: message, Err: ErrRefused} }

// failure returns err with a message for the caller. otherwise is the message for unknown errors.
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
