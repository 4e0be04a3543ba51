package gcs

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/options"
)

const mib = 1 << 20

var (
	create    = storagedrivers.PutOptions{}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
)

func zeros(n int) *bytes.Reader { return bytes.NewReader(make([]byte, n)) }

// TestCut: an upload whose connection breaks leaves nothing, and Storage retries it.
func TestCut(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	for name, tt := range map[string]struct {
		size int
		at   int64
		want error // of the driver
	}{
		"small":        {200_000, 100_000, storagedrivers.ErrUnavailable},
		"almost whole": {200_000, 200_100, storagedrivers.ErrUnavailable},
		"large":        {20 * mib, 12 * mib, nil}, // the chunk is repeated
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket := newBucket(t, server)
			proxy := faults.New(t, strings.TrimPrefix(server.Endpoint, "http://"))
			d := open(t, Config{Bucket: bucket, Endpoint: "http://" + proxy.Address})
			storage := storagedrivers.New("test", d, storagedrivers.Options{})
			defer storage.Close()
			for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
				proxy.CutAfter(tt.at)
				_, err := d.Put(t.Context(), "driver", zeros(tt.size), opts)
				if !errors.Is(err, tt.want) || proxy.Cuts() == 0 {
					t.Errorf("error %v after %d cuts, want %v", err, proxy.Cuts(), tt.want)
				}
				if names := server.Objects(t, bucket); tt.want != nil && len(names) > 0 {
					t.Errorf("left behind: %q", names)
				}
			}
			proxy.CutAfter(tt.at)
			info, err := storage.Put(t.Context(), "storage", zeros(tt.size), create)
			if err != nil || info.Size != int64(tt.size) {
				t.Errorf("stored %d bytes, error %v", info.Size, err)
			}
		})
	}
}

// TestDeadHost: every method fails soon, and works again when the host is back.
func TestDeadHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	server := inProcess(t)
	const timeout = 5 * time.Second
	for name, kill := range map[string]func(*faults.Proxy, bool){
		"refusing": (*faults.Proxy).SetRefusing,
		"silent":   (*faults.Proxy).SetSilent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := faults.New(t, strings.TrimPrefix(server.Endpoint, "http://"))
			d := opened(t, Config{
				Bucket: newBucket(t, server), Endpoint: "http://" + proxy.Address, Timeout: options.Duration(timeout),
			})
			if err := d.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			kill(proxy, true)
			start := time.Now()
			for op, err := range everyMethod(t.Context(), d) {
				if !errors.Is(err, storagedrivers.ErrUnavailable) {
					t.Errorf("%s: error %v", op, err)
				}
			}
			// One of the calls also looks at the outcome.
			if took := time.Since(start); took > 2*timeout+30*time.Second {
				t.Errorf("it took %s", took)
			}
			proxy.CloseAll() // or data under way arrives late
			kill(proxy, false)
			if _, err := d.Put(t.Context(), "key", zeros(mib), overwrite); err != nil {
				t.Errorf("storing in a host that is back: %v", err)
			}
			if err := d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{}); err != nil {
				t.Errorf("deleting in a host that is back: %v", err)
			}
		})
	}
}

// hook is a source that calls a function once, when half of it is read.
type hook struct {
	*bytes.Reader
	do func()
}

func (h *hook) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if h.do != nil && int64(h.Len()) < h.Size()/2 {
		h.do()
		h.do = nil
	}
	return n, err
}

// TestSilentOnTheWay: an upload and a download end if the host becomes silent.
func TestSilentOnTheWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	server := inProcess(t)
	bucket := newBucket(t, server)
	proxy := faults.New(t, strings.TrimPrefix(server.Endpoint, "http://"))
	direct := opened(t, Config{Bucket: bucket, Endpoint: server.Endpoint})
	if _, err := direct.Put(t.Context(), "old", zeros(30*mib), create); err != nil {
		t.Fatal(err)
	}
	d := opened(t, Config{Bucket: bucket, Endpoint: "http://" + proxy.Address, Timeout: options.Duration(5 * time.Second)})
	body, _, err := d.Open(t.Context(), "old", storagedrivers.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	start := time.Now()
	_, err = d.Put(t.Context(), "new", &hook{zeros(30 * mib), func() { proxy.SetSilent(true) }}, create)
	if !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("storing: error %v", err)
	}
	if _, err = io.Copy(io.Discard, body); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("reading: error %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	if names := server.Objects(t, bucket); len(names) != 1 {
		t.Errorf("the bucket has %q", names)
	}
}

// TestBrokenDownload: missing bytes are requested again, a bounded number of times.
func TestBrokenDownload(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	for name, tt := range map[string]struct {
		times int64
		want  error
	}{
		"once":   {1, nil},
		"always": {1 << 40, storagedrivers.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var downloads atomic.Int64
			m := &meddler{answer: func(r *http.Request, answer *httptest.ResponseRecorder) {
				if isDownload(r) && downloads.Add(1) <= tt.times {
					answer.Body.Truncate(min(answer.Body.Len(), 1000)) // less than Content-Length
				}
			}}
			d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: m.before(t, server)})
			if _, err := d.Put(t.Context(), "key", bytes.NewReader(content), create); err != nil {
				t.Fatal(err)
			}
			body, _, err := d.Open(t.Context(), "key", storagedrivers.Range{})
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			got, err := io.ReadAll(body)
			if !errors.Is(err, tt.want) || !bytes.HasPrefix(content, got) || err == nil && len(got) != len(content) {
				t.Errorf("%d bytes, error %v, want %v", len(got), err, tt.want)
			}
			if n := downloads.Load(); n > maxRequests {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestReplacedAllTheTime: Open returns an error if the object is replaced in each attempt.
func TestReplacedAllTheTime(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	bucket := newBucket(t, server)
	direct := opened(t, Config{Bucket: bucket, Endpoint: server.Endpoint})
	put := func() {
		if _, err := direct.Put(t.Context(), "key", zeros(100), overwrite); err != nil {
			t.Error(err)
		}
	}
	put()
	m := &meddler{answer: func(r *http.Request, _ *httptest.ResponseRecorder) {
		if !isDownload(r) {
			put()
		}
	}}
	d := opened(t, Config{Bucket: bucket, Endpoint: m.before(t, server)})
	if _, _, err := d.Open(t.Context(), "key", storagedrivers.Range{}); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	if n := m.calls.Load(); n != 2*maxGenerations {
		t.Errorf("%d requests", n)
	}
}
