package sftp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/internal/network"
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
	must(t, err)
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	t.Cleanup(func() { is(t, s.Close(), nil) })
	is(t, s.Check(t.Context()), nil)
	return d, s, proxy
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is asserts that err matches want; nil matches nil.
func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func isNot(t *testing.T, err, other error) {
	t.Helper()
	if errors.Is(err, other) {
		t.Errorf("error %v, which must not match %v", err, other)
	}
}

// within asserts that f takes no longer than most.
func within(t *testing.T, most time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > most {
		t.Errorf("%s took %v, want at most %v", what, took, most)
	}
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited for %s", what)
		}
	}
}

func randomBytes(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
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
	is(t, err, nil)
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

func TestRefusingHost(t *testing.T) {
	t.Parallel()
	d, _, proxy := behindProxy(t, newHost(t), network.DefaultTimeout)
	proxy.SetRefusing(true)
	within(t, soon, "all operations", func() {
		for name, err := range everyOp(t.Context(), d) {
			if !errors.Is(err, storagedrivers.ErrUnavailable) {
				t.Errorf("%s: error %v, want unavailable", name, err)
			}
		}
	})
	proxy.SetRefusing(false)
	for name, err := range everyOp(t.Context(), d) {
		if errors.Is(err, storagedrivers.ErrUnavailable) {
			t.Errorf("%s after the host is back: error %v", name, err)
		}
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

// everyOp calls every method of d, and returns the errors by the name of the operation.
func everyOp(ctx context.Context, d *driver) map[string]error {
	_, putErr := d.Put(ctx, "f/object", strings.NewReader("text"), overwrite)
	body, _, openErr := d.Open(ctx, "f/object", all)
	if openErr == nil {
		openErr = body.Close()
	}
	_, statErr := d.Stat(ctx, "f/object")
	_, listErr := d.List(ctx, storagedrivers.ListOptions{})
	return map[string]error{
		"put": putErr, "open": openErr, "stat": statErr, "list": listErr,
		"delete": d.Delete(ctx, "f/object", storagedrivers.DeleteOptions{}), "check": d.Check(ctx),
	}
}

// TestCancelWithSilentHost: callers return when their context ends, whatever the host does.
func TestCancelWithSilentHost(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d, _, proxy := behindProxy(t, h, time.Minute)
	content := randomBytes(1 << 20)
	put(t, d, "object", content, create)
	ctx, cancel := context.WithCancel(t.Context())
	body, _, err := d.Open(ctx, "object", all)
	is(t, err, nil)
	proxy.SetSilent(true)
	time.AfterFunc(100*time.Millisecond, cancel)
	within(t, soon, "reading", func() {
		_, err := body.Read(make([]byte, 100))
		is(t, err, context.Canceled)
	})
	is(t, body.Close(), nil)
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	within(t, 100*time.Millisecond+tidying+soon, "all operations", func() {
		for name, err := range everyOp(ctx, d) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v, want deadline exceeded", name, err)
			}
		}
	})
	proxy.SetSilent(false)
	has(t, d, "object", content)
	eventually(t, "the temporary file to go", func() bool {
		return slices.Equal(filesBelow(t, h.folder), []string{"object"})
	})
}

// TestCutWhilePutting: if a connection is cut during an upload, one retry succeeds and nothing is
// left.
func TestCutWhilePutting(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	_, s, proxy := behindProxy(t, h, network.DefaultTimeout)
	content := randomBytes(10 << 20)
	for i, mode := range []storagedrivers.PutOptions{create, overwrite, overwrite} {
		proxy.CutAfter(int64(len(content) / 2))
		info, err := s.Put(t.Context(), "folder/object", bytes.NewReader(content), mode)
		if err != nil || info.Size != int64(len(content)) {
			t.Errorf("stored %d bytes, error %v", info.Size, err)
		}
		if proxy.Cuts() != i+1 {
			t.Errorf("%d connections were cut, want %d", proxy.Cuts(), i+1)
		}
	}
	eventually(t, "the temporary files to go", func() bool {
		return slices.Equal(filesBelow(t, h.folder), []string{"folder/object"})
	})
}

// TestCutBeforeReading: if a connection is cut between opening an object and its first byte, the
// object is read over another one.
func TestCutBeforeReading(t *testing.T) {
	t.Parallel()
	_, s, proxy := behindProxy(t, newHost(t), network.DefaultTimeout)
	content := randomBytes(3 << 20)
	put(t, s, "object", content, create)
	o, err := s.OpenSeeker(t.Context(), "object")
	is(t, err, nil)
	proxy.CloseAll()
	got, err := io.ReadAll(o)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, want %d, error %v", len(got), len(content), err)
	}
	is(t, o.Close(), nil)
}

func TestCutWhileReading(t *testing.T) {
	t.Parallel()
	d, s, proxy := behindProxy(t, newHost(t), network.DefaultTimeout)
	content := randomBytes(10 << 20)
	put(t, d, "object", content, create)
	body, _, err := d.Open(t.Context(), "object", all)
	is(t, err, nil)
	if _, err := io.ReadFull(body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	proxy.CloseAll()
	_, err = io.Copy(io.Discard, body)
	is(t, err, storagedrivers.ErrUnavailable)
	is(t, body.Close(), nil)
	has(t, s, "object", content)
}

// TestNameIsBusy: an upload that waits too long for others of its name does not count as a failure
// of the host.
func TestNameIsBusy(t *testing.T) {
	t.Parallel()
	d, s, _ := behindProxy(t, newHost(t), 3*time.Second) // also a login on a slow machine
	unlock, err := naming.Lock(t.Context(), d.lockName("hot"))
	is(t, err, nil)
	_, err = d.Put(t.Context(), "hot", strings.NewReader("content"), overwrite)
	is(t, err, storagedrivers.ErrBusy)
	is(t, err, os.ErrDeadlineExceeded) // it is not repeated
	unlock()
	_, err = s.Put(t.Context(), "hot", strings.NewReader("content"), overwrite)
	is(t, err, nil)
}
