package browser_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

func TestMain(m *testing.M) { site.Main(m) }

// browserModules is the folder whose node_modules contains playwright-core and axe-core.
const browserModules = "MEDIA_TEST_BROWSER"

// facts are the facts about a site that a script needs.
type facts struct {
	// Panel is the address of the panel, with a trailing slash.
	Panel string `json:"panel"`
	// Service is the address of the service, without a slash at the end, if the page is of another
	// site.
	Service  string `json:"service,omitempty"`
	User     string `json:"user"`
	Password string `json:"password"`
	// Secrets must not reach the browser.
	Secrets []string `json:"secrets"`
	// Flags are further flags of Chromium.
	Flags []string `json:"flags,omitempty"`
	// More is for a single script.
	More any `json:"more"`
}

// browse runs a script of the folder browser, which operates Chromium like a user. If
// MEDIA_TEST_SHOTS names a folder, it saves screenshots there.
func browse(t *testing.T, script string, f facts) {
	t.Helper()
	needsBrowser(t)
	node, chromium := servers.Program(t, "node"), servers.Program(t, "chromium")
	encoded, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "facts.json")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script+".mjs")
	cmd.Env = append(os.Environ(), "MEDIA_TEST_CHROMIUM="+chromium, "MEDIA_TEST_FACTS="+file)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	} else if len(out) > 0 {
		t.Logf("%s", out)
	}
}

// needsBrowser skips a test, before any preparation, if browse would skip it.
func needsBrowser(t *testing.T) {
	t.Helper()
	if os.Getenv(browserModules) == "" {
		site.Skip(t, "%s is not set", browserModules)
	}
	servers.Program(t, "chromium")
}

// gate is a proxy of TCP connections to a service. It interrupts one of them after some bytes.
type gate struct {
	address string // its own
	target  string

	mu    sync.Mutex
	act   string // "cut", "hold", or empty: what happens after left more bytes
	left  int
	held  chan struct{} // closed to end the held connection; nil without one
	conns sync.WaitGroup
}

// newGate returns a gate in front of the address target, until the test ends.
func newGate(t *testing.T, target string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{address: listener.Addr().String(), target: target}
	t.Cleanup(func() {
		listener.Close()
		g.release()
		g.conns.Wait()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			g.conns.Go(func() { g.connect(client) })
		}
	}()
	return g
}

// connect copies the bytes of a connection in both directions until one side ends.
func (g *gate) connect(client net.Conn) {
	defer client.Close()
	service, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer service.Close()
	g.conns.Go(func() {
		io.Copy(client, service)
		client.Close()
	})
	buffer := make([]byte, 32<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil || !g.pass(n) {
			return
		}
		if _, err := service.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// pass reports whether the next n bytes to the service may pass. It returns late for a held
// connection.
func (g *gate) pass(n int) bool {
	g.mu.Lock()
	if g.act == "" || g.left >= n {
		g.left -= n
		g.mu.Unlock()
		return true
	}
	if g.act == "cut" {
		g.act = ""
		g.mu.Unlock()
		return false
	}
	g.act, g.held = "", make(chan struct{})
	held := g.held
	g.mu.Unlock()
	<-held
	return false
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		close(g.held)
		g.held = nil
	}
}

// ServeHTTP sets what happens next: "cut" ends the connection that has sent the bytes "after",
// "hold" stops it until "release". The answer is whether a connection is held.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch act := r.FormValue("act"); act {
	case "release":
		g.release()
	case "cut", "hold":
		g.mu.Lock()
		g.act = act
		g.left, _ = strconv.Atoi(r.FormValue("after"))
		g.mu.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	io.WriteString(w, strconv.FormatBool(g.held != nil))
}
