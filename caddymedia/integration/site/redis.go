package site

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// Redis is the test's own Redis, which may be stopped and started again. It then has forgotten all.
type Redis struct {
	Address string // host and port

	t       *testing.T
	program string
	dir     string
	cmd     *exec.Cmd // nil while it does not run
}

// NewRedis runs a Redis until the end of the test.
func NewRedis(t *testing.T) *Redis {
	t.Helper()
	r := &Redis{t: t, program: servers.Program(t, "redis-server"), Address: servers.FreeAddress(t), dir: t.TempDir()}
	t.Cleanup(r.Stop)
	r.Start()
	return r
}

// Start runs it, and waits until it answers.
func (r *Redis) Start() {
	r.t.Helper()
	host, port, err := net.SplitHostPort(r.Address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.cmd = exec.Command(r.program, "--port", port, "--bind", host, "--dir", r.dir, "--save", "")
	if err := r.cmd.Start(); err != nil {
		r.cmd = nil
		r.t.Fatal(err)
	}
	Eventually(r.t, "Redis answers", func() bool {
		conn, err := net.Dial("tcp", r.Address)
		if err != nil {
			return false
		}
		defer conn.Close()
		answer := make([]byte, len("+PONG"))
		_, err = fmt.Fprint(conn, "PING\r\n")
		if err == nil {
			_, err = conn.Read(answer)
		}
		return err == nil && string(answer) == "+PONG"
	})
}

// Stop kills it.
func (r *Redis) Stop() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill() // it may have ended by itself
	_ = r.cmd.Wait()
	r.cmd = nil
}

// Signal sends it a signal.
func (r *Redis) Signal(signal os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		r.t.Fatal(err)
	}
}
