package s3

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// comparing is a service that answers conditions of If-Match with a status. The object is missing, but
// not those of experiments.
func comparing(t *testing.T, status func(*http.Request) int) (d *driver, sent func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch match := r.Header.Get("If-Match"); {
		case match != "":
			mu.Lock()
			all = append(all, r.Method+" "+match)
			mu.Unlock()
			w.WriteHeader(status(r))
		case r.Header.Get("If-None-Match") != "":
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, r.Method); len(all) > 1 {
				w.WriteHeader(http.StatusPreconditionFailed)
			}
		case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
			_, _ = w.Write([]byte(`<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`))
		case r.Method == http.MethodHead && strings.Contains(r.URL.Path, probePrefix):
			w.Header().Set("ETag", `"own"`)
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("ETag", `"part"`)
		}
	}))
	t.Cleanup(server.Close)
	s := &service{config: Config{Endpoint: server.URL, AccessKeyID: "id", SecretAccessKey: "secret", Bucket: "bucket"}}
	d = s.driver(t, s.config)
	t.Cleanup(func() { d.Close() })
	return d, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestConditionsAreSent: the service gets the ETag, and its refusal means that the object has changed.
// It also gets the condition that there is no object yet.
func TestConditionsAreSent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusPreconditionFailed, http.StatusNotFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			d, sent := comparing(t, func(*http.Request) int { return status })
			d.conditions.Store(&conditions{accepted: true, kept: true, compared: true})
			opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, IfMatch: `"tag"`}
			for _, size := range []int{100, partSize + 1} {
				_, err := d.Put(t.Context(), "key", content('a', size), opts)
				test.Is(t, err, storagedrivers.ErrChanged, size, "bytes")
			}
			if err := d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{IfMatch: opts.IfMatch}); err == nil {
				t.Error("it is deleted")
			}
			for _, size := range []int{100, partSize + 1} {
				_, err := d.Put(t.Context(), "key", content('a', size), create)
				test.Is(t, err, fs.ErrExist, "creating it with", size, "bytes")
			}
			test.Same(t, sent(), []string{`PUT "tag"`, `POST "tag"`, `DELETE "tag"`, "PUT", "POST"}, "sent")
		})
	}
}

// TestServiceThatComparesPartly: a service compares if it refuses another ETag of an object, of one in
// parts, and of a deletion, and accepts the own one. Before it is known, a deletion finds out.
func TestServiceThatComparesPartly(t *testing.T) {
	t.Parallel()
	for _, ignoring := range []string{"", http.MethodPut, http.MethodPost, http.MethodDelete, "refuses all"} {
		t.Run(ignoring, func(t *testing.T) {
			t.Parallel()
			d, _ := comparing(t, func(r *http.Request) int {
				if r.Method == ignoring || r.Header.Get("If-Match") == `"own"` && ignoring != "refuses all" {
					return http.StatusOK
				}
				return http.StatusPreconditionFailed
			})
			want := errors.ErrUnsupported
			if ignoring == "" {
				want = storagedrivers.ErrChanged
			}
			test.Is(t, d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{IfMatch: `"other"`}), want, "deleting")
			known, err := d.knownConditions(t.Context())
			if err != nil || known.compared != (ignoring == "") {
				t.Errorf("%+v, error %v", known, err)
			}
			if exact := d.Features().Compare == storagedrivers.Atomic; exact != (ignoring == "") {
				t.Errorf("exact: %v", exact)
			}
		})
	}
}
