package sftp

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

// behindProxy returns a driver, a storage on it and the proxy before the host. The driver has been
// checked.
func behindProxy(t *testing.T, h *host, timeout time.Duration) (*driver, *storagedrivers.Storage, *faults.Proxy) {
	t.Helper()
	proxy := faults.New(t, h.config.Address)
	config := h.config
	config.Address, config.Timeout = proxy.Address, options.Duration(timeout)
	d, err := newDriver(config, slog.New(slog.DiscardHandler))
	test.Must(t, err)
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	t.Cleanup(func() { test.Is(t, s.Close(), nil) })
	test.Is(t, s.Check(t.Context()), nil)
	return d, s, proxy
}

// opener is a driver, or a storage, which retries.
type opener interface {
	Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error)
	Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error)
}

// put stores an object.
func put(t *testing.T, o opener, key string, content []byte, opts storagedrivers.PutOptions) {
	t.Helper()
	_, err := o.Put(t.Context(), key, bytes.NewReader(content), opts)
	test.Is(t, err, nil)
}

func has(t *testing.T, o opener, key string, want []byte) {
	t.Helper()
	body, _, err := o.Open(t.Context(), key, all)
	if err != nil {
		t.Errorf("opening %q: %v", key, err)
		return
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q holds %d bytes, want %d, equal %t, error %v", key, len(got), len(want), bytes.Equal(got, want), err)
	}
}

// eventReader calls a function once, at an offset.
type eventReader struct {
	*bytes.Reader
	at    int64
	event func()
}

func (r *eventReader) Read(p []byte) (int, error) {
	if r.event != nil && r.Size()-int64(r.Len()) >= r.at {
		r.event()
		r.event = nil
	}
	return r.Reader.Read(p)
}

// TestNameIsBusy: an upload that waits too long for others of its name does not count as a failure
// of the host.
func TestNameIsBusy(t *testing.T) {
	t.Parallel()
	d, s, _ := behindProxy(t, newHost(t), 3*time.Second) // also a login on a slow machine
	unlock, err := naming.Lock(t.Context(), d.lockName("hot"))
	test.Is(t, err, nil)
	_, err = d.Put(t.Context(), "hot", strings.NewReader("content"), overwrite)
	test.Is(t, err, storagedrivers.ErrBusy)
	test.Is(t, err, os.ErrDeadlineExceeded) // it is not repeated
	unlock()
	_, err = s.Put(t.Context(), "hot", strings.NewReader("content"), overwrite)
	test.Is(t, err, nil)
}

// driverAt returns a driver for a listener that need not speak SSH, until the end of the test.
func driverAt(t *testing.T, listener net.Listener, connections int, timeout time.Duration) *driver {
	t.Helper()
	h := &host{config: Config{
		Address: listener.Addr().String(), User: testUser, Password: testPassword, InsecureSkipHostKey: true,
		Connections: connections, Timeout: options.Duration(timeout),
	}}
	return h.driver(t, ".")
}

// TestSilentFromTheBeginning: a host that is silent from the beginning is dialled once per
// operation. The error says that the time-out is over, so that no caller retries.
func TestSilentFromTheBeginning(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Is(t, err, nil)
	accepted := make(chan net.Conn, 100)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	d := driverAt(t, listener, 1, 300*time.Millisecond)
	s := storagedrivers.New("test", d, storagedrivers.Options{Timeout: time.Minute})
	_, err = s.Put(t.Context(), "object", bytes.NewReader(test.Random(3<<20)), overwrite)
	test.Is(t, err, storagedrivers.ErrUnavailable)
	test.Is(t, err, os.ErrDeadlineExceeded)
	test.Is(t, s.Close(), nil)
	listener.Close()
	dials := 0
	for conn := range accepted {
		conn.Close()
		dials++
	}
	test.Equal(t, dials, 1, "dialled", "times")
}

// TestSilentBesideOthers: after the time-out of its connection, an operation does not wait for
// another one to be dialled.
func TestSilentBesideOthers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Is(t, err, nil)
	defer listener.Close()
	d := driverAt(t, listener, 2, 300*time.Millisecond)
	others := &conn{ready: make(chan struct{}), users: 1}
	d.pool.connections, d.pool.limit = []*conn{others}, 2
	_, err = d.pool.acquire(t.Context())
	test.Is(t, err, os.ErrDeadlineExceeded)
}

// TestFallsSilent: if a host becomes silent, every operation ends with the time-out as its cause,
// even if its connection is closed for that reason. Later operations succeed when the host is back.
func TestFallsSilent(t *testing.T) {
	t.Parallel()
	content := test.Random(3 << 20)
	for name, f := range map[string]func(t *testing.T, d *driver, silence func()) error{
		"put": func(t *testing.T, d *driver, silence func()) error {
			src := &eventReader{Reader: bytes.NewReader(content), at: 1 << 20, event: silence}
			_, err := d.Put(t.Context(), "new", src, create)
			return err
		},
		"stat": func(t *testing.T, d *driver, silence func()) error {
			silence()
			_, err := d.Stat(t.Context(), "object")
			return err
		},
		"open": func(t *testing.T, d *driver, silence func()) error {
			silence()
			_, _, err := d.Open(t.Context(), "object", all)
			return err
		},
		"read": func(t *testing.T, d *driver, silence func()) error {
			body, _, err := d.Open(t.Context(), "object", all)
			test.Must(t, err)
			silence()
			_, err = body.Read(make([]byte, 100))
			test.Is(t, body.Close(), nil)
			return err
		},
		"delete": func(t *testing.T, d *driver, silence func()) error {
			silence()
			return d.Delete(t.Context(), "missing", storagedrivers.DeleteOptions{})
		},
		"list": func(t *testing.T, d *driver, silence func()) error {
			silence()
			_, err := d.List(t.Context(), storagedrivers.ListOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.config.Connections = 1 // otherwise another one may be found silent later
			d, _, proxy := behindProxy(t, h, 5*time.Second)
			put(t, d, "object", content, create)
			err := f(t, d, func() { proxy.SetSilent(true) })
			test.Is(t, err, storagedrivers.ErrUnavailable)
			if name != "read" {
				test.Is(t, err, os.ErrDeadlineExceeded)
			}
			proxy.SetSilent(false)
			has(t, d, "object", content)
			_, err = d.Stat(t.Context(), "new")
			test.Is(t, err, fs.ErrNotExist)
		})
	}
}

