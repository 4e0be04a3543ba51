package mediahttp

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// Headers of an upload in Go's canonical form. On the wire the documented ones are
// HTTP_SERVICE_API_KEY and HTTP_SERVICE_ACCESS_TOKEN; a host that runs PHP shows Service-Api-Key
// and Service-Access-Token under exactly these names.
const (
	headerDocumentedKey   = "Http_service_api_key"
	headerDocumentedToken = "Http_service_access_token" //nolint:gosec // a header's name, no secret
	headerKey             = "Service-Api-Key"
	headerToken           = "Service-Access-Token"
)

var errCredentials = errors.New("missing or contradictory credentials")

// credentials returns the API key and the token of an upload. Only with a Bearer token, RFC 6750,
// may the key be missing. The error is errCredentials if a header is sent twice, or if two headers
// with the same meaning differ.
func credentials(header http.Header) (apiKey, token string, err error) {
	bearer, err := bearerToken(header)
	if err != nil {
		return "", "", err
	}
	apiKey, err = agreed(header, headerDocumentedKey, headerKey)
	if err != nil {
		return "", "", err
	}
	token, err = agreed(header, headerDocumentedToken, headerToken)
	switch {
	case err != nil:
		return "", "", err
	case token == "" && bearer != "":
		return apiKey, bearer, nil
	case token == "" || apiKey == "" || bearer != "" && !equal(bearer, token):
		return "", "", errCredentials
	}
	return apiKey, token, nil
}

func bearerToken(header http.Header) (string, error) {
	value, err := agreed(header, "Authorization")
	if err != nil {
		return "", err
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", nil // not for this service: a site's basic_auth for instance
	}
	return strings.TrimSpace(token), nil
}

// agreed returns the single value of headers with the same meaning; empty if none is sent.
func agreed(header http.Header, names ...string) (string, error) {
	var found []string
	for _, name := range names {
		values := header[name]
		switch {
		case len(values) == 0:
			continue
		case len(values) > 1, found != nil && !equal(found[0], values[0]):
			return "", errCredentials
		}
		found = values
	}
	if found == nil {
		return "", nil
	}
	return found[0], nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
