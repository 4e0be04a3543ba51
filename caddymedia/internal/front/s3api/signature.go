package s3api

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AWS Signature Version 4,
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html.
const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
	dateFormat = "20060102"

	maxSkew    = 15 * time.Minute
	maxPresign = 7 * 24 * time.Hour
)

// signature is that of a request. Nothing of it is true before [signature.verify].
type signature struct {
	accessKey    string
	date, region string
	headers      []string // the signed ones, in lower case
	sum          string   // hexadecimal
	at           time.Time
	lifetime     time.Duration // of a presigned request; 0 for others
	payload      string        // the hash of the body, or how it is sent
}

// signatureOf returns the signature in the Authorization header or in the query.
func signatureOf(r *http.Request) (*signature, *Error) {
	query := r.URL.Query()
	authorization, presigned := r.Header["Authorization"], query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature")
	switch {
	case len(authorization) > 1, len(authorization) == 1 && presigned:
		return nil, errorOf(invalidRequest, "send one signature, in the header or in the query")
	case presigned:
		return presignedOf(query)
	case len(authorization) == 0:
		return nil, errorOf(accessDenied, "sign the request: public items have other addresses")
	}
	return authorizationOf(authorization[0], r.Header)
}

// authorizationOf returns the signature in the value of an Authorization header.
func authorizationOf(value string, header http.Header) (*signature, *Error) {
	rest, ok := strings.CutPrefix(value, algorithm+" ")
	if !ok {
		return nil, errorOf(invalidRequest, "sign the request with "+algorithm)
	}
	s, fields := &signature{}, map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		if _, twice := fields[name]; twice {
			return nil, malformed("Authorization")
		}
		fields[name] = value
	}
	if !s.scope(fields["Credential"]) || !s.sign(fields["SignedHeaders"], fields["Signature"]) {
		return nil, malformed("Authorization")
	}
	var err error
	if s.at, err = time.Parse(timeFormat, one(header, "X-Amz-Date")); err != nil {
		if s.at, err = http.ParseTime(one(header, "Date")); err != nil || !slices.Contains(s.headers, "date") {
			return nil, errorOf(accessDenied, "the request has no valid x-amz-date")
		}
	} else if !slices.Contains(s.headers, "x-amz-date") {
		return nil, errorOf(accessDenied, "x-amz-date is not signed")
	}
	if s.payload = one(header, "X-Amz-Content-Sha256"); s.payload == "" {
		return nil, errorOf(invalidRequest, "the header x-amz-content-sha256 is missing or sent twice")
	}
	return s, nil
}

