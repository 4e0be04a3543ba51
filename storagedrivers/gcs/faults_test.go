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

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
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
