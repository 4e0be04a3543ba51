package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestMapError(t *testing.T) {
	t.Parallel()
	own := []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, storagedrivers.ErrInvalidKey, storagedrivers.ErrInvalidRange,
		storagedrivers.ErrNoSpace, storagedrivers.ErrUnavailable,
	}
	status := func(code uint32) error { return &pkgsftp.StatusError{Code: code} }
	key, err := parsePublicKey(anyKey)
	test.Must(t, err)
	for _, tt := range []struct{ err, want error }{
		{nil, nil},
		{status(uint32(pkgsftp.ErrSSHFxFailure)), nil},
		{status(uint32(pkgsftp.ErrSSHFxOpUnsupported)), nil},
		{status(uint32(pkgsftp.ErrSSHFxBadMessage)), storagedrivers.ErrInvalidKey},
		{status(uint32(pkgsftp.ErrSSHFxNoConnection)), storagedrivers.ErrUnavailable},
		{status(codeNoSuchPath), fs.ErrNotExist},
		{status(codeExists), fs.ErrExist},
		{status(codeWriteProtect), fs.ErrPermission},
		{status(codeNoSpace), storagedrivers.ErrNoSpace},
		{status(codeQuota), storagedrivers.ErrNoSpace},
		{status(codeInvalidName), storagedrivers.ErrInvalidKey},
		{&os.PathError{Op: "remove", Err: os.ErrNotExist}, fs.ErrNotExist},
		{fmt.Errorf("making a folder: %w", os.ErrPermission), fs.ErrPermission},
		{&os.PathError{Op: "mkdir", Err: syscall.ENOTDIR}, storagedrivers.ErrInvalidKey},
		{pkgsftp.ErrSSHFxConnectionLost, storagedrivers.ErrUnavailable},
		{fmt.Errorf("failed to send packet: %w", io.EOF), storagedrivers.ErrUnavailable},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, storagedrivers.ErrUnavailable},
		{errors.New("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none]"), fs.ErrPermission},
		{fmt.Errorf("ssh: handshake failed: %w", &hostKeyError{"h", key, &knownhosts.KeyError{}}), nil},
		{context.Canceled, nil},
		{fmt.Errorf("%w: %w", context.Canceled, storagedrivers.ErrUnavailable), storagedrivers.ErrUnavailable},
	} {
		got := mapError(tt.err)
		if !errors.Is(got, tt.err) {
			t.Errorf("%v became %v, which does not match it", tt.err, got)
		}
		for _, sentinel := range own {
			if is := errors.Is(got, sentinel); is != (sentinel == tt.want) { //nolint:errorlint // the same value
				t.Errorf("%v: %v, matches %v: %t, want %v", tt.err, got, sentinel, is, tt.want)
			}
		}
	}
}

// anyKey is a public key that no other test uses.
const anyKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"

func TestCauseOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want storagedrivers.Cause
	}{
		{fmt.Errorf("ssh: handshake failed: %w", &ssh.AlgorithmNegotiationError{What: "host key"}), noHostKey},
		{fmt.Errorf("ssh: handshake failed: %w", &ssh.AlgorithmNegotiationError{What: "key exchange"}), ""},
		{errors.New("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none], no supported methods remain"), wrongMethod},
		{errors.New("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none password], no supported methods remain"), wrongLogin},
		{errors.New("no"), ""},
	} {
		test.Equal(t, causeOf(tt.err), tt.want, tt.err, "cause")
	}
	for text, want := range map[string]storagedrivers.Cause{
		`sftp: "Not a directory" (SSH_FX_FAILURE)`: storagedrivers.NotAFolder, `sftp: "Failure" (SSH_FX_FAILURE)`: "",
	} {
		test.Equal(t, causeOfRoot(errors.New(text)), want, text, "cause")
	}
}
