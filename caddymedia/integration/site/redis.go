package site

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// Redis is the test's own Redis, which may be stopped and started again. It then has forgotten all.
type Redis struct {
	*servers.Process
	t   *testing.T
	cmd *exec.Cmd // of its last start
}

// NewRedis runs a Redis until the end of the test.
func NewRedis(t *testing.T) *Redis {
	t.Helper()
	program, address, dir := servers.Program(t, "redis-server"), servers.FreeAddress(t), t.TempDir()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	r := &Redis{t: t}
	r.Process = servers.Start(t, address, func() *exec.Cmd {
		r.cmd = exec.Command(program, "--port", port, "--bind", host, "--dir", dir, "--save", "")
		return r.cmd
	})
	return r
}

// Signal sends it a signal.
func (r *Redis) Signal(signal os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		r.t.Fatal(err)
	}
}
