package storagedrivers_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/textproto"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestExplain: every known error has an explanation and a remedy.
func TestExplain(t *testing.T) {
	t.Parallel()
	denied := fs.ErrPermission
	drivers := map[string]storagedrivers.Description{
		"local": {Noun: "folder", Local: true}, "sftp": {Noun: "folder"}, "ftp": {Noun: "folder"}, "s3": {Noun: "bucket"},
	}
	for _, c := range []struct {
		driver, op string
		err        error
		want       string
	}{
		{"local", "check", &fs.PathError{Op: "mkdir", Path: "/srv/media", Err: syscall.EACCES}, "The user that Caddy runs as may not use the folder."},
		{"local", "put", fmt.Errorf("%w: %w", denied, syscall.EROFS), "may not store objects there"},
		{"local", "check", &fs.PathError{Op: "open", Path: "/srv/media", Err: syscall.ENOTDIR}, "not a folder"},
		{"local", "put", fmt.Errorf("%w: x", storagedrivers.ErrNoSpace), "full"},
		{"sftp", "put", denied, "The login succeeded but may not store objects there."},
		{"sftp", "open", denied, "may not read"},
		{"sftp", "delete", denied, "may not delete"},
		{"sftp", "list", denied, "may not read"},
		{"sftp", "list", fs.ErrNotExist, "The folder does not exist"},
		{"s3", "check", fmt.Errorf("%w: %w", denied, errors.New("AccessDenied")), "may not use the bucket"},
		{"ftp", "check", fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, &textproto.Error{Code: 421, Msg: "Too many."}), "too busy"},
		{"ftp", "check", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "does not speak TLS"},
		{"ftp", "check", x509.UnknownAuthorityError{}, "certificate"},
		{"sftp", "check", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "no route to the host"},
		{"sftp", "check", fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, io.EOF), "ended the connection"},
		{"sftp", "check", os.ErrDeadlineExceeded, "does not answer"},
		{"sftp", "check", errors.Join(storagedrivers.ErrUnavailable, context.DeadlineExceeded), "does not answer"},
		{"sftp", "check", context.Canceled, "aborted"},
		{"ftp", "delete", errors.Join(storagedrivers.ErrUnavailable, context.DeadlineExceeded, context.Canceled), "does not answer"},
		{"sftp", "check", fs.ErrNotExist, "The folder does not exist"},
		{"sftp", "open", storagedrivers.ErrClosed, "changed meanwhile"},
		{"sftp", "put", storagedrivers.ErrSizeMismatch, "shorter or longer"},
		{"sftp", "put", denied, "may not store objects there"},
		{"sftp", "stat", denied, "may not read"},
		{"sftp", "sweep", denied, "may not delete"},
		{"s3", "check", storagedrivers.WithCause(denied, "The key is wrong."), "The key is wrong."},
		{"s3", "check", storagedrivers.WithCause(storagedrivers.ErrClosed, "The key is wrong."), "changed meanwhile"},
	} {
		wrapped := &storagedrivers.OpError{Op: c.op, Storage: "main", Err: c.err}
		s := storagedrivers.New("main", nil, storagedrivers.Options{Description: drivers[c.driver], Close: func() error { return nil }})
		got := s.Explain(wrapped)
		if !strings.Contains(got, c.want) || !strings.HasSuffix(got, ".") || strings.Contains(got, "{") {
			t.Errorf("%s, %s: %v is explained as %q, want %q", c.driver, c.op, c.err, got, c.want)
		}
	}
	test.Equal(t, drivers["s3"].Explain(errors.New("what nobody foresaw")), "", "an unknown error is explained as")
}
