package network

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Unreachable reports whether err means that a host could not be reached, or that its connection
// broke: no such name, refused, reset, cut, timed out. The end of the caller's context does not
// count, nor does an untrusted certificate.
//
// A driver must first check the source's own error: io.ErrUnexpectedEOF may come from either.
func Unreachable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	for _, fault := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, fault) {
			return true
		}
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return true
	}
	var opErr *net.OpError
	var dnsErr *net.DNSError
	return errors.As(err, &dnsErr) || errors.As(err, &opErr) && opErr.Op == "dial"
}

// Silent reports whether err is the time-out of a silent host, including dialling. The deadline of
// a caller does not count, unless os.ErrDeadlineExceeded is its cause.
func Silent(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var netErr net.Error
	if !errors.As(err, &netErr) || !netErr.Timeout() {
		return false
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial" || !errors.Is(err, context.DeadlineExceeded)
}
