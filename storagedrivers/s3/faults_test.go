package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/options"
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
	if err != nil {
		t.Fatalf("storing %s: %v", key, err)
	}
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
			if !errors.Is(err, fs.ErrExist) {
				t.Errorf("creating %s again: %v", name, err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
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

func TestRefusingHost(t *testing.T) {
	t.Parallel()
	s := fake(t)
	d, proxy := proxied(t, s, 5*time.Second)
	put(t, d, "object", content('a', 10), create)
	proxy.SetRefusing(true)
	all(t, d, 30*time.Second)
	proxy.SetRefusing(false)
	has(t, d, "object", 'a', 10)
	put(t, d, "new", content('a', partSize+1), create)
}

func TestSilentHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	s := fake(t)
	const timeout = 5 * time.Second
	d, proxy := proxied(t, s, timeout)
	put(t, d, "object", content('a', 10), create)
	proxy.SetSilent(true)
	all(t, d, 3*timeout)
	proxy.SetSilent(false)
	has(t, d, "object", 'a', 10)
	put(t, d, "new", content('a', partSize+1), create)
}

func proxied(t *testing.T, s *service, timeout time.Duration) (*driver, *faults.Proxy) {
	t.Helper()
	c := s.fresh(t)
	address, err := url.Parse(c.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faults.New(t, address.Host)
	c.Endpoint, c.Timeout = "http://"+proxy.Address, options.Duration(timeout)
	d := s.driver(t, c)
	t.Cleanup(func() { d.Close() })
	return d, proxy
}

// all asserts that every method, called beside the others, fails as unavailable in time. Writes use their own key, because a
// silent network may deliver them later.
func all(t *testing.T, d *driver, within time.Duration) {
	t.Helper()
	ctx := t.Context()
	var calls sync.WaitGroup
	for what, try := range map[string]func() error{
		"put": func() error {
			_, err := d.Put(ctx, "other", content('b', 10), overwrite)
			return err
		},
		"put in parts": func() error {
			_, err := d.Put(ctx, "other", content('b', partSize+1), overwrite)
			return err
		},
		"open": func() error {
			_, _, err := d.Open(ctx, "object", storagedrivers.Range{})
			return err
		},
		"stat": func() error {
			_, err := d.Stat(ctx, "object")
			return err
		},
		"list": func() error {
			_, err := d.List(ctx, storagedrivers.ListOptions{})
			return err
		},
		"delete": func() error { return d.Delete(ctx, "other", storagedrivers.DeleteOptions{}) },
		"check":  func() error { return d.Check(ctx) },
	} {
		calls.Go(func() {
			start := time.Now()
			err := try()
			if !errors.Is(err, storagedrivers.ErrUnavailable) {
				t.Errorf("%s: error %v, want unavailable", what, err)
			}
			if took := time.Since(start); took > within {
				t.Errorf("%s took %v, want %v at most", what, took, within)
			}
		})
	}
	calls.Wait()
}

// TestCutConnection: if a connection is cut during an upload, the object is stored completely or
// not at all. A further upload succeeds.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) {
		d, proxy := proxied(t, s, 5*time.Second)
		if err := d.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		storage := storagedrivers.New("test", d, storagedrivers.Options{Close: func() error { return nil }})
		const size = 2*partSize + 100
		var want []string
		for _, at := range []int64{0, 10_000, partSize, size - 50, size + 1000} {
			key := fmt.Sprint("cut at ", at)
			proxy.CutAfter(at)
			_, err := d.Put(t.Context(), key, content('a', size), create)
			switch {
			case err == nil: // a part was repeated
				has(t, d, key, 'a', size)
				want = append(want, key)
			case !errors.Is(err, storagedrivers.ErrUnavailable):
				t.Errorf("%s: error %v, want unavailable", key, err)
			}
			proxy.CutAfter(-1)
			holds(t, d, want)

			key += " again"
			proxy.CutAfter(at)
			if _, err := storage.Put(t.Context(), key, content('b', size), create); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			proxy.CutAfter(-1)
			has(t, d, key, 'b', size)
			want = append(want, key)
			holds(t, d, want)
		}
		if proxy.Cuts() == 0 {
			t.Error("nothing was cut")
		}
	})
}

func holds(t *testing.T, d *driver, want []string) {
	t.Helper()
	got := leftovers(t, d)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the bucket has %q, want %q", got, want)
	}
}
