package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/textproto"
	"os"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestMapError(t *testing.T) {
	t.Parallel()
	reply := func(code int, text string) error { return &textproto.Error{Code: code, Msg: text} }
	reset := &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	for _, tt := range []struct {
		err  error
		want error // nil: as it was
	}{
		{reply(421, "Timeout."), storagedrivers.ErrUnavailable},
		{reply(421, "There are too many connected users, please try later."), storagedrivers.ErrUnavailable},
		{reply(425, "Unable to build data connection: Operation not permitted"), storagedrivers.ErrUnavailable},
		{reply(426, "Failure reading network stream."), storagedrivers.ErrUnavailable},
		{reply(450, "/a: Resource temporarily unavailable"), storagedrivers.ErrUnavailable},
		{reply(450, "/a: No such file or directory"), fs.ErrNotExist},
		{reply(451, "Failure writing to local file."), storagedrivers.ErrNoSpace},
		{errors.Join(reset, reply(451, "Error during write to file")), storagedrivers.ErrNoSpace},
		{reply(426, "No space left on device; transfer aborted."), storagedrivers.ErrNoSpace},
		{reply(426, "None; transfer aborted."), storagedrivers.ErrNoSpace},
		{reply(426, "Internal error; transfer aborted."), storagedrivers.ErrUnavailable},
		{reply(451, "Requested action aborted: local error in processing"), storagedrivers.ErrUnavailable},
		{reply(451, "/a: No space left on device"), storagedrivers.ErrNoSpace},
		{reply(451, "/a: Disk quota exceeded"), storagedrivers.ErrNoSpace},
		{reply(452, "no"), storagedrivers.ErrNoSpace},
		{reply(552, "no"), storagedrivers.ErrNoSpace},
		{errors.Join(reset, reply(552, "no")), storagedrivers.ErrNoSpace},
		{reply(530, "Login incorrect."), fs.ErrPermission},
		{reply(530, "Sorry, the maximum number of clients (3) are already connected."), storagedrivers.ErrUnavailable},
		{reply(550, "/a/b: No such file or directory"), fs.ErrNotExist},
		{reply(550, "The system cannot find the file specified. "), fs.ErrNotExist},
		{reply(550, "/no such file: Permission denied"), fs.ErrPermission},
		{reply(550, "/permission denied: No such file or directory"), fs.ErrNotExist},
		{reply(550, "Permission denied."), fs.ErrPermission},
		{reply(550, "/a: Read-only file system"), fs.ErrPermission},
		{reply(550, "Not enough privileges."), fs.ErrPermission},
		{reply(550, "Insufficient privileges"), fs.ErrPermission},
		{reply(550, "Not enough space"), storagedrivers.ErrNoSpace},
		{reply(550, "/a: File name too long"), storagedrivers.ErrInvalidKey},
		{reply(550, "/permission denied/key: Failed"), nil},
		{reply(550, "Failed to open file."), nil},
		{reply(553, "Could not create file."), nil},
		{reply(500, "Unknown command."), nil},
		{reset, storagedrivers.ErrUnavailable},
		{io.EOF, storagedrivers.ErrUnavailable},
		{io.ErrUnexpectedEOF, storagedrivers.ErrUnavailable},
		{os.ErrDeadlineExceeded, storagedrivers.ErrUnavailable},
		{textproto.ProtocolError("short response"), nil},
		{context.Canceled, nil},
		{fmt.Errorf("%w: %w", fs.ErrExist, reply(550, "Permission denied.")), nil},
	} {
		got := mapError(tt.err)
		if !errors.Is(got, tt.err) {
			t.Errorf("%v became %v", tt.err, got)
		}
		if tt.want == nil && got != tt.err { //nolint:errorlint // not even wrapped
			t.Errorf("%v became %v, want it as it was", tt.err, got)
		}
		for _, sentinel := range sentinels {
			if tt.want != nil && errors.Is(got, sentinel) != errors.Is(tt.want, sentinel) {
				t.Errorf("%v became %v, want %v", tt.err, got, tt.want)
			}
		}
	}
	if mapError(nil) != nil {
		t.Error("nothing became an error")
	}
}

func TestOperationError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(storagedrivers.ErrUnavailable)
	err := operationError(ctx, io.EOF)
	for _, want := range []error{context.Canceled, storagedrivers.ErrUnavailable, io.EOF} {
		test.Is(t, err, want)
	}
	plain, stop := context.WithCancel(t.Context())
	stop()
	err = operationError(plain, io.EOF)
	test.Is(t, err, context.Canceled)
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("error %v blames the server", err)
	}
	if operationError(plain, nil) != nil {
		t.Error("success became an error")
	}
}

func TestIsSingleReply(t *testing.T) {
	t.Parallel()
	reply := &textproto.Error{Code: 550, Msg: "no"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{reply, true},
		{errors.Join(reply), true},
		{errors.Join(reply, reply), true},
		{errors.Join(io.EOF, reply), false},
		{io.EOF, false},
		{&textproto.Error{Code: 421, Msg: "bye"}, false},
		{textproto.ProtocolError("what?"), false},
	} {
		test.Equal(t, isSingleReply(tt.err), tt.want, "isSingleReply(", tt.err, ") is")
	}
}
