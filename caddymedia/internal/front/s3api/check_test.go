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
