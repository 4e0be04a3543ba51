package s3api

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	testKey    = "shop/one"
	testSecret = "0123456789abcdef"
)

var testTime = time.Date(2026, 11, 28, 4, 5, 6, 0, time.UTC)

// received returns a request as a server has it after the client has sent it.
func received(t *testing.T, sent *http.Request) *http.Request {
	t.Helper()
	var text strings.Builder
	if err := sent.Write(&text); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(sent.Method, sent.URL.RequestURI(), sent.Body)
	r.Host = sent.URL.Host
	for name, values := range sent.Header {
		if name != "Host" {
			r.Header[name] = values
		}
	}
	r.ContentLength = sent.ContentLength
	return r
}

// signed returns a request that the client of Amazon's library has signed.
func signed(t *testing.T, method, address string, header http.Header) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	r.Header.Set("X-Amz-Content-Sha256", unsignedPayload)
	err = newSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}, r, unsignedPayload, "s3", "eu-west-1", testTime)
	if err != nil {
		t.Fatal(err)
	}
	return received(t, r)
}

func newSigner() *v4.Signer {
	return v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping, o.DisableHeaderHoisting = true, true })
}

func presigned(t *testing.T, method, address string, header http.Header) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	query := r.URL.Query()
	query.Set("X-Amz-Expires", "600")
	r.URL.RawQuery = query.Encode()
	text, _, err := newSigner().PresignHTTP(context.Background(), aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}, r, unsignedPayload, "s3", "eu-west-1", testTime)
	if err != nil {
		t.Fatal(err)
	}
	if r.URL, err = url.Parse(text); err != nil {
		t.Fatal(err)
	}
	return received(t, r)
}

// check returns the code of the error, or the empty string.
func checkSignature(r *http.Request, secret string, now time.Time) string {
	s, failed := signatureOf(r)
	if failed == nil {
		failed = s.verify(r, secret, now)
	}
	if failed != nil {
		return failed.Code
	}
	return ""
}

// TestSignaturesOfAmazon verifies what Amazon's library signs.
func TestSignaturesOfAmazon(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://s3.example.com/file-docs/a.txt",
		"https://s3.example.com:8443/file-docs/a%20b/%C3%BC%2B%27%28%29%21%2A.txt",
		"https://s3.example.com/file-docs/a//b/../c",
		"https://s3.example.com/file-docs?list-type=2&prefix=a%2Fb%20c&delimiter=%2F&start-after=&encoding-type=url",
		"https://s3.example.com/file-docs?uploads",
		"https://s3.example.com/file-docs/a?partNumber=2&uploadId=a%2Bb%3D&x-id=UploadPart",
		"https://s3.example.com/",
	} {
		for _, header := range []http.Header{
			nil,
			{"X-Amz-Meta-Mtime": {"1  2   3"}, "Content-Type": {"text/plain"}, "X-Amz-Acl": {"public-read"}, "Range": {"bytes=0-1"}},
			{"Amz-Sdk-Request": {"attempt=1; max=3"}, "X-Amz-Meta-A": {" one ", "two"}},
		} {
			if code := checkSignature(signed(t, http.MethodGet, address, header), testSecret, testTime); code != "" {
				t.Errorf("%s with %v: %s", address, header, code)
			}
			if code := checkSignature(presigned(t, http.MethodGet, address, header), testSecret, testTime); code != "" {
				t.Errorf("%s presigned with %v: %s", address, header, code)
			}
		}
	}
}

