// Package servers starts real storage servers for tests, each on a free port of the loopback
// interface with an empty backend. It installs none: a test whose server is missing is skipped, or
// fails if MEDIA_TEST_MUST_RUN is set, and with -short no server is started. Begin with [Program],
// which finds a program, and [Start].
package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// mustRun is the environment variable that makes a missing server a failure.
const mustRun = "MEDIA_TEST_MUST_RUN"

// Program returns the path of a program that a test needs. With -short the test is skipped.
func Program(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s is not started with -short", name)
	}
	if path := Installed(name); path != "" {
		return path
	}
	if os.Getenv(mustRun) != "" {
		t.Fatalf("%s is not installed, but all tests must run", name)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// Installed returns the path of a program that a test can do without, or an empty string. name may
// be a pattern, of which the last match counts.
func Installed(name string) string {
	folders := filepath.SplitList(os.Getenv("PATH"))
	for _, folder := range append(folders, "/usr/sbin", "/sbin", "/usr/local/sbin") { // often not in PATH
		found, err := filepath.Glob(filepath.Join(folder, name))
		if err != nil || len(found) == 0 {
			continue
		}
		if path, err := exec.LookPath(slices.Max(found)); err == nil {
			return path
		}
	}
	return ""
}

// Process is a running server. It may be stopped and started again on its port.
type Process struct {
	// Address is host and port.
	Address string

	t       testing.TB
	command func() *exec.Cmd
	cmd     *exec.Cmd
	ended   chan struct{}
}

// Start starts a server that ends with the test and waits until address answers. command is called
// for each start.
func Start(t testing.TB, address string, command func() *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Address: address, t: t, command: command}
	t.Cleanup(p.Stop)
	p.Start()
	return p
}

// Start starts a stopped server.
func (p *Process) Start() {
	p.t.Helper()
	cmd := p.command()
	if cmd.Stdout == nil {
		cmd.Stdout = p.t.Output()
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.t.Output()
	}
	// A child of the server must not delay the test until its output ends.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	p.cmd, p.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(p.ended)
	p.answers()
}

// answers waits until the port accepts connections.
func (p *Process) answers() {
	p.t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.ended:
			p.t.Fatalf("%s ended: %v", p.cmd.Path, p.cmd.ProcessState)
		default:
		}
		var conn net.Conn
		if conn, err = net.Dial("tcp", p.Address); err == nil {
			conn.Close()
			return
		}
	}
	p.t.Fatalf("%s does not answer: %v", p.cmd.Path, err)
}

// Stop kills the server like a power cut, and waits for it.
func (p *Process) Stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
	p.cmd = nil
}

// FreeAddress returns a loopback address without a listener.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(t)))
}

// usedPorts are the ports that FreePort has returned. A stopped server may be started again on its
// port.
var usedPorts sync.Map

// FreePort returns a port of 127.0.0.1 that is free for TCP and UDP, each port once. All are below
// the ephemeral range: an outgoing connection cannot take one before the server does. And they are
// above those that browsers refuse, the last of which is 10080 (bad ports of the Fetch standard).
func FreePort(t testing.TB) int {
	t.Helper()
	const first, end = 10_081, 32_768
	for range 1000 {
		port := first + rand.IntN(end-first)
		if _, taken := usedPorts.LoadOrStore(port, true); !taken && isFree(port) {
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func isFree(port int) bool {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	return udp.Close() == nil
}

// Folder creates a folder that server processes of any user may enter. It is removed after the
// test.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "media-server-")
	test.Must(t, err)
	t.Cleanup(func() {
		test.Is(t, os.RemoveAll(folder), nil, "cleaning up")
	})
	test.Must(t, os.Chmod(folder, 0o755))
	return folder
}

// writeFile writes a file of a server's configuration.
func writeFile(t testing.TB, path, format string, args ...any) string {
	t.Helper()
	test.Must(t, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600))
	return path
}