// presignedOf returns the signature in a query.
func presignedOf(query url.Values) (*signature, *Error) {
	s := &signature{payload: unsignedPayload}
	for _, name := range []string{
		"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature",
	} {
		if len(query[name]) != 1 {
			return nil, badQuery(name)
		}
	}
	seconds, err := strconv.Atoi(query.Get("X-Amz-Expires"))
	switch {
	case query.Get("X-Amz-Algorithm") != algorithm:
		return nil, badQuery("X-Amz-Algorithm")
	case err != nil:
		return nil, badQuery("X-Amz-Expires")
	case seconds < 1 || seconds > int(maxPresign/time.Second):
		return nil, errorOf(accessDenied, "an address is valid for 1 second to 7 days")
	case !s.scope(query.Get("X-Amz-Credential")):
		return nil, badQuery("X-Amz-Credential")
	case !s.sign(query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature")):
		return nil, badQuery("X-Amz-SignedHeaders")
	}
	s.lifetime = time.Duration(seconds) * time.Second
	if s.at, err = time.Parse(timeFormat, query.Get("X-Amz-Date")); err != nil {
		return nil, badQuery("X-Amz-Date")
	}
	if sum := query.Get("X-Amz-Content-Sha256"); sum != "" {
		s.payload = sum
	}
	return s, nil
}

// one returns the only value of a header; empty if there are none or several.
func one(header http.Header, name string) string {
	if values := header[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// scope sets the key, date and region of a credential, and returns false if it is malformed. The
// key may contain slashes.
func (s *signature) scope(credential string) bool {
	parts := strings.Split(credential, "/")
	n := len(parts)
	if n < 5 || parts[n-1] != "aws4_request" || parts[n-2] != "s3" {
		return false
	}
	s.accessKey, s.date, s.region = strings.Join(parts[:n-4], "/"), parts[n-4], parts[n-3]
	_, err := time.Parse(dateFormat, s.date)
	return err == nil && s.accessKey != ""
}

// sign sets the signed headers and the sum, and returns false if they are malformed. The host must
// be signed.
func (s *signature) sign(headers, sum string) bool {
	s.headers, s.sum = strings.Split(headers, ";"), sum
	raw, err := hex.DecodeString(sum)
	last := ""
	for _, name := range s.headers {
		if name <= last || name != strings.ToLower(name) { // each once, or a request could make a text of any size
			return false
		}
		last = name
	}
	return err == nil && len(raw) == sha256.Size && slices.Contains(s.headers, "host")
}

// verify returns an error unless the request is signed with secret and the time of the signature is
// right. An unknown key has an empty secret, which costs the same and says the same.
func (s *signature) verify(r *http.Request, secret string, now time.Time) *Error {
	wanted := s.of(secret, sumOf(s.canonical(r)))
	isEqual := subtle.ConstantTimeCompare([]byte(wanted), []byte(strings.ToLower(s.sum))) == 1
	switch {
	case !isEqual || secret == "":
		return errorOf(signatureDoesNotMatch, "the key, the secret or the signature is wrong")
	case s.at.Format(dateFormat) != s.date:
		return errorOf(accessDenied, "the date of the credential is not that of the request")
	case s.lifetime > 0 && now.After(s.at.Add(s.lifetime)):
		return errorOf(accessDenied, "the address has expired")
	case s.at.After(now.Add(maxSkew)), s.lifetime == 0 && s.at.Before(now.Add(-maxSkew)):
		return errorOf(requestTimeTooSkewed, "the clocks differ by more than 15 minutes")
	}
	return s.unsignedRefusal(r)
}

// unsignedRefusal returns an error if a header that decides what is done is not signed: anyone on
// the way could have added it.
func (s *signature) unsignedRefusal(r *http.Request) *Error {
	for name := range r.Header {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-amz-") && !slices.Contains(s.headers, name) && (s.lifetime == 0 || name != "x-amz-content-sha256") {
			return errorOf(accessDenied, "the header "+name+" is not signed")
		}
	}
	return nil
}

// canonical returns the request in the form that is signed.
func (s *signature) canonical(r *http.Request) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + encodePath(r.URL.Path) + "\n" + canonicalQuery(r.URL.Query()) + "\n")
	for _, name := range s.headers {
		b.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(s.headers, ";") + "\n" + s.payload)
	return b.String()
}

// headerValue returns the value of a signed header as it is signed. Go's server keeps some headers
// apart.
func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(max(r.ContentLength, 0), 10)
	case "transfer-encoding":
		return strings.Join(r.TransferEncoding, ",")
	}
	values := slices.Clone(r.Header.Values(name))
	for i, value := range values {
		values[i] = strings.Join(strings.Fields(value), " ")
	}
	return strings.Join(values, ",")
}

// canonicalQuery returns the query, but for the signature, sorted and encoded as it is signed.
func canonicalQuery(query url.Values) string {
	query = maps.Clone(query)
	delete(query, "X-Amz-Signature")
	for name, values := range query {
		query[name] = slices.Sorted(slices.Values(values))
	}
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// encodePath encodes a path as it is signed: once, without cleaning it, all but A-Z, a-z, 0-9, "-",
// "_", ".", "~" and slashes.
func encodePath(path string) string { return ofPath.Replace(url.QueryEscape(path)) }

var ofPath = strings.NewReplacer("+", "%20", "%2F", "/")

// of returns the signature of the hash of a request, in hexadecimal digits.
func (s *signature) of(secret, sum string) string {
	text := algorithm + "\n" + s.at.Format(timeFormat) + "\n" + s.credentialScope() + "\n" + sum
	return hex.EncodeToString(keyed(s.key(secret), text))
}

func (s *signature) credentialScope() string { return s.date + "/" + s.region + "/s3/aws4_request" }

// key returns the key of the day, region and service of the signature.
func (s *signature) key(secret string) []byte {
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(s.credentialScope(), "/") {
		key = keyed(key, part)
	}
	return key
}

func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// sumOf returns the SHA-256 of a text in hexadecimal digits.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
