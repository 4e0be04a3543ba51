// Package cloudtest has the tests that the drivers of cloud services share: commits whose outcome
// is in doubt, headers, and names of others. What all drivers must do is in package drivertest.
// Begin with [Service].
package cloudtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
)

// Service is a service with a driver.
type Service struct {
	// Endpoint is its URL, without a path.
	Endpoint string
	// Bucket makes an empty bucket.
	Bucket func(t *testing.T) string
	// Open returns a driver on the names of a bucket below prefix. It reaches the service at endpoint,
	// and is closed at the end of the test.
	Open func(t *testing.T, endpoint, bucket, prefix string) storagedrivers.Driver
	// Commits reports whether a request makes an object appear.
	Commits func(r *http.Request) bool
	// Lost is the number of replies that are lost to one upload. 0 means all.
	Lost int64
	// Part is the size of a part of a large object.
	Part int
	// Store stores an object under any name.
	Store func(t *testing.T, d storagedrivers.Driver, name string) error
	// Head returns the headers of an object, and the ID of its upload.
	Head func(t *testing.T, d storagedrivers.Driver, key string) storagedrivers.PutOptions
	// Names returns all names in the bucket of a driver, and those of unfinished uploads.
	Names func(t *testing.T, d storagedrivers.Driver) []string
}

// Handle handles a request to a service, which may carry it out.
type Handle func(w http.ResponseWriter, r *http.Request, service http.Handler)

// Between starts a proxy in front of the service at endpoint, and returns its URL. handle gets
// every request; without it the service does.
func Between(t testing.TB, endpoint string, handle Handle) string {
	t.Helper()
	server := httptest.NewServer(nil)
	server.Config.Handler = Proxy(t, endpoint, handle)
	t.Cleanup(server.Close)
	return server.URL
}

// Proxy returns the handler of [Between].
func Proxy(t testing.TB, endpoint string, handle Handle) http.Handler {
	t.Helper()
	target, err := url.Parse(endpoint)
	test.Must(t, err)
	service := &httputil.ReverseProxy{
		// The name of the host stays: it is signed, and the service answers with addresses of uploads.
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	if handle == nil {
		return service
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, service) })
}

// buffered reads the body of r, and returns a function that returns r with it.
func buffered(r *http.Request) func() *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return func() *http.Request {
		r := r.Clone(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(body))
		return r
	}
}

// Has asserts that key holds want and has the same info as before.
func Has(t testing.TB, d storagedrivers.Driver, key string, want []byte, info storagedrivers.Info) {
	t.Helper()
	body, opened, err := d.Open(t.Context(), key, storagedrivers.Range{})
	test.Must(t, err, "opening", key)
	defer body.Close()
	got, err := io.ReadAll(body)
	test.Is(t, err, nil, "reading", key)
	if !bytes.Equal(got, want) {
		t.Errorf("%q holds %d bytes, want %d others", key, len(got), len(want))
	}
	test.Equal(t, opened, info, key)
	stat, err := d.Stat(t.Context(), key)
	test.Is(t, err, nil, "stat of", key)
	test.Equal(t, stat, info, key)
}

// each runs a test with a small object and with one in parts. The driver reaches the service
// through handle, and direct without it.
func (s Service) each(
	t *testing.T, sizes []int, run func(t *testing.T, size int, direct storagedrivers.Driver, through func(Handle) storagedrivers.Driver),
) {
	t.Helper()
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			bucket := s.Bucket(t)
			run(t, size, s.Open(t, s.Endpoint, bucket, ""), func(handle Handle) storagedrivers.Driver {
				return s.Open(t, Between(t, s.Endpoint, handle), bucket, "")
			})
		})
	}
}

// LostReply tests that an upload that was carried out succeeds although its reply is lost, and that
// another upload of its name does not.
func LostReply(t *testing.T, s Service) {
	s.each(t, []int{0, 100, s.Part, s.Part + 100}, func(t *testing.T, size int, direct storagedrivers.Driver, through func(Handle) storagedrivers.Driver) {
		var lost atomic.Int64
		d := through(func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			if !s.Commits(r) || s.Lost > 0 && lost.Load() == s.Lost {
				service.ServeHTTP(w, r)
				return
			}
			lost.Add(1)
			service.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
		for i, opts := range []storagedrivers.PutOptions{create, overwrite} {
			lost.Store(0)
			content := test.Random(size + i)
			info, err := d.Put(t.Context(), "a/b.png", bytes.NewReader(content), opts)
			test.Must(t, err)
			test.Equal(t, lost.Load(), 1, "lost replies")
			Has(t, direct, "a/b.png", content, info)
			_, err = d.Put(t.Context(), "a/b.png", bytes.NewReader(test.Random(size+2)), create)
			test.Is(t, err, fs.ErrExist, "creating it again")
			Has(t, direct, "a/b.png", content, info)
		}
		test.Same(t, s.Names(t, direct), []string{"a/b.png"})
	})
}

// RepeatedRequest tests an upload whose last request a proxy repeats. It returns the second
// response.
func RepeatedRequest(t *testing.T, s Service) {
	s.each(t, []int{100, s.Part + 100}, func(t *testing.T, size int, direct storagedrivers.Driver, through func(Handle) storagedrivers.Driver) {
		d := through(func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			again := buffered(r)
			if s.Commits(r) {
				service.ServeHTTP(httptest.NewRecorder(), again())
			}
			service.ServeHTTP(w, again())
		})
		content := test.Random(size)
		info, err := d.Put(t.Context(), "a/b.png", bytes.NewReader(content), create)
		test.Must(t, err)
		Has(t, direct, "a/b.png", content, info)
	})
}

