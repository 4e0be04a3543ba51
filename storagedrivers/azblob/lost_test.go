package azblob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
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

// holds asserts that key contains data and that info describes it.
func holds(t *testing.T, d storagedrivers.Driver, key string, data []byte, info storagedrivers.Info) {
	t.Helper()
	body, opened, err := d.Open(t.Context(), key, storagedrivers.Range{})
	if err != nil {
		t.Errorf("opening %q: %v", key, err)
		return
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%q holds %d bytes, want %d, error %v", key, len(got), len(data), err)
	}
	test.Equal(t, opened, info, key, "opened as")
}

func missing(t *testing.T, d storagedrivers.Driver, key string) {
	t.Helper()
	_, err := d.Stat(t.Context(), key)
	test.Is(t, err, fs.ErrNotExist, "stat of", key)
}

// through returns two drivers on a container of a. The requests of the first pass through handle.
func through(
	t *testing.T, a *account, handle func(w http.ResponseWriter, r *http.Request, service http.Handler),
) (*driver, *driver) {
	t.Helper()
	direct := a.first(t).(*driver)
	target, err := url.Parse(a.endpoint)
	test.Must(t, err)
	service := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	service.ErrorLog = log.New(io.Discard, "", 0)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, service) }))
	t.Cleanup(proxy.Close)
	d := (&account{endpoint: proxy.URL + target.Path}).open(t, direct.name)
	t.Cleanup(func() {
		_ = d.Close()
		_ = direct.Close()
	})
	return d, direct
}

// commits reports whether a request makes an object visible.
func commits(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Get("comp") != "block"
}

// TestLostReply: the write is carried out, and the reply is lost.
func TestLostReply(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	for name, tt := range map[string]struct {
		size int
		opts storagedrivers.PutOptions
	}{
		"small": {100, create}, "large": {9 << 20, create}, "empty": {0, create},
		"small overwrite": {100, overwrite}, "large overwrite": {9 << 20, overwrite},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var writes atomic.Int32
			d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
				if !commits(r) {
					service.ServeHTTP(w, r)
					return
				}
				writes.Add(1)
				service.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			})
			data := test.Random(tt.size)
			info, err := d.Put(t.Context(), "a/b.png", bytes.NewReader(data), tt.opts)
			if err != nil || writes.Load() != 1 {
				t.Fatalf("stored with %d writes, error %v", writes.Load(), err)
			}
			holds(t, direct, "a/b.png", data, info)
			_, err = d.Put(t.Context(), "a/b.png", bytes.NewReader(test.Random(tt.size+1)), create)
			test.Is(t, err, fs.ErrExist, "a fresh put")
		})
	}
}

// TestLongID: blocks of different uploads have different names, whatever the length of the ID.
func TestLongID(t *testing.T) {
	t.Parallel()
	d := (&account{endpoint: startFake(t)}).first(t).(*driver)
	defer d.Close()
	data := test.Random(9 << 20)
	opts := storagedrivers.PutOptions{ID: strings.Repeat("A", 100)}
	info, err := d.Put(t.Context(), "a/b.png", bytes.NewReader(data), opts)
	test.Must(t, err)
	holds(t, d, "a/b.png", data, info)
}

// TestRepeatedRequest: a proxy repeats the request that creates an object, and returns the second
// response.
func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	for _, size := range []int{100, 9 << 20} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel()
			d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
				if commits(r) {
					body, _ := io.ReadAll(r.Body)
					first := r.Clone(r.Context())
					first.Body = io.NopCloser(bytes.NewReader(body))
					service.ServeHTTP(httptest.NewRecorder(), first)
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
				service.ServeHTTP(w, r)
			})
			data := test.Random(size)
			info, err := d.Put(t.Context(), "a/b.png", bytes.NewReader(data), create)
			test.Must(t, err)
			holds(t, direct, "a/b.png", data, info)
		})
	}
}

// TestLostRequest: the write is not carried out, and the response is lost or says so.
func TestLostRequest(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	for name, lose := range map[string]func(w http.ResponseWriter){
		"aborted": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"busy":    func(w http.ResponseWriter) { refuse(w, http.StatusServiceUnavailable, "ServerBusy") },
	} {
		for _, size := range []int{100, 9 << 20} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var writes atomic.Int32
				d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
					if r.Method == http.MethodPut && writes.Add(1) == 3 || commits(r) && writes.Load() < 3 {
						_, _ = io.Copy(io.Discard, r.Body)
						lose(w)
						return
					}
					service.ServeHTTP(w, r)
				})
				data := test.Random(size)
				if size == 100 {
					_, err := d.Put(t.Context(), "a/b.png", bytes.NewReader(data), create)
					test.Is(t, err, storagedrivers.ErrUnavailable, "the driver")
					missing(t, direct, "a/b.png")
				}
				s := storagedrivers.New("test", d, storagedrivers.Options{Close: func() error { return nil }})
				info, err := s.Put(t.Context(), "a/b.png", bytes.NewReader(data), create)
				test.Must(t, err)
				holds(t, direct, "a/b.png", data, info)
			})
		}
	}
}

// TestCancelWhileCommitting: the driver waits briefly for a running request and returns its
// outcome.
func TestCancelWhileCommitting(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			if commits(r) {
				cancel()
				time.Sleep(100 * time.Millisecond)
			}
			service.ServeHTTP(w, r)
		})
		info, err := d.Put(ctx, "key", bytes.NewReader(test.Random(100)), create)
		test.Must(t, err, "stored, but the error is")
		holds(t, direct, "key", test.Random(100), info)
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			_, _ = io.Copy(io.Discard, r.Body)
			if commits(r) {
				cancel()
				<-r.Context().Done()
				return
			}
			service.ServeHTTP(w, r)
		})
		d.timeout = 200 * time.Millisecond
		start := time.Now()
		_, err := d.Put(ctx, "key", bytes.NewReader(test.Random(100)), create)
		if took := time.Since(start); !errors.Is(err, context.Canceled) || took > 20*time.Second {
			t.Errorf("error %v after %v, want that it was cancelled", err, took)
		}
		missing(t, direct, "key")
	})
}

// TestDroppedBlocks: an upload whose blocks were discarded by other writers is sent again, a
// bounded number of times.
func TestDroppedBlocks(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	data := test.Random(5 << 20)
	for _, times := range []int32{1, attempts} {
		var writes atomic.Int32
		d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			if commits(r) && writes.Add(1) <= times {
				refuse(w, http.StatusBadRequest, "InvalidBlockList")
				return
			}
			service.ServeHTTP(w, r)
		})
		info, err := d.Put(t.Context(), "key", bytes.NewReader(data), create)
		if times < attempts {
			test.Must(t, err)
			holds(t, direct, "key", data, info)
			continue
		}
		if !errors.Is(err, storagedrivers.ErrUnavailable) || writes.Load() != attempts {
			t.Errorf("error %v after %d commits, want unavailable after %d", err, writes.Load(), attempts)
		}
		missing(t, direct, "key")
	}
}
