package s3api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/caddymedia/media"
)

// TestCheckRefuses: why a check has refused an object is in the log.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	t.Cleanup(judge.Close)
	f := newFront(t, all...)
	f.reload(t, func(c *media.Config) {
		c.FileAliases["docs"].Checks = map[string]*media.Check{"judge": {HTTP: judge.URL}}
	})
	f.site.Log.Take()
	_, err := f.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: new(docs), Key: new("a.txt"), Body: strings.NewReader("text")})
	if err == nil || !strings.Contains(err.Error(), "the file was refused by a check") {
		t.Error(err)
	}
	if lines := f.site.Log.Take(); !slices.Equal(lines, []string{"WARN the file was refused by a check 400"}) {
		t.Errorf("%q", lines)
	}
}

// TestAbortDuringCheck: nothing is left of an upload that is aborted while a check is asked about
// its object.
func TestAbortDuringCheck(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	m := f.begin(t, docs, "a.txt")
	m.mustSend(t, 1, randomBytes(10))
	judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := m.AbortMultipartUpload(r.Context(), &awss3.AbortMultipartUploadInput{Bucket: &m.bucket, Key: &m.key, UploadId: &m.id}); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(judge.Close)
	f.reload(t, func(c *media.Config) {
		c.FileAliases["docs"].Checks = map[string]*media.Check{"judge": {HTTP: judge.URL}}
	})
	for _, want := range []string{"SlowDown", "NoSuchUpload"} {
		_, err := m.complete(t, m.parts...)
		wantCode(t, "complete", err, want)
		m.wantNothingLeft(t)
	}
}