// TestAlteredSignatures alters each part of a signed request.
func TestAlteredSignatures(t *testing.T) {
	t.Parallel()
	const address = "https://s3.example.com/file-docs/a.txt?x-id=PutObject"
	header := http.Header{"X-Amz-Meta-A": {"one"}, "Content-Type": {"text/plain"}}
	replaced := func(name, old, changed string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, strings.Replace(r.Header.Get(name), old, changed, 1)) }
	}
	for name, tt := range map[string]struct {
		alter func(*http.Request)
		want  string
	}{
		"nothing":       {func(*http.Request) {}, ""},
		"method":        {func(r *http.Request) { r.Method = http.MethodDelete }, "SignatureDoesNotMatch"},
		"path":          {func(r *http.Request) { r.URL.Path += "x" }, "SignatureDoesNotMatch"},
		"query":         {func(r *http.Request) { r.URL.RawQuery += "&acl=" }, "SignatureDoesNotMatch"},
		"query twice":   {func(r *http.Request) { r.URL.RawQuery += "&x-id=PutObject" }, "SignatureDoesNotMatch"},
		"host":          {func(r *http.Request) { r.Host = "other.example.com" }, "SignatureDoesNotMatch"},
		"header":        {func(r *http.Request) { r.Header.Set("X-Amz-Meta-A", "two") }, "SignatureDoesNotMatch"},
		"header gone":   {func(r *http.Request) { r.Header.Del("X-Amz-Meta-A") }, "SignatureDoesNotMatch"},
		"header twice":  {func(r *http.Request) { r.Header.Add("X-Amz-Meta-A", "two") }, "SignatureDoesNotMatch"},
		"header added":  {func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", "/file-docs/b") }, "AccessDenied"},
		"payload":       {func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", sumOf("x")) }, "SignatureDoesNotMatch"},
		"payload twice": {func(r *http.Request) { r.Header.Add("X-Amz-Content-Sha256", unsignedPayload) }, "InvalidRequest"},
		"payload gone":  {func(r *http.Request) { r.Header.Del("X-Amz-Content-Sha256") }, "InvalidRequest"},
		"time":          {func(r *http.Request) { r.Header.Set("X-Amz-Date", "20261128T040507Z") }, "SignatureDoesNotMatch"},
		"time gone":     {func(r *http.Request) { r.Header.Del("X-Amz-Date") }, "AccessDenied"},
		"signature":     {replaced("Authorization", "Signature=", "Signature=0"), "AuthorizationHeaderMalformed"},
		"signature of all": {func(r *http.Request) {
			r.Header.Set("Authorization", r.Header.Get("Authorization")[:len(r.Header.Get("Authorization"))-64]+strings.Repeat("0", 64))
		}, "SignatureDoesNotMatch"},
		"key":                {replaced("Authorization", testKey, "shop/two"), ""}, // the caller looks for its secret
		"region":             {replaced("Authorization", "eu-west-1", "eu-west-2"), "SignatureDoesNotMatch"},
		"service":            {replaced("Authorization", "/s3/", "/ec2/"), "AuthorizationHeaderMalformed"},
		"date":               {replaced("Authorization", "/20261128/", "/20261127/"), "SignatureDoesNotMatch"},
		"no host":            {replaced("Authorization", ";host;", ";"), "AuthorizationHeaderMalformed"},
		"header named twice": {replaced("Authorization", ";host;", ";host;host;"), "AuthorizationHeaderMalformed"},
		"fewer headers":      {replaced("Authorization", ";x-amz-meta-a", ""), "SignatureDoesNotMatch"},
		"algorithm":          {replaced("Authorization", algorithm, "AWS4-HMAC-SHA1"), "InvalidRequest"},
		"version 2":          {func(r *http.Request) { r.Header.Set("Authorization", "AWS shop:abc=") }, "InvalidRequest"},
		"field twice":        {func(r *http.Request) { r.Header.Set("Authorization", r.Header.Get("Authorization")+",Signature=00") }, "AuthorizationHeaderMalformed"},
		"none":               {func(r *http.Request) { r.Header.Del("Authorization") }, "AccessDenied"},
		"twice":              {func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }, "InvalidRequest"},
		"in both places":     {func(r *http.Request) { r.URL.RawQuery += "&X-Amz-Algorithm=" + algorithm }, "InvalidRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := signed(t, http.MethodPut, address, header)
			tt.alter(r)
			if got := checkSignature(r, testSecret, testTime); got != tt.want {
				t.Errorf("code %q, want %q", got, tt.want)
			}
			if got := checkSignature(r, "", testTime); got == "" {
				t.Error("an empty secret is accepted")
			}
		})
	}
}

