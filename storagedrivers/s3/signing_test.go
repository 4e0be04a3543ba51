package s3

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// verified reports whether the signature of a request, as the service receives it, is right.
func verified(t *testing.T, r *http.Request) bool {
	t.Helper()
	_, fields, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	signed := strings.Split(strings.Split(fields, ",")[0], ";")
	again := r.Clone(t.Context())
	again.Header = http.Header{}
	for _, name := range signed {
		if values := r.Header.Values(name); values != nil {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	test.Must(t, err, "the time of a signature")
	err = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(t.Context(),
		aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, again,
		r.Header.Get("X-Amz-Content-Sha256"), "s3", endpointRegion, at)
	test.Must(t, err, "signing again")
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

// TestBehindGoogle: the front end of Google Cloud Storage changes Accept-Encoding before the
// signature is verified.
func TestBehindGoogle(t *testing.T) {
	t.Parallel()
	s := fake(t).behind(t, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" { // objects would be compressed on their way
			t.Errorf("%s %s accepts %q", r.Method, r.URL, got)
		}
		r.Header.Set("Accept-Encoding", r.Header.Get("Accept-Encoding")+",gzip(gfe)")
		if !verified(t, r) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
			return
		}
		service.ServeHTTP(w, r)
	})
	d := s.driver(t, s.fresh(t))
	defer d.Close()
	test.Must(t, d.Check(t.Context()), "checking")
	for name, size := range sizes {
		put(t, d, name, content('a', size), create)
		has(t, d, name, 'a', size)
	}
	holds(t, d, []string{"whole", "parts"})
	test.Must(t, d.Delete(t.Context(), "whole", storagedrivers.DeleteOptions{}), "deleting")
	holds(t, d, []string{"parts"})
}
