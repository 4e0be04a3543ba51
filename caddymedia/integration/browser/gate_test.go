package browser_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
)

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
