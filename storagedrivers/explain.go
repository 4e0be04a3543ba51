package storagedrivers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Explain returns one or two sentences about an error of a storage on the driver: its meaning and
// the remedy. The operation that failed is that of the [OpError] in err. Explain returns "" for an
// error of no known kind.
func (driver Description) Explain(err error) string {
	if errors.Is(err, ErrClosed) {
		return "The configuration was changed meanwhile. Try again."
	}
	if cause := CauseOf(err); cause != "" {
		return string(cause)
	}
	for _, f := range failures {
		if f.is(err) {
			return f.text
		}
	}
	var op string
	if failed, ok := errors.AsType[*OpError](err); ok {
		op = failed.Op
	}
	onRoot := op == "check" || op == "list"
	switch {
	case onRoot && isAny(ErrInvalidKey, syscall.ENOTDIR)(err):
		return string(NotAFolder)
	case errors.Is(err, fs.ErrPermission):
		return denied(driver, op)
	case onRoot && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("The %s does not exist and cannot be created from here. Create it, or correct its name.", driver.Noun)
	case errors.Is(err, ErrUnavailable):
		return "The storage cannot be reached, or is too busy. Try again in a moment. If that does not help, check its own log."
	}
	return ""
}

// Explain returns [Description.Explain] of the driver of the storage.
func (s *Storage) Explain(err error) string { return s.opts.Description.Explain(err) }

// failures have the same explanation for all drivers. The first match counts.
var failures = []struct {
	is   func(error) bool
	text string
}{
	{isA[*net.DNSError], "The name of the host is unknown. Check its spelling, and that this machine can resolve names (DNS)."},
	{isAny(syscall.ECONNREFUSED), "The host refused the connection: nothing listens there. Check the address and the port, and that the service is running."},
	{isAny(syscall.EHOSTUNREACH, syscall.ENETUNREACH), "There is no route to the host. Check the address, the network and the firewalls."},
	{isAny(ErrInUse), "Another connection is writing this object. Try again in a moment."},
	{certificate, "The certificate of the host is not trusted. Check the host name. If the certificate is from an authority of your own, this machine must trust that authority."},
	{isA[tls.RecordHeaderError], string(NoTLS)},
	{isAny(ErrNoSpace), "The storage is full or over its quota. Free space or raise the quota."},
	{isAny(ErrSizeMismatch), "The stored object is shorter or longer than the sent one. A proxy on the way may have cut it off."},
	{silent, "The host does not answer, or is a server of another kind. Check the address, the port and the firewalls."},
	{isAny(context.Canceled), "The operation was aborted."},
	{isAny(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE), "The host ended the connection. Check that the port is the " +
		"one for this kind of storage, and that the host does not refuse this machine."},
}

// denied returns a message about the missing permission for an operation.
func denied(driver Description, op string) string {
	right := "use the " + driver.Noun
	switch op {
	case "put", "stage", "commit", "append", "flush", "adopt", "copy":
		right = "store objects there"
	case "list", "open", "stat":
		right = "read objects there"
	case "delete", "sweep":
		right = "delete objects there"
	}
	if driver.Local {
		return fmt.Sprintf("The user that Caddy runs as may not %s. Change the owner or the permissions of the %s, "+
			"or choose another one.", right, driver.Noun)
	}
	return fmt.Sprintf("The login succeeded but may not %s. Grant it that permission, or use another login.", right)
}

func isAny(wanted ...error) func(error) bool {
	return func(err error) bool {
		for _, want := range wanted {
			if errors.Is(err, want) {
				return true
			}
		}
		return false
	}
}

func isA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func certificate(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err)
}

// silent reports whether the host did not answer in time. Some drivers close the connection during
// the waiting call then.
func silent(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return isAny(os.ErrDeadlineExceeded, context.DeadlineExceeded, syscall.ETIMEDOUT, net.ErrClosed)(err) || ok && timeout.Timeout()
}

// Cause is the cause of an error, in one or two sentences for an administrator: what is wrong, and
// what to do. A driver attaches a cause if it knows more than the errors of this package, of io/fs
// and of the network say.
type Cause string

// Causes that several drivers share.
const (
	NotAFolder Cause = "The root is not a folder, or a part of its path is a file. Name a folder."
	NoTLS      Cause = "The host does not speak TLS on this port. Check the port, and whether the connection must be encrypted."
)

// Missing returns the cause for a bucket or container that does not exist; noun is its name.
func Missing(noun string) Cause {
	return Cause("The " + noun + " does not exist. Create it, or correct its name.")
}

// WithCause attaches a cause to err, without changing its text or the errors it matches. It returns
// err itself if it already has a cause, or if cause is empty.
func WithCause(err error, cause Cause) error {
	if err == nil || cause == "" || CauseOf(err) != "" {
		return err
	}
	return &causedError{err, cause}
}

// CauseOf returns the cause of err; it is empty if none is attached.
func CauseOf(err error) Cause {
	if caused, ok := errors.AsType[*causedError](err); ok {
		return caused.cause
	}
	return ""
}

type causedError struct {
	error
	cause Cause
}

func (e *causedError) Unwrap() error { return e.error }
