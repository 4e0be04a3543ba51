package sftp

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers"
)

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
		if got := causeOf(tt.err); got != tt.want {
			t.Errorf("%v: cause %q, want %q", tt.err, got, tt.want)
		}
	}
	for text, want := range map[string]storagedrivers.Cause{
		`sftp: "Not a directory" (SSH_FX_FAILURE)`: storagedrivers.NotAFolder, `sftp: "Failure" (SSH_FX_FAILURE)`: "",
	} {
		if got := causeOfRoot(errors.New(text)); got != want {
			t.Errorf("%s: cause %q, want %q", text, got, want)
		}
	}
}
