package gcs

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestConditionsAreSent: the service gets the generation of an ETag, and its refusal means that the
// object has changed. fake-gcs-server ignores it in deletions. A new object has no generation
// before.
func TestConditionsAreSent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet { // whether the object is that of an earlier attempt
			w.WriteHeader(http.StatusNotFound)
			return
		}
		mu.Lock()
		sent = append(sent, r.Method+" "+r.URL.Query().Get("ifGenerationMatch"))
		mu.Unlock()
		w.WriteHeader(http.StatusPreconditionFailed)
	}))
	defer server.Close()
	d := opened(t, Config{Bucket: "b", Endpoint: server.URL})
	opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, IfMatch: `"1234567890123456"`}
	_, small := d.Put(t.Context(), "key", strings.NewReader("text"), opts)
	_, large := d.Put(t.Context(), "key", zeros(chunkSize+1), opts)
	deleted := d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{IfMatch: opts.IfMatch})
	for op, err := range map[string]error{"small": small, "large": large, "delete": deleted} {
		test.Is(t, err, storagedrivers.ErrChanged, op)
	}
	_, err := d.Put(t.Context(), "key", strings.NewReader("text"), storagedrivers.PutOptions{})
	test.Is(t, err, fs.ErrExist, "create")
	test.Equal(t, strings.Join(sent, ", "), "POST 1234567890123456, POST 1234567890123456, DELETE 1234567890123456, POST 0", "sent")
}

// TestOtherETags: no generation is that of an ETag of another service.
func TestOtherETags(t *testing.T) {
	t.Parallel()
	for _, etag := range []string{`"x"`, `""`, `"0"`, `"-5"`, `W/"5"`} {
		test.Equal(t, generationOf(etag), 1, etag)
	}
}