// CancelledCommit tests that a caller who cancels while an object appears gets the outcome.
func CancelledCommit(t *testing.T, s Service) {
	s.each(t, []int{100, s.Part + 100}, func(t *testing.T, size int, direct storagedrivers.Driver, through func(Handle) storagedrivers.Driver) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d := through(func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			request := buffered(r)
			if s.Commits(r) {
				time.Sleep(200 * time.Millisecond) // the client also knows that it has sent all
				cancel()
				time.Sleep(100 * time.Millisecond)
			}
			service.ServeHTTP(w, request())
		})
		content := test.Random(size)
		info, err := d.Put(ctx, "a/b.png", bytes.NewReader(content), overwrite)
		test.Must(t, err)
		Has(t, direct, "a/b.png", content, info)
	})
}

// Headers tests that an object has the headers of its upload, and a copy within the service those
// of its own options.
func Headers(t *testing.T, s Service) {
	const from, to = "a b/ü+?%2F.txt", "b.png"
	d := s.Open(t, s.Endpoint, s.Bucket(t), "some folder+")
	for _, size := range []int{100, s.Part + 100} {
		content := test.Random(size)
		opts := storagedrivers.PutOptions{
			Mode: storagedrivers.Overwrite, ID: "FIRST", ContentType: "text/plain", CacheControl: "public, max-age=60",
		}
		source, err := d.Put(t.Context(), from, bytes.NewReader(content), opts)
		test.Must(t, err)
		opts.Mode = 0
		test.Equal(t, s.Head(t, d, from), opts)
		for _, cacheControl := range []string{"", "max-age=5"} {
			opts := storagedrivers.PutOptions{ID: "OWN", ContentType: "image/png", CacheControl: cacheControl}
			want := opts
			opts.Mode, opts.Source = storagedrivers.Overwrite, &source
			info, err := d.Put(t.Context(), to, nil, opts)
			test.Must(t, err, "copying")
			Has(t, d, to, content, info)
			test.Equal(t, s.Head(t, d, to), want)
		}
	}
}

// Names tests that names outside of the prefix and invalid ones are not listed, nor folders that
// cannot begin a valid key, and that they do not end a listing. The service cannot store those of
// never.
func Names(t *testing.T, s Service, never ...string) {
	const placeholder = "in/g/" // of an empty folder
	bucket := s.Bucket(t)
	d := s.Open(t, s.Endpoint, bucket, "in")
	names := []string{"in/.hidden/x", "in/.x", "in//x", "in/", "in", "in/b//x", "in/b/.x", "in/end./x", "in/e.", placeholder, "ink", "ink/x", "out/x"}
	for _, name := range names {
		if !slices.Contains(never, name) {
			test.Must(t, s.Store(t, d, name), "storing", name)
		}
	}
	want := []string{"a", "b/c", "b/d", "f", "z", "z+ %41/x"}
	for _, key := range want {
		_, err := d.Put(t.Context(), key, bytes.NewReader([]byte(key)), create)
		test.Must(t, err)
		if !slices.Contains(s.Names(t, s.Open(t, s.Endpoint, bucket, "")), "in/"+key) {
			t.Errorf("%q is not below the prefix", key)
		}
	}
	parents := []string{"b/", "g/", "z+ %41/"}
	if slices.Contains(never, placeholder) {
		parents = []string{"b/", "z+ %41/"}
	}
	for _, limit := range []int{1, 2, 10} {
		objects, _ := listed(t, d, storagedrivers.ListOptions{Limit: limit})
		test.Same(t, objects, want, "by", limit)
		objects, folders := listed(t, d, storagedrivers.ListOptions{Limit: limit, Shallow: true})
		test.Same(t, objects, []string{"a", "f", "z"}, "by", limit)
		test.Same(t, folders, parents, "by", limit)
	}
	test.Is(t, d.Check(t.Context()), nil)
}

// listed returns the objects and the folders of all pages.
func listed(t *testing.T, d storagedrivers.Driver, opts storagedrivers.ListOptions) (objects, folders []string) {
	t.Helper()
	for {
		page, err := d.List(t.Context(), opts)
		test.Must(t, err)
		for _, info := range page.Objects {
			objects = append(objects, info.Key)
		}
		folders = append(folders, page.Folders...)
		if opts.Cursor = page.Next; opts.Cursor == "" {
			return objects, folders
		}
	}
}
