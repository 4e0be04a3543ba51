package s3

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
)

// sizes of an object that is sent whole, and of one that is sent in parts.
var sizes = map[string]int{"whole": 100, "parts": partSize + 100}

func content(letter byte, size int) *bytes.Reader {
	return bytes.NewReader(bytes.Repeat([]byte{letter}, size))
}

func put(t *testing.T, d *driver, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) storagedrivers.Info {
	t.Helper()
	info, err := d.Put(t.Context(), key, r, opts)
	test.Must(t, err, "storing", key)
	return info
}

// has asserts that key contains size letters.
func has(t *testing.T, d *driver, key string, letter byte, size int) {
	t.Helper()
	body, info, err := d.Open(t.Context(), key, storagedrivers.Range{})
	if err != nil {
		t.Errorf("opening %s: %v", key, err)
		return
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || info.Size != int64(size) || !bytes.Equal(got, bytes.Repeat([]byte{letter}, size)) {
		t.Errorf("%s holds %d bytes, info of %d, error %v, want %d of %c", key, len(got), info.Size, err, size, letter)
	}
}

// commits reports whether a request makes an object appear.
func commits(r *http.Request) bool {
	query := r.URL.Query()
	return r.Method == http.MethodPut && !query.Has("partNumber") || r.Method == http.MethodPost && query.Has("uploadId")
}

// both runs a test with the service in the process and with the real one.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	t.Run("gofakes3", func(t *testing.T) {
		t.Parallel()
		test(t, fake(t))
	})
	t.Run("versitygw", func(t *testing.T) {
		t.Parallel()
		test(t, real(t))
	})
}

func TestLostReply(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) {
		c := s.fresh(t)
		direct := s.driver(t, c)
		for name, size := range sizes {
			var lost atomic.Int64
			lossy := s.behind(t, httptest.NewServer, func(r *http.Request) bool {
				return commits(r) && lost.Add(1) > 0
			})
			c.Endpoint = lossy.config.Endpoint
			d := lossy.driver(t, c)
			defer d.Close()
			d.conditions.Store(&conditions{accepted: true}) // no experiment through the proxy
			for i, opts := range []storagedrivers.PutOptions{create, overwrite} {
				letter := byte('a' + i)
				info := put(t, d, name, content(letter, size), opts)
				has(t, direct, name, letter, size)
				if stat, err := direct.Stat(t.Context(), name); err != nil || stat != info {
					t.Errorf("put returns %+v, stat %+v, error %v", info, stat, err)
				}
			}
			_, err := d.Put(t.Context(), name, content('c', size), create)
			test.Is(t, err, fs.ErrExist, "creating", name, "again")
			has(t, direct, name, 'b', size)
			if lost.Load() < 2 {
				t.Errorf("%d replies were lost, want 2 at least", lost.Load())
			}
		}
		if got := leftovers(t, direct); len(got) != 2 {
			t.Errorf("the bucket has %q, want two objects", got)
		}
	})
}

// TestRepeatedRequest: a proxy repeats the request that creates an object, and returns the second
// response.
func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	s := real(t)
	target, err := url.Parse(s.config.Endpoint)
	test.Must(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		times := 1
		if commits(r) {
			times = 2
		}
		for i := range times {
			again := r.Clone(r.Context())
			again.RequestURI, again.Body = "", io.NopCloser(bytes.NewReader(body))
			again.URL.Scheme, again.URL.Host = target.Scheme, target.Host
			answer, err := http.DefaultTransport.RoundTrip(again)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			defer answer.Body.Close()
			if i == times-1 {
				maps.Copy(w.Header(), answer.Header)
				w.WriteHeader(answer.StatusCode)
				io.Copy(w, answer.Body)
			}
		}
	}))
	t.Cleanup(server.Close)
	c := s.fresh(t)
	c.Endpoint = server.URL
	d := s.driver(t, c)
	defer d.Close()
	d.conditions.Store(&conditions{accepted: true, kept: true})
	for name, size := range sizes {
		put(t, d, name, content('a', size), create)
		has(t, d, name, 'a', size)
	}
}

// TestCancelledCommit: a caller that cancels while an object appears gets the outcome.
func TestCancelledCommit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) {
		c := s.fresh(t)
		direct := s.driver(t, c)
		for name, size := range sizes {
			ctx, cancel := context.WithCancel(t.Context())
			slow := s.behind(t, httptest.NewServer, func(r *http.Request) bool {
				if commits(r) {
					cancel()
					time.Sleep(50 * time.Millisecond)
				}
				return false
			})
			c.Endpoint = slow.config.Endpoint
			d := slow.driver(t, c)
			defer d.Close()
			info, err := d.Put(ctx, name, content('a', size), overwrite)
			if err != nil || info.Size != int64(size) {
				t.Errorf("storing %s: %d bytes, error %v", name, info.Size, err)
			}
			has(t, direct, name, 'a', size)
		}
	})
}

func holds(t *testing.T, d *driver, want []string) {
	t.Helper()
	got := leftovers(t, d)
	slices.Sort(got)
	slices.Sort(want)
	test.Same(t, got, want, "the bucket has")
}
