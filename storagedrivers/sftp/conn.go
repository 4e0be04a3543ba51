package sftp

import (
	"sync"
	"sync/atomic"
	"time"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// conn is one SSH connection, for any number of concurrent operations.
type conn struct {
	*pkgsftp.Client // once ready

	shell *ssh.Client
	err   error         // of dialling, once ready
	ready chan struct{} // closed when it was dialled or could not be
	users int           // guarded by the pool
	dead  atomic.Bool   // it serves no operation any more
	quiet atomic.Bool   // it is dead because the host did not answer
	heard atomic.Int64  // how many bytes the file server has said
}

// drop closes the connection. Callers that wait for a reply get an error.
func (c *conn) drop() {
	c.dead.Store(true)
	_ = c.shell.Close()
}

// watches is how often a connection is checked within the time that a host may stay silent.
const watches = 8

// watch sends requests often enough to detect a dead host within silence, and ends with the
// connection. It sends them to the file server, because SSH itself still works if the file server
// hangs. Any other data from the file server counts as a reply.
func (c *conn) watch(silence time.Duration) {
	ended, asking := make(chan struct{}), make(chan struct{}, 1)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer close(ended)
		_ = c.Wait() // its error is that of the operations
	})
	tick := time.NewTicker(max(silence/watches, time.Millisecond))
	defer tick.Stop()
	heard, quiet := c.heard.Load(), 0
	for alive := true; alive; {
		select {
		case <-ended:
			alive = false
		case <-tick.C:
			if now := c.heard.Load(); now != heard {
				heard, quiet = now, 0
			} else {
				quiet++
			}
			if quiet == watches-1 {
				alive = false
				c.quiet.Store(true)
			}
			select {
			case asking <- struct{}{}:
				tasks.Go(func() {
					_, _ = c.Getwd() // any answer will do
					<-asking
				})
			default: // it was asked and has not answered
			}
		}
	}
	c.drop()
	_ = c.Client.Close() // it is closed already
	tasks.Wait()
}
