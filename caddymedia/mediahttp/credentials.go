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

// Mistakes in the headers of a request. The caller can see them there himself, so the messages may
// name them; a token or an API key is not looked up.
var (
	errNone = errors.New("no token: send Authorization: Bearer <token>, or HTTP_SERVICE_API_KEY and HTTP_SERVICE_ACCESS_TOKEN; " +
		"Caddy drops headers with an underscore that expected_underscore_headers does not list")
	errNobody  = errors.New("nobody is logged in: log in on this site, or send Authorization: Bearer <token>")
	errNoToken = errors.New("the API key is sent without a token: send HTTP_SERVICE_ACCESS_TOKEN too")
	errNoKey   = errors.New("the token is sent without its API key: send HTTP_SERVICE_API_KEY too, or Authorization: Bearer <token> alone")
	errTwice   = errors.New("the API key or the token is sent twice, or in headers that differ")
)

// credentials returns the API key and the token of a request, and whether the token is sent as
// Bearer only, RFC 6750. Only then may the key be missing. The error is a message for the caller.
func credentials(header http.Header) (apiKey, token string, bearerOnly bool, err error) {
	bearer, err := bearerToken(header)
	if err != nil {
		return "", "", false, err
	}
	apiKey, err = agreed(header, headerDocumentedKey, headerKey)
	if err != nil {
		return "", "", false, err
	}
	token, err = agreed(header, headerDocumentedToken, headerToken)
	switch {
	case err != nil:
		return "", "", false, err
	case token == "" && bearer != "":
		return apiKey, bearer, true, nil
	case token == "" && apiKey == "":
		return "", "", false, errNone
	case token == "":
		return "", "", false, errNoToken
	case apiKey == "":
		return "", "", false, errNoKey
	case bearer != "" && !equal(bearer, token):
		return "", "", false, errTwice
	}
	return apiKey, token, false, nil
}

func bearerToken(header http.Header) (string, error) {
	value, err := agreed(header, "Authorization")
	if err != nil {
		return "", err
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.Contains(token, ".") {
		return "", nil // not for this service: a site's basic_auth, or a JWT
	}
	return strings.TrimSpace(token), nil
}

// agreed returns the single value of headers with the same meaning; empty if none is sent. The error
// is errTwice.
func agreed(header http.Header, names ...string) (string, error) {
	var found []string
	for _, name := range names {
		values := header[name]
		switch {
		case len(values) == 0:
			continue
		case len(values) > 1, found != nil && !equal(found[0], values[0]):
			return "", errTwice
		}
		found = values
	}
	if found == nil {
		return "", nil
	}
	return found[0], nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
