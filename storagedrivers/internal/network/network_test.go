package network_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo returns a proxy of a server that returns its input.
func echo(t *testing.T) *faults.Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return faults.New(t, listener.Addr().String())
}

func dial(t *testing.T, timeout time.Duration, address string) net.Conn {
	t.Helper()
	conn, err := network.Dialer{Timeout: timeout}.DialContext(t.Context(), "tcp", address)
	test.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestSilence: reads on a silent connection fail.
func TestSilence(t *testing.T) {
	t.Parallel()
	proxy := echo(t)
	conn := dial(t, 200*time.Millisecond, proxy.Address)
	proxy.SetSilent(true)
	_, err := io.WriteString(conn, "hello")
	test.Must(t, err)
	_, err = conn.Read(make([]byte, 5))
	test.Is(t, err, os.ErrDeadlineExceeded)
	test.Equal(t, network.Unreachable(err), true, err)
}

// TestProgress: a reader waits as long as the writer makes progress.
func TestProgress(t *testing.T) {
	t.Parallel()
	proxy := echo(t)
	conn := dial(t, 3*time.Second, proxy.Address)
	proxy.SetSilent(true)
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(conn, make([]byte, 20))
		read <- err
	}()
	for range 20 {
		time.Sleep(200 * time.Millisecond)
		_, err := io.WriteString(conn, "x")
		test.Must(t, err)
	}
	proxy.SetSilent(false)
	test.Is(t, <-read, nil, "reading beside a writer that gets on")
}

func TestTransport(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Header.Get("Accept-Encoding"))
	}))
	defer server.Close()
	proxy := faults.New(t, strings.TrimPrefix(server.URL, "http://"))
	transport := network.Transport(3 * time.Second)
	defer transport.CloseIdleConnections()
	get := func() (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+proxy.Address, nil)
		if err != nil {
			return "", err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	if got, err := get(); err != nil || got != "HTTP/1.1 " {
		t.Errorf("got %q, error %v", got, err)
	}
	proxy.SetSilent(true)
	if _, err := get(); !network.Unreachable(err) {
		t.Errorf("from a silent host: error %v", err)
	}
	proxy.SetSilent(false)
	_, err := get()
	test.Is(t, err, nil, "from a host that is back")
	proxy.SetRefusing(true)
	if _, err := get(); !network.Unreachable(err) {
		t.Errorf("from a host that refuses: error %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	_, certificate := (&http.Client{}).Get(tlsServer(t)) //nolint:bodyclose // it fails
	_, late := net.DialTimeout("tcp", "127.0.0.1:1", time.Nanosecond)
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{refused, true},
		{fmt.Errorf("talking: %w", refused), true},
		{late, true},
		{&net.DNSError{Err: "no such host", Name: "host.invalid", IsNotFound: true}, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		{io.ErrUnexpectedEOF, true},
		{net.ErrClosed, true},
		{os.ErrDeadlineExceeded, true},
		{context.Canceled, false},
		{fmt.Errorf("%w: %w", context.Canceled, net.ErrClosed), false},
		{certificate, false},
		{errors.New("no"), false},
		{os.ErrPermission, false},
	} {
		test.Equal(t, network.Unreachable(tt.err), tt.want, tt.err, "unreachable")
	}
}

// tlsServer returns the address of a server with an untrusted certificate.
func tlsServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}

func TestSilent(t *testing.T) {
	t.Parallel()
	for want, errs := range map[bool][]error{
		true: {
			fmt.Errorf("reading: %w", os.ErrDeadlineExceeded),
			fmt.Errorf("%w: %w", context.DeadlineExceeded, os.ErrDeadlineExceeded), // the end of a context and its cause
			&net.OpError{Op: "dial", Err: context.DeadlineExceeded},                // as the net package reports it
			&net.DNSError{IsTimeout: true},                                         // like http's TLS handshake time-out, no OpError
		},
		false: {nil, io.EOF, context.DeadlineExceeded, context.Canceled, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
	} {
		for _, err := range errs {
			test.Equal(t, network.Silent(err), want, err, "silent")
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"Files.Example.COM":      "files.example.com",
		"files.example.com.":     "files.example.com",
		"files.example.com:22":   "files.example.com",
		"files.example.com:2222": "files.example.com:2222",
		"192.0.2.1:22":           "192.0.2.1",
		"::1":                    "::1",
		"[0:0::1]:22":            "::1",
		"[::1]:2222":             "[::1]:2222",
		"[::ffff:192.0.2.1]":     "192.0.2.1",
	} {
		test.Equal(t, network.Host(address, "22"), want, address)
	}
}

func TestServiceHost(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://S3.Example.com":                  "s3.example.com",
		"https://s3.example.com:443/":             "s3.example.com",
		"http://s3.example.com:80":                "s3.example.com",
		"http://s3.example.com:9000":              "s3.example.com:9000",
		"http://127.0.0.1:10000/devstoreaccount1": "127.0.0.1:10000/devstoreaccount1",
		"https://s3.example.com/Some/Path/":       "s3.example.com/Some/Path",
	} {
		test.Equal(t, network.ServiceHost(address), want, address)
	}
}
