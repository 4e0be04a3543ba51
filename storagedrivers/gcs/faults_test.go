package gcs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
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
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

const mib = 1 << 20

var (
	create    = storagedrivers.PutOptions{}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
)

func zeros(n int) *bytes.Reader { return bytes.NewReader(make([]byte, n)) }

// TestCutChunk: an upload in chunks repeats the one whose connection breaks.
func TestCutChunk(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	proxy := faults.New(t, strings.TrimPrefix(server.Endpoint, "http://"))
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: "http://" + proxy.Address})
	proxy.CutAfter(12 * mib)
	_, err := d.Put(t.Context(), "key", zeros(20*mib), create)
	test.Is(t, err, nil)
	test.Equal(t, proxy.Cuts(), 1, "cuts")
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
			_, err := d.Put(t.Context(), "key", bytes.NewReader(content), create)
			test.Must(t, err)
			body, _, err := d.Open(t.Context(), "key", storagedrivers.Range{})
			test.Must(t, err)
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
		_, err := direct.Put(t.Context(), "key", zeros(100), overwrite)
		test.Is(t, err, nil)
	}
	put()
	m := &meddler{answer: func(r *http.Request, _ *httptest.ResponseRecorder) {
		if !isDownload(r) {
			put()
		}
	}}
	d := opened(t, Config{Bucket: bucket, Endpoint: m.before(t, server)})
	_, _, err := d.Open(t.Context(), "key", storagedrivers.Range{})
	test.Is(t, err, storagedrivers.ErrUnavailable)
	test.Equal(t, m.calls.Load(), 2*maxGenerations, "requests")
}

// meddler is a proxy in front of a server that can change requests and responses.
type meddler struct {
	// answer may change the response to r, or panic with http.ErrAbortHandler to lose it; nil
	// changes nothing.
	answer func(r *http.Request, answer *httptest.ResponseRecorder)
	calls  atomic.Int64
}

// before starts the meddler in front of server and returns its address.
func (m *meddler) before(t *testing.T, server servers.GCS) string {
	t.Helper()
	return cloudtest.Between(t, server.Endpoint, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, r)
		m.calls.Add(1)
		if m.answer != nil {
			m.answer(r, answer)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	})
}

// cloud returns the server as shared tests use it.
func cloud(server servers.GCS) cloudtest.Service {
	return cloudtest.Service{
		Endpoint: server.Endpoint, Commits: commits, Lost: 1, Part: chunkSize,
		Bucket: func(t *testing.T) string { return newBucket(t, server) },
		Open: func(t *testing.T, endpoint, bucket, prefix string) storagedrivers.Driver {
			return opened(t, Config{Bucket: bucket, Endpoint: endpoint, Prefix: prefix})
		},
		Store: func(t *testing.T, d storagedrivers.Driver, name string) error {
			store(t, d.(*driver), name, []byte(name), nil)
			return nil
		},
		Head: func(t *testing.T, d storagedrivers.Driver, key string) storagedrivers.PutOptions {
			object, err := d.(*driver).object(t.Context(), key)
			test.Must(t, err)
			attrs, err := object.Attrs(t.Context())
			test.Must(t, err)
			return storagedrivers.PutOptions{
				ID: attrs.Metadata[lostreply.Key], ContentType: attrs.ContentType, CacheControl: attrs.CacheControl,
			}
		},
		Names: func(t *testing.T, d storagedrivers.Driver) []string {
			return server.Objects(t, d.(*driver).config.Bucket)
		},
	}
}

func TestLostReply(t *testing.T) {
	t.Parallel()
	cloudtest.LostReply(t, cloud(inProcess(t)))
}

func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	cloudtest.RepeatedRequest(t, cloud(inProcess(t)))
}

func TestCancelledCommit(t *testing.T) {
	t.Parallel()
	cloudtest.CancelledCommit(t, cloud(inProcess(t)))
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	cloudtest.Headers(t, cloud(inProcess(t).WithRewrites(t)))
}

func TestForeignNames(t *testing.T) {
	t.Parallel()
	cloudtest.Names(t, cloud(inProcess(t)))
}

func isUpload(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/upload/") }

func isDownload(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/media-test-") }

// commits reports whether a request makes an object visible.
func commits(r *http.Request) bool {
	contentRange := r.Header.Get("Content-Range")
	return isUpload(r) && (r.URL.Query().Get("uploadType") == "multipart" ||
		contentRange != "" && !strings.HasSuffix(contentRange, "/*"))
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