// TestNoSSHServer: the error names a server of another protocol at once; the host does not count as
// unavailable.
func TestNoSSHServer(t *testing.T) {
	t.Parallel()
	for greeting, want := range map[string]string{
		"220 ProFTPD Server ready.\r\n":    "an FTP or mail server",
		"220-Welcome\r\n220 to Pure-FTPd ": "an FTP or mail server",
		"HTTP/1.1 400 Bad Request\r\n":     "a web server",
		"+OK POP3 ready\r\n":               "a mail server",
		strings.Repeat("what\n", 2000):     "overflow reading version",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		test.Is(t, err, nil)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte(greeting))
			_, _ = conn.Read(make([]byte, 1000))
			_, _ = conn.Read(make([]byte, 1000)) // until the client leaves
		}()
		d := driverAt(t, listener, 1, time.Minute)
		test.Within(t, test.Soon, "the check", func() { err = d.Check(t.Context()) })
		test.IsNot(t, err, storagedrivers.ErrUnavailable)
		test.Says(t, err, want, greeting)
		test.Equal(t, storagedrivers.CauseOf(err), notSSH)
		listener.Close()
	}
}

// stuck is a session's channel whose server hangs at some request for ever.
type stuck struct {
	io.ReadWriteCloser
	at  func(packet []byte) bool
	end <-chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(p)
	if n > 0 && s.at(p[:n]) {
		<-s.end
	}
	return n, err
}

// TestStuckFileServer: if the file server of a host hangs, for instance on a dead disk, while SSH
// itself works, no caller is blocked, and the next operation uses a new connection.
func TestStuckFileServer(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	for name, at := range map[string]func(p []byte) bool{
		"opening": func(p []byte) bool { return p[0] == 3 && bytes.Contains(p, []byte(tempSuffix)) },
		"writing": func(p []byte) bool { return p[0] == 6 },
		"reading": func(p []byte) bool { return p[0] == 5 },
		"closing": func(p []byte) bool { return p[0] == 4 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, end := t.TempDir(), make(chan struct{})
			test.Must(t, os.WriteFile(filepath.Join(root, "object"), []byte("content"), 0o600))
			var armed atomic.Bool
			s := startServerOf(t, func(channel io.ReadWriteCloser) error {
				return serveFolder(root, &stuck{channel, func(p []byte) bool {
					return at(p) && armed.CompareAndSwap(true, false)
				}, end})
			})
			t.Cleanup(func() { close(end) }) // before the server ends
			h := s.host(root, 1)
			h.config.Timeout = options.Duration(timeout)
			d := h.driver(t, ".")
			test.Is(t, d.Check(t.Context()), nil)
			armed.Store(true)
			test.Within(t, 3*timeout, "the operation", func() {
				var err error
				if name == "reading" {
					var body io.ReadCloser
					if body, _, err = d.Open(t.Context(), "object", all); err == nil {
						_, err = io.ReadAll(body)
						test.Is(t, body.Close(), nil)
					}
				} else {
					_, err = d.Put(t.Context(), "new", strings.NewReader("new"), create)
				}
				test.Is(t, err, storagedrivers.ErrUnavailable)
			})
			has(t, d, "object", []byte("content"))
		})
	}
}

// TestIdleConnectionStays: an idle connection stays open, because its host replies to the checks.
func TestIdleConnectionStays(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	root := t.TempDir()
	server := startServer(t, root)
	d, _, _ := behindProxy(t, server.host(root, 1), timeout)
	time.Sleep(4 * timeout)
	test.Is(t, d.Check(t.Context()), nil)
	test.Equal(t, server.accepted.Load(), 1, "connections were opened")
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ wanted, allowed, most int }{{1, 0, 1}, {3, 0, 3}, {3, 1, 1}} {
		root := t.TempDir()
		server := startServer(t, root, func(s *server) { s.max = tt.allowed })
		h := server.host(root, tt.wanted)
		d := h.driver(t, "objects")
		test.Is(t, d.Check(t.Context()), nil)
		errs := make(chan error)
		for i := range 20 {
			go func() {
				_, err := d.Put(t.Context(), "f/"+string(rune('a'+i)), strings.NewReader("text"), create)
				errs <- err
			}()
		}
		for range 20 {
			test.Is(t, <-errs, nil)
		}
		if got := server.connected(); got > tt.most {
			t.Errorf("%d connections of %d: %d are open", tt.wanted, tt.allowed, got)
		}
		test.Equal(t, len(test.Files(t, filepath.Join(root, "objects"))), 20, "objects")
	}
}
