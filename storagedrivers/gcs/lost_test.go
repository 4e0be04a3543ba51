package gcs

import (
	"context"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/options"
)

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