func TestAlteredPresigned(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			query := r.URL.Query()
			if query.Del(name); value != "" {
				query.Set(name, value)
			}
			r.URL.RawQuery = query.Encode()
		}
	}
	for name, tt := range map[string]struct {
		alter func(*http.Request)
		want  string
	}{
		"nothing":      {func(*http.Request) {}, ""},
		"longer":       {set("X-Amz-Expires", "601"), "SignatureDoesNotMatch"},
		"a week more":  {set("X-Amz-Expires", "604801"), "AccessDenied"},
		"not at all":   {set("X-Amz-Expires", "0"), "AccessDenied"},
		"before":       {set("X-Amz-Expires", "-1"), "AccessDenied"},
		"overflow":     {set("X-Amz-Expires", "9300000000"), "AccessDenied"},
		"no number":    {set("X-Amz-Expires", "99999999999999999999"), "AuthorizationQueryParametersError"},
		"no lifetime":  {set("X-Amz-Expires", ""), "AuthorizationQueryParametersError"},
		"no time":      {set("X-Amz-Date", ""), "AuthorizationQueryParametersError"},
		"no key":       {set("X-Amz-Credential", ""), "AuthorizationQueryParametersError"},
		"no headers":   {set("X-Amz-SignedHeaders", "a"), "AuthorizationQueryParametersError"},
		"other type":   {set("response-content-type", "text/html"), "SignatureDoesNotMatch"},
		"signature":    {set("X-Amz-Signature", strings.Repeat("0", 64)), "SignatureDoesNotMatch"},
		"no signature": {set("X-Amz-Signature", ""), "AuthorizationQueryParametersError"},
		"cut":          {set("X-Amz-Signature", strings.Repeat("0", 62)), "AuthorizationQueryParametersError"},
		"time":         {set("X-Amz-Date", "20261128T040507Z"), "SignatureDoesNotMatch"},
		"key":          {set("X-Amz-Credential", "shop/two/20261128/eu-west-1/s3/aws4_request"), "SignatureDoesNotMatch"},
		"date":         {set("X-Amz-Credential", testKey+"/20261127/eu-west-1/s3/aws4_request"), "SignatureDoesNotMatch"},
		"region":       {set("X-Amz-Credential", testKey+"/20261128/eu-west-2/s3/aws4_request"), "SignatureDoesNotMatch"},
		"service":      {set("X-Amz-Credential", testKey+"/20261128/eu-west-1/ec2/aws4_request"), "AuthorizationQueryParametersError"},
		"algorithm":    {set("X-Amz-Algorithm", "AWS4-HMAC-SHA1"), "AuthorizationQueryParametersError"},
		"more headers": {set("X-Amz-SignedHeaders", "host;range"), "SignatureDoesNotMatch"},
		"a payload":    {set("X-Amz-Content-Sha256", sumOf("x")), "SignatureDoesNotMatch"},
		"both":         {func(r *http.Request) { r.Header.Set("Authorization", algorithm+" x") }, "InvalidRequest"},
		"spelling":     {func(r *http.Request) { r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "X-Amz-", "x-amz-") }, "AccessDenied"},
		"host":         {func(r *http.Request) { r.Host = "file-docs.s3.example.com" }, "SignatureDoesNotMatch"},
		"path":         {func(r *http.Request) { r.URL.Path = "/file-docs/b.txt" }, "SignatureDoesNotMatch"},
		"header added": {func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", "/file-docs/b") }, "AccessDenied"},
		"method":       {func(r *http.Request) { r.Method = http.MethodPut }, "SignatureDoesNotMatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := presigned(t, http.MethodGet, "https://s3.example.com/file-docs/a.txt", nil)
			tt.alter(r)
			if got := checkSignature(r, testSecret, testTime); got != tt.want {
				t.Errorf("code %q, want %q", got, tt.want)
			}
		})
	}
	r := presigned(t, http.MethodPut, "https://s3.example.com/file-docs/a.txt", nil)
	for name, values := range r.URL.Query() {
		twice := r.Clone(t.Context())
		twice.URL.RawQuery += "&" + url.Values{name: values}.Encode()
		if got := checkSignature(twice, testSecret, testTime); got != "AuthorizationQueryParametersError" {
			t.Errorf("%s twice: code %q", name, got)
		}
	}
}

