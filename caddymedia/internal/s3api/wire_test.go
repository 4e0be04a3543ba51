package s3api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/caddymedia/media/caddymedia/internal/testservice"
)

// call is a request to a front, as no client would send it.
type call struct {
	method, key string // the key is the whole path: bucket and key
	query       string // as it is sent
	header      http.Header
	body        string
	payload     string // x-amz-content-sha256; default: the hash of the body
}

// answer is that of a front.
type answer struct {
	status        int
	header        http.Header
	body          string
	Code, Message string
}

// escaped encodes a path as signatures want it, whatever its bytes are.
func escaped(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// request returns a request of the account of the front, signed by Amazon's library.
func (f *front) request(t *testing.T, c call) *http.Request {
	t.Helper()
	target := f.address + "/" + escaped(c.key)
	if c.query != "" {
		target += "?" + c.query
	}
	r, err := http.NewRequestWithContext(t.Context(), c.method, target, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	if c.payload == "" {
		sum := sha256.Sum256([]byte(c.body))
		c.payload = hex.EncodeToString(sum[:])
	}
	r.Header.Set("X-Amz-Content-Sha256", c.payload)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	credentials := aws.Credentials{AccessKeyID: testservice.SomeKey, SecretAccessKey: secret}
	if err := signer.SignHTTP(context.Background(), credentials, r, c.payload, "s3", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	return r
}

// do sends a signed request.
func (f *front) do(t *testing.T, c call) answer {
	t.Helper()
	return f.sent(t, f.request(t, c))
}

// sent sends a request.
func (f *front) sent(t *testing.T, r *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	if a.status >= http.StatusBadRequest && a.body != "" {
		if err := xml.Unmarshal(body, &a); err != nil {
			t.Errorf("%s %s: %d %q: %v", r.Method, r.URL, a.status, body, err)
		}
	}
	return a
}
