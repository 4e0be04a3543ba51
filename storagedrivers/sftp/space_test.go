package sftp

import (
	"errors"
	"io"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestSpaceUnknown: a host is not asked for the space by an extension that it has not announced. One that
// closes the connection for it would break the other operations of the connection.
func TestSpaceUnknown(t *testing.T) {
	t.Parallel()
	s := startServerOf(t, func(channel io.ReadWriteCloser) error {
		var packet [9]byte // the client's version
		if _, err := io.ReadFull(channel, packet[:]); err != nil {
			return err
		}
		if _, err := channel.Write([]byte{0, 0, 0, 5, 2, 0, 0, 0, 3}); err != nil { // version 3, no extensions
			return err
		}
		_, err := channel.Read(packet[:])
		return err
	})
	space, err := s.host("", 1).driver(t, ".").Space(t.Context())
	test.Is(t, err, errors.ErrUnsupported)
	test.IsNot(t, err, storagedrivers.ErrUnavailable)
	test.Equal(t, space, (storagedrivers.Space{}), "space")
}