func TestTimesOfSignatures(t *testing.T) {
	t.Parallel()
	header := signed(t, http.MethodGet, "https://s3.example.com/file-docs/a.txt", nil)
	query := presigned(t, http.MethodGet, "https://s3.example.com/file-docs/a.txt", nil)
	for _, tt := range []struct {
		after         time.Duration
		header, query string
	}{
		{0, "", ""},
		{-15 * time.Minute, "", ""},
		{-16 * time.Minute, "RequestTimeTooSkewed", "RequestTimeTooSkewed"},
		{10 * time.Minute, "", ""},
		{11 * time.Minute, "", "AccessDenied"},
		{15 * time.Minute, "", "AccessDenied"},
		{16 * time.Minute, "RequestTimeTooSkewed", "AccessDenied"},
	} {
		if got := checkSignature(header, testSecret, testTime.Add(tt.after)); got != tt.header {
			t.Errorf("%s later: %q, want %q", tt.after, got, tt.header)
		}
		if got := checkSignature(query, testSecret, testTime.Add(tt.after)); got != tt.query {
			t.Errorf("presigned, %s later: %q, want %q", tt.after, got, tt.query)
		}
	}
}

// TestEmptySecret: a request is refused that was signed with the empty secret that an unknown key
// has.
func TestEmptySecret(t *testing.T) {
	t.Parallel()
	r := signed(t, http.MethodGet, "https://s3.example.com/file-docs/a.txt", nil)
	s, failed := signatureOf(r)
	if failed != nil {
		t.Fatal(failed)
	}
	s.sum = s.of("", sumOf(s.canonical(r)))
	if failed := s.verify(r, "", testTime); failed == nil || failed.Code != signatureDoesNotMatch.code {
		t.Errorf("signed with the empty secret: %v", failed)
	}
}

// TestCostOfUnknownKeys: a request with an unknown key, which has the empty secret, costs what one
// with a wrong secret does.
func TestCostOfUnknownKeys(t *testing.T) {
	r := signed(t, http.MethodGet, "https://s3.example.com/file-docs/a.txt", nil)
	cost := func(secret string) float64 {
		return testing.AllocsPerRun(100, func() { checkSignature(r, secret, testTime) })
	}
	if unknown, wrong := cost(""), cost("another secret..."); unknown != wrong {
		t.Errorf("%v allocations for an unknown key, %v for a wrong secret", unknown, wrong)
	}
}

// TestDateOfCredential: a key of another day signs nothing of this one.
func TestDateOfCredential(t *testing.T) {
	t.Parallel()
	r := signed(t, http.MethodGet, "https://s3.example.com/file-docs/a.txt", nil)
	s, failed := signatureOf(r)
	if failed != nil {
		t.Fatal(failed)
	}
	s.date = "20261127"
	s.sum = s.of(testSecret, sumOf(s.canonical(r)))
	if failed := s.verify(r, testSecret, testTime); failed == nil || failed.Code != accessDenied.code {
		t.Errorf("signed with the key of another day: %v", failed)
	}
}

// FuzzSignature: no text is taken for a signature, and the query that is signed has the parameters
// that are read.
func FuzzSignature(f *testing.F) {
	f.Add(algorithm+" Credential=shop/20261128/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature="+strings.Repeat("0", 64), "20261128T040506Z", "/a//b", "x=1&y&%2f=+&X=%zz")
	f.Add("", "", "/%ff/..", "X-Amz-Algorithm="+algorithm+"&X-Amz-Credential=a%2F20261128%2Fr%2Fs3%2Faws4_request&X-Amz-Date=20261128T040506Z&X-Amz-Expires=1"+
		"&X-Amz-SignedHeaders=host&X-Amz-Signature="+strings.Repeat("0", 64))
	f.Add(algorithm+" Credential=/////, SignedHeaders=;host, Signature=", "Sat, 28 Nov 2026 04:05:06 GMT", "", "a=b;c")
	f.Fuzz(func(t *testing.T, authorization, date, path, query string) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("X-Amz-Date", date)
		r.Header.Set("Date", date)
		r.Header.Set("X-Amz-Content-Sha256", unsignedPayload)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		for _, secret := range []string{"", testSecret} {
			if checkSignature(r, secret, testTime) == "" {
				t.Error("it is accepted")
			}
		}
		if plain, err := url.PathUnescape(encodePath(path)); plain != path || err != nil {
			t.Errorf("the path %q is signed as %q", path, encodePath(path))
		}
		read, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		delete(read, "X-Amz-Signature")
		signed, err := url.ParseQuery(canonicalQuery(r.URL.Query()))
		for _, values := range []url.Values{read, signed} {
			for _, list := range values {
				slices.Sort(list)
			}
		}
		if err != nil || !maps.EqualFunc(signed, read, slices.Equal) {
			t.Errorf("signed is %q, read are %q", canonicalQuery(r.URL.Query()), read)
		}
	})
}
