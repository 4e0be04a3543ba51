// Package faults is a TCP proxy that simulates network faults: it delays and drops data, and resets
// and refuses connections. It understands no protocol, and is for tests only. Begin with [New].
package faults

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// Proxy is a proxy of a server. Its faults may be changed at any time and apply to later data, also
// on open connections.
type Proxy struct {
	// Address is the listening address of the proxy.
	Address string

	server   string
	listener net.Listener
	ctx      context.Context //nolint:containedctx // the proxy lives as long as the test
	latency  atomic.Int64    // of each direction
	silent   atomic.Bool     // nothing passes
	refusing atomic.Bool
	cutAfter atomic.Int64 // bytes to the server, negative for never
	cuts     atomic.Int64
	mu       sync.Mutex
	open     map[net.Conn]struct{}
	waiting  sync.WaitGroup
}

// New returns a proxy for the server at address (host and port) until the test ends.
func New(t testing.TB, address string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		Address: listener.Addr().String(), server: address, listener: listener, ctx: ctx,
		open: map[net.Conn]struct{}{},
	}
	p.cutAfter.Store(-1)
	p.waiting.Go(p.accept)
	t.Cleanup(func() {
		cancel()
		listener.Close()
		p.CloseAll()
		p.waiting.Wait()
	})
	return p
}

// SetLatency delays all data by half of a round trip in each direction, without limiting the rate.
func (p *Proxy) SetLatency(roundTrip time.Duration) { p.latency.Store(int64(roundTrip / 2)) }

// SetSilent drops all data in both directions, like an unplugged host. Connections are still
// accepted and stay open.
func (p *Proxy) SetSilent(silent bool) { p.silent.Store(silent) }

// SetRefusing closes open connections and every new one, like a host whose server is down.
func (p *Proxy) SetRefusing(refusing bool) {
	p.refusing.Store(refusing)
	if refusing {
		p.CloseAll()
	}
}

// CutAfter resets the connection that carries byte n, counted from now over all connections to the
// server, once. A negative n cancels it.
func (p *Proxy) CutAfter(n int64) { p.cutAfter.Store(n) }

// Cuts returns the number of connections that [Proxy.CutAfter] has reset.
func (p *Proxy) Cuts() int { return int(p.cuts.Load()) }

// CloseAll resets every open connection.
func (p *Proxy) CloseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		reset(conn)
	}
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refusing.Load() {
			reset(client)
			continue
		}
		p.waiting.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", p.server)
	if err != nil {
		reset(client)
		return
	}
	p.track(client, server)
	defer p.forget(client, server)
	var both sync.WaitGroup
	both.Go(func() { p.flow(server, client, true) })
	both.Go(func() { p.flow(client, server, false) })
	both.Wait()
}

func (p *Proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.open[conn] = struct{}{}
	}
	if p.ctx.Err() != nil || p.refusing.Load() { // closed while this one was dialled
		for _, conn := range conns {
			reset(conn)
		}
	}
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.open, conn)
		conn.Close()
	}
}

// packet is the data of one read, and the time to forward it.
type packet struct {
	data []byte
	due  time.Time
}

// flow carries bytes in one direction. Reading and writing are separate, so that latency does not
// limit the rate.
func (p *Proxy) flow(to, from net.Conn, toServer bool) {
	packets := make(chan packet, 1024)
	go func() {
		defer close(packets)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				due := time.Now().Add(time.Duration(p.latency.Load()))
				packets <- packet{data[:n], due}
			}
			if err != nil {
				if err != io.EOF { //nolint:errorlint // connections return it bare
					reset(to)
				}
				return
			}
		}
	}()
	for packet := range packets {
		p.wait(time.Until(packet.due))
		for p.silent.Load() && p.ctx.Err() == nil {
			p.wait(5 * time.Millisecond)
		}
		if toServer && p.cut(int64(len(packet.data))) {
			reset(from)
			reset(to)
		}
		if _, err := to.Write(packet.data); err != nil {
			reset(from)
			for range packets {
			}
			return
		}
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

// cut counts n bytes and reports whether the byte of CutAfter is among them.
func (p *Proxy) cut(n int64) bool {
	for {
		left := p.cutAfter.Load()
		if left < 0 {
			return false
		}
		if next := left - n; p.cutAfter.CompareAndSwap(left, max(next, -1)) {
			if next < 0 {
				p.cuts.Add(1)
				return true
			}
			return false
		}
	}
}

func (p *Proxy) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
	}
}
