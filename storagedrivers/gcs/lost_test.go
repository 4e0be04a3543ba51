package gcs

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// meddler is a proxy in front of a server that can change requests and responses.
type meddler struct {
	// request may change r before it is forwarded; nil changes nothing.
	request func(r *http.Request) *http.Request
	// answer may change the response to r, or panic with http.ErrAbortHandler to lose it; nil
	// changes nothing.
	answer func(r *http.Request, answer *httptest.ResponseRecorder)
	calls  atomic.Int64
}

// before starts the meddler in front of server and returns its address.
func (m *meddler) before(t *testing.T, server servers.GCS) string {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	test.Must(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the address of an upload is the meddler's, too
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.request != nil {
			r = m.request(r)
		}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		m.calls.Add(1)
		if m.answer != nil {
			m.answer(r, answer)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func isUpload(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/upload/") }

func isDownload(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/media-test-") }

// commits reports whether a request makes an object visible.
func commits(r *http.Request) bool {
	contentRange := r.Header.Get("Content-Range")
	return isUpload(r) && (r.URL.Query().Get("uploadType") == "multipart" ||
		contentRange != "" && !strings.HasSuffix(contentRange, "/*"))
}

// TestLostReply: an upload that was stored succeeds, even if its reply was lost.
func TestLostReply(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	for name, tt := range map[string]struct {
		size int
		opts storagedrivers.PutOptions
	}{
		"empty":           {0, create},
		"small":           {100, create},
		"small overwrite": {100, overwrite},
		"large":           {chunkSize + 100, create},
		"large overwrite": {chunkSize + 100, overwrite},
		"one chunk":       {chunkSize, create},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lost atomic.Int64
			m := &meddler{answer: func(r *http.Request, _ *httptest.ResponseRecorder) {
				if commits(r) && lost.Add(1) == 1 {
					panic(http.ErrAbortHandler)
				}
			}}
			d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: m.before(t, server)})
			info, err := d.Put(t.Context(), "key", zeros(tt.size), tt.opts)
			if err != nil || lost.Load() == 0 {
				t.Fatalf("storing: error %v, %d replies lost", err, lost.Load())
			}
			stat, err := d.Stat(t.Context(), "key")
			if err != nil || info != stat || info.Size != int64(tt.size) {
				t.Errorf("stored %+v, found %+v, error %v", info, stat, err)
			}
			_, err = d.Put(t.Context(), "key", zeros(tt.size), create)
			test.Is(t, err, fs.ErrExist, "creating it again")
		})
	}
}

// TestLostReplyOfNothing: the reply is lost, and the key has an object of another upload.
func TestLostReplyOfNothing(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	bucket := newBucket(t, server)
	m := &meddler{answer: func(r *http.Request, _ *httptest.ResponseRecorder) {
		if commits(r) {
			panic(http.ErrAbortHandler)
		}
	}}
	other := opened(t, Config{Bucket: bucket, Endpoint: server.Endpoint})
	_, err := other.Put(t.Context(), "key", zeros(100), create)
	test.Must(t, err)
	d := opened(t, Config{Bucket: bucket, Endpoint: m.before(t, server)})
	_, err = d.Put(t.Context(), "key", zeros(100), create)
	test.Is(t, err, fs.ErrExist)
}

// TestCancelledTooLate: a caller that cancels after everything is stored gets success.
func TestCancelledTooLate(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	for name, size := range map[string]int{"small": 100, "large": chunkSize + 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := &meddler{answer: func(r *http.Request, _ *httptest.ResponseRecorder) {
				if commits(r) {
					cancel()
					<-r.Context().Done()
				}
			}}
			// The timeout is far above lostreply.Grace: the service was not silent for all of it.
			d := opened(t, Config{
				Bucket: newBucket(t, server), Endpoint: m.before(t, server), Timeout: options.Duration(time.Minute),
			})
			info, err := d.Put(ctx, "key", zeros(size), create)
			test.Must(t, err)
			if stat, err := d.Stat(t.Context(), "key"); err != nil || stat != info {
				t.Errorf("stored %+v, found %+v, error %v", info, stat, err)
			}
		})
	}
}

// TestCancelledWhileStoring: a service that has received the whole object stores it even if the
// caller cancels, and the driver waits for the response.
func TestCancelledWhileStoring(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	for name, size := range map[string]int{"small": 100, "large": chunkSize + 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := &meddler{request: func(r *http.Request) *http.Request {
				if !commits(r) {
					return r
				}
				body, err := io.ReadAll(r.Body)
				test.Is(t, err, nil)
				cancel()
				time.Sleep(200 * time.Millisecond)
				r = r.WithContext(context.WithoutCancel(r.Context()))
				r.Body = io.NopCloser(bytes.NewReader(body))
				return r
			}}
			d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: m.before(t, server)})
			info, err := d.Put(ctx, "key", zeros(size), create)
			test.Must(t, err)
			if stat, err := d.Stat(t.Context(), "key"); err != nil || stat != info {
				t.Errorf("stored %+v, found %+v, error %v", info, stat, err)
			}
		})
	}
}
