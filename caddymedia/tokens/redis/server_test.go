package redis

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// server is a real redis-server on a free port.
type server struct {
	port    int
	process *os.Process
	ended   chan struct{}
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// kill kills the server, like a power cut, and waits for its end.
func (s *server) kill() {
	_ = s.process.Kill()
	<-s.ended
}

// start starts a server that ends with the test. It skips the test if there is none, unless all
// tests must run.
func start(t *testing.T, port int, args ...string) *server {
	t.Helper()
	binary := servers.Program(t, "redis-server")
	if !slices.Contains(args, "--dir") {
		args = append(args, "--dir", t.TempDir())
	}
	cmd := exec.Command(binary, append(args, "--bind", "127.0.0.1", "--loglevel", "warning")...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{port: port, process: cmd.Process, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(s.kill)
	eventually(t, time.Minute, func() error {
		conn, err := net.Dial("tcp", s.addr())
		if err == nil {
			conn.Close()
		}
		return err
	})
	return s
}

// startPlain starts a server on a free port without persistence.
func startPlain(t *testing.T, args ...string) *server {
	t.Helper()
	port := servers.FreePort(t)
	return start(t, port, append([]string{"--port", strconv.Itoa(port), "--save", ""}, args...)...)
}

// certificate returns the files of a self-signed certificate for localhost, for both sides, and of
// its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	key = servers.Certificate(t, dir)
	return filepath.Join(dir, "cert"), key
}
