package site

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

const (
	exampleAddress = "http://localhost:8080"
	exampleAdmin   = "admin {$CADDY_ADMIN:localhost:2020}"
)

// ExampleCaddyfile returns the content of Caddyfile.example.
func ExampleCaddyfile(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// RunExample runs Caddyfile.example in a process on a free port, with its admin endpoint at the
// address admin. Its folders are media-data, and home, data and config beside it for those of the
// user. output stops the process and returns its output.
func RunExample(t *testing.T, admin string) (s *Site, output func() string) {
	t.Helper()
	address := servers.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	url := "http://localhost:" + port
	config := strings.NewReplacer(exampleAddress, url, exampleAdmin, "admin "+admin).Replace(ExampleCaddyfile(t))
	folder := TempFolder(t)
	PutFile(t, filepath.Join(folder, "Caddyfile"), config)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(executable, "run")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), RunCaddy+"=1", "HOME="+folder+"/home", "XDG_DATA_HOME="+folder+"/data", "XDG_CONFIG_HOME="+folder+"/config")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}
	stop := func() {
		transport.CloseIdleConnections()
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		select {
		case <-ended:
			ended <- nil
		case <-time.After(Prompt):
			_ = cmd.Process.Kill()
			t.Error("Caddy does not end")
		}
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(3 * Prompt); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			stop()
			t.Fatalf("Caddy does not start:\n%s", out.String())
		}
	}
	s = &Site{URL: url, Address: address, Root: filepath.Join(folder, "media-data", "items"), Client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
	return s, func() string {
		stop()
		return out.String()
	}
}

// Prompt is long enough for a machine under load, and far below the minute that a server waits for
// a missing body.
const Prompt = 20 * time.Second
