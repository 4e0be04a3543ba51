package azblob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestCutBlock: a block whose connection breaks is sent again.
func TestCutBlock(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	direct := a.first(t).(*driver)
	proxy := faults.New(t, a.address())
	d := a.at(proxy.Address).open(t, direct.name)
	defer d.Close()
	data := test.Random(9 << 20)
	proxy.CutAfter(6 << 20)
	info, err := d.Put(t.Context(), "key", bytes.NewReader(data), create)
	test.Is(t, err, nil)
	test.Equal(t, proxy.Cuts(), 1, "cuts")
	holds(t, direct, "key", data, info)
}

// TestCutWhileReading: a reader continues where it was cut, but never in another object.
func TestCutWhileReading(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	data := test.Random(1 << 20)
	for _, replaced := range []bool{false, true} {
		var reads atomic.Int32
		d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			if r.Method != http.MethodGet || reads.Add(1) > 1 {
				service.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			service.ServeHTTP(answer, r)
			maps.Copy(w.Header(), answer.Header())
			_, _ = w.Write(answer.Body.Bytes()[:300<<10])
			panic(http.ErrAbortHandler)
		})
		_, err := d.Put(t.Context(), "key", bytes.NewReader(data), create)
		test.Must(t, err)
		body, _, err := d.Open(t.Context(), "key", storagedrivers.Range{})
		test.Must(t, err)
		if replaced {
			_, err := direct.Put(t.Context(), "key", bytes.NewReader(test.Random(2<<20)), overwrite)
			test.Must(t, err)
		}
		got, err := io.ReadAll(body)
		if replaced && (err == nil || errors.Is(err, io.EOF) || !bytes.HasPrefix(data, got)) {
			t.Errorf("%d bytes of a replaced object, error %v", len(got), err)
		}
		if !replaced && (err != nil || !bytes.Equal(got, data)) {
			t.Errorf("%d bytes, error %v", len(got), err)
		}
		_ = body.Close()
	}
}

// TestRefusedWhileSending: there is no crash or race if the response arrives, and the upload ends,
// while the connection still reads a block.
func TestRefusedWhileSending(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, rand.Int64N(4<<20))
		refuse(w, http.StatusForbidden, "AuthorizationFailure")
	}))
	defer server.Close()
	d := (&account{endpoint: server.URL + "/" + servers.AzuriteAccount}).open(t, "pictures")
	defer d.Close()
	data := test.Random(20 << 20)
	for range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(50*time.Millisecond))
		_, err := d.Put(ctx, "key", bytes.NewReader(data), overwrite)
		cancel()
		test.Fails(t, err, "stored, but refused")
	}
}

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

// commits reports whether a request makes an object visible.
func commits(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Get("comp") != "block"
}

// through returns two drivers on a container of a. The requests of the first pass through handle.
func through(t *testing.T, a *account, handle cloudtest.Handle) (*driver, *driver) {
	t.Helper()
	direct := a.first(t).(*driver)
	d := a.at(strings.TrimPrefix(cloudtest.Between(t, "http://"+a.address(), handle), "http://")).open(t, direct.name)
	t.Cleanup(func() {
		_ = d.Close()
		_ = direct.Close()
	})
	return d, direct
}

// cloud returns the account as shared tests use it.
func (a *account) cloud() cloudtest.Service {
	return cloudtest.Service{
		Endpoint: "http://" + a.address(), Commits: commits, Part: 2 * blockSize,
		Bucket: func(t *testing.T) string { return a.first(t).(*driver).name },
		Open: func(t *testing.T, endpoint, bucket, prefix string) storagedrivers.Driver {
			c := a.at(strings.TrimPrefix(endpoint, "http://")).config(bucket)
			c.Prefix = prefix
			d, err := newDriver(c)
			test.Must(t, err)
			t.Cleanup(func() { _ = d.Close() })
			return d
		},
		Store: func(t *testing.T, d storagedrivers.Driver, name string) error {
			_, err := d.(*driver).container.NewBlockBlobClient(name).UploadBuffer(t.Context(), []byte("x"), nil)
			return err
		},
		Head: func(t *testing.T, d storagedrivers.Driver, key string) storagedrivers.PutOptions {
			got, err := d.(*driver).blob(key).GetProperties(t.Context(), nil)
			test.Must(t, err)
			_, id, err := d.(*driver).look(t.Context(), key)
			test.Must(t, err)
			return storagedrivers.PutOptions{ID: id, ContentType: value(got.ContentType), CacheControl: value(got.CacheControl)}
		},
		Names: func(t *testing.T, d storagedrivers.Driver) []string { return blobs(t, d.(*driver)) },
	}
}

func TestLostReply(t *testing.T) {
	t.Parallel()
	cloudtest.LostReply(t, (&account{endpoint: startFake(t)}).cloud())
}

func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	cloudtest.RepeatedRequest(t, (&account{endpoint: startFake(t)}).cloud())
}

func TestCancelledCommit(t *testing.T) {
	t.Parallel()
	cloudtest.CancelledCommit(t, (&account{endpoint: startFake(t)}).cloud())
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

// TestSilentCommit: the driver waits only briefly for a cancelled request.
func TestSilentCommit(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
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
