package mediahttp

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unicode"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// Caller is an authenticated caller of [Handler.Upload], [Handler.UploadResumable] and [Handler.Items].
type Caller struct {
	// Account limits the aliases, and its rights limit the changes by Handler.Items. Its API key is
	// recorded as the actor.
	Account tokens.Account
	// Origin of the requests.
	Origin item.Origin
	// Confirm, if set, reports whether the caller may still change items. It is called before the
	// body is read and before the commit, with the service that then answers new requests.
	Confirm func(running *service.Service) bool
}

// authenticate is the authenticator of a caller without a token.
func (c Caller) authenticate(_ context.Context, running *service.Service) (tokens.Caller, *refusal) {
	caller := tokens.Caller{Account: c.Account}
	if c.Confirm != nil && !c.Confirm(running) {
		return caller, &refusal{http.StatusUnauthorized, item.Unauthorized, "the caller is logged out or may not change items any more"}
	}
	return caller, nil
}

// authenticator returns the caller of a request, according to a service.
type authenticator func(ctx context.Context, running *service.Service) (tokens.Caller, *refusal)

// refusal is the response to a request whose body is not read.
type refusal struct {
	status  int
	reason  item.Reason
	message string
}

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

// authenticate returns the caller of a request with a token or, as Bearer only, a ticket, or of a user
// of another login. It is for uploads. Other requests of accounts use authenticateAccount.
func (h *Handler) authenticate(ctx context.Context, running *service.Service, w http.ResponseWriter, r *http.Request) (tokens.Caller, *refusal) {
	var caller tokens.Caller
	apiKey, token, bearer, err := credentials(r.Header)
	if errors.Is(err, errNone) {
		if account, refused := h.trusted(running, r); account.User != "" {
			return tokens.Caller{Account: account}, refused
		}
		if running.Trust() != nil {
			err = errNobody
		}
	}
	message := "the token is wrong or has expired"
	if apiKey != "" {
		message = "the token is wrong, has expired or belongs to another API key"
	}
	if err != nil {
		message = err.Error()
	} else {
		caller.Account, caller.Ticket, err = running.Issuer().Verify(ctx, token, apiKey)
	}
	switch {
	case err == nil && caller.Ticket != nil && !bearer:
		caller, message = tokens.Caller{}, "a ticket is sent as Authorization: Bearer <ticket> only"
	case err == nil:
		return caller, nil
	case errors.Is(err, tokens.ErrUnavailable):
		return caller, h.storeUnreachable(ctx, "tokens cannot be checked now, try again later", err)
	case errors.Is(err, tokens.ErrMalformed):
		message = "the token is not of the form of tokens here: send it exactly as it was received, without quotes or brackets"
	}
	w.Header().Set("WWW-Authenticate", "Bearer") // RFC 6750 section 3
	return caller, &refusal{http.StatusUnauthorized, item.Unauthorized, message}
}

// authenticateAccount returns the account of a request with a token, or of a user. A ticket is refused.
func (h *Handler) authenticateAccount(ctx context.Context, running *service.Service, w http.ResponseWriter, r *http.Request) (tokens.Account, *refusal) {
	caller, refused := h.authenticate(ctx, running, w, r)
	if refused == nil && caller.Ticket != nil {
		refused = &refusal{http.StatusForbidden, item.Forbidden, "a ticket is for uploads only: send a token"}
	}
	return caller.Account, refused
}

// rightRefusal returns the refusal of a request for which the account lacks a right, or nil.
func rightRefusal(account tokens.Account, right tokens.Right) *refusal {
	if account.May(right) {
		return nil
	}
	return &refusal{http.StatusForbidden, item.Forbidden, "the account may not " + string(right) + " items: it needs the right " + string(right)}
}

// storeUnreachable logs err, an error of the token store, and returns the refusal of its request. If
// the client has disconnected, the store has not failed.
func (h *Handler) storeUnreachable(ctx context.Context, message string, err error) *refusal {
	if ctx.Err() != nil {
		return &refusal{http.StatusBadRequest, item.BadRequest, "the request was aborted"}
	}
	h.options.Log.Error("token store unreachable", "error", err)
	return &refusal{http.StatusServiceUnavailable, item.Unavailable, message}
}

// ticketRefusal returns the refusal of an upload that the caller's ticket is not for, or nil.
func ticketRefusal(caller tokens.Caller, kind item.Kind) *refusal {
	switch {
	case !caller.AllowsKind(kind.Name()):
		return &refusal{http.StatusForbidden, item.Forbidden, "the ticket is for another kind: use /api/upload/" + caller.Ticket.Kind}
	case caller.UsedUp():
		return usedUp
	}
	return nil
}

var usedUp = &refusal{http.StatusForbidden, item.Forbidden, resumable.Uncounted(tokens.ErrUsedUp).Message}

// baseURL returns the scheme and host that the client used. It is empty if the request has no valid
// host.
func (h *Handler) baseURL(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if h.options.TrustedProxy(r) {
		first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // of the proxy next to the client
		if scheme := strings.TrimSpace(first); scheme == "http" || scheme == "https" {
			u.Scheme = scheme
		}
		if host := r.Header.Get("X-Forwarded-Host"); host != "" && !strings.Contains(host, ",") {
			u.Host = host
		}
	}
	if !validHost(u.Host) {
		return "" // an address without a host is still right on this site
	}
	return u.String()
}

// MountPrefix returns the prefix of the path in the client's address that the path of r lacks. It
// is empty if the paths differ in any other way.
func MountPrefix(original *url.URL, r *http.Request) string {
	prefix, ok := strings.CutSuffix(original.EscapedPath(), r.URL.EscapedPath())
	if !ok || strings.HasPrefix(prefix, "//") { // without a host before it, "//" begins one
		return ""
	}
	return prefix
}

// strippedPrefix returns the prefix that http.StripPrefix has removed.
func strippedPrefix(r *http.Request) string {
	original, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return ""
	}
	return MountPrefix(original, r)
}

// maxHost is the length of the longest name of DNS, with a port.
const maxHost = 253 + len(":65535")

// validHost reports whether a Host header is a host, with or without a port. An answer repeats it
// in each address, so it must be short.
func validHost(host string) bool {
	if len(host) > maxHost {
		return false
	}
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host || u.Hostname() == "" {
		return false
	}
	if strings.HasPrefix(host, "[") {
		_, err := netip.ParseAddr(u.Hostname())
		return err == nil
	}
	return strings.IndexFunc(u.Hostname(), outsideHost) < 0
}

func outsideHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_", r)
}
