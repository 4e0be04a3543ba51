package sftp

import (
	"io"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/foreigntest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestForeignServers: the answers of servers of other protocols are errors.
func TestForeignServers(t *testing.T) {
	t.Parallel()
	foreigntest.Run(t, 1000, func(t *testing.T, address string) storagedrivers.Driver {
		h := &host{config: Config{
			Address: address, User: testUser, Password: testPassword, InsecureSkipHostKey: true,
			Connections: 2, Timeout: options.Duration(time.Minute),
		}}
		return h.driver(t, ".")
	})
}

// TestForeignSubsystem: a file server that does not speak SFTP is an error, such as a shell that
// greets its user.
func TestForeignSubsystem(t *testing.T) {
	t.Parallel()
	var answer string
	s := startServerOf(t, func(channel io.ReadWriteCloser) error {
		_, err := io.WriteString(channel, answer)
		return err
	})
	for _, answer = range foreigntest.Answers(60) {
		d := s.host(".", 1).driver(t, ".")
		var err error
		test.Within(t, test.Soon, "the check", func() { err = d.Check(t.Context()) })
		test.Fails(t, err, answer)
		test.Must(t, d.Close())
	}
}
