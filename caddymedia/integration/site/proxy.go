package site

import (
	"io"
	"net"
	"sync"
	"testing"
)

// CuttingProxy forwards TCP connections to a server, and cuts one of them once.
type CuttingProxy struct {
	// Address of the proxy.
	Address string
	// Reached is closed when the limit of bytes is reached.
	Reached <-chan struct{}

	mu    sync.Mutex
	limit int64
	sent  int64
	goOn  chan struct{}
}

// NewCuttingProxy starts a proxy. When the clients have sent limit bytes, it forwards nothing of
// that connection any more, and cuts it when Cut is called.
func NewCuttingProxy(t *testing.T, server string, limit int64) *CuttingProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	reached := make(chan struct{})
	p := &CuttingProxy{Address: listener.Addr().String(), Reached: reached, limit: limit, goOn: make(chan struct{})}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.forward(client, server, reached)
		}
	}()
	return p
}

// Cut cuts the connection on which the limit is reached.
func (p *CuttingProxy) Cut() { close(p.goOn) }

// Sent returns the number of bytes that the clients have sent.
func (p *CuttingProxy) Sent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

func (p *CuttingProxy) forward(client net.Conn, to string, reached chan<- struct{}) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		io.Copy(client, server)
		client.Close()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := client.Read(buffer)
		if p.count(n) {
			close(reached)
			<-p.goOn
			return
		}
		if _, failed := server.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// count reports whether n more bytes reach the limit.
func (p *CuttingProxy) count(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.sent
	p.sent += int64(n)
	return before < p.limit && p.sent >= p.limit
}
