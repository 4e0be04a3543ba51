package sftp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
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
