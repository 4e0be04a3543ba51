package caller

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// Headers of an upload in Go's canonical form. On the wire the documented ones are
// HTTP_SERVICE_API_KEY and HTTP_SERVICE_ACCESS_TOKEN; a host that runs PHP shows Service-Api-Key
// and Service-Access-Token under exactly these names.
const (
	headerDocumentedKey   = "Http_service_api_key"
	headerDocumentedToken = "Http_service_access_token" //nolint:gosec // a header's name, no secret
	HeaderKey             = "Service-Api-Key"
	HeaderToken           = "Service-Access-Token"
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
	apiKey, err = agreed(header, headerDocumentedKey, HeaderKey)
	if err != nil {
		return "", "", false, err
	}
	token, err = agreed(header, headerDocumentedToken, HeaderToken)
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

// agreed returns the single value of headers with the same meaning; empty if none is sent. The
// error is errTwice.
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

// Authenticate returns the caller of a request with a token or, as Bearer only, a ticket, or of a
// user of another login. It is for uploads. Other requests of accounts use AuthenticateAccount.
func (g *Gate) Authenticate(ctx context.Context, running *service.Service, w http.ResponseWriter, r *http.Request) (access.Caller, *item.Failure) {
	var caller access.Caller
	apiKey, token, bearer, err := credentials(r.Header)
	if errors.Is(err, errNone) {
		if account, refused := g.trusted(running, r); account.User != "" {
			return access.Caller{Account: account}, refused
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
		caller, message = access.Caller{}, "a ticket is sent as Authorization: Bearer <ticket> only"
	case err == nil:
		return caller, nil
	case errors.Is(err, tokens.ErrUnavailable):
		return caller, op.StoreUnreachable(ctx, g.Log, "tokens cannot be checked now, try again later", err)
	case errors.Is(err, access.ErrMalformed):
		message = "the token is not of the form of tokens here: send it exactly as it was received, without quotes or brackets"
	}
	w.Header().Set("WWW-Authenticate", "Bearer") // RFC 6750 section 3
	return caller, &item.Failure{Reason: item.Unauthorized, Message: message}
}

// AuthenticateAccount returns the account of a request with a token, or of a user. A ticket is
// refused.
func (g *Gate) AuthenticateAccount(ctx context.Context, running *service.Service, w http.ResponseWriter, r *http.Request) (access.Account, *item.Failure) {
	caller, refused := g.Authenticate(ctx, running, w, r)
	if refused == nil && caller.Ticket != nil {
		refused = item.Failf(item.Forbidden, "a ticket is for uploads only: send a token")
	}
	return caller.Account, refused
}

// TicketFailure returns the failure of an upload that the caller's ticket is not for, or nil.
func TicketFailure(caller access.Caller, kind item.Kind) *item.Failure {
	switch {
	case !caller.AllowsKind(kind.Name()):
		return item.Failf(item.Forbidden, "the ticket is for another kind: use %s%s", UploadPath, caller.Ticket.Kind)
	case caller.UsedUp():
		return ErrUsedUp
	}
	return nil
}

// ErrUsedUp is the failure of an upload with a ticket that has no files left.
var ErrUsedUp = resumable.Uncounted(access.ErrUsedUp)

// errOtherSite is the failure of a request of a user of another login.
var errOtherSite = item.Failf(item.Forbidden,
	"the request is from a page of another site: such pages need a token, or their origin in the option cors")

// trusted returns the account of a request without a credential of this service, whose user another
// login has authenticated. The User of the account is empty if there is none.
func (g *Gate) trusted(running *service.Service, r *http.Request) (access.Account, *item.Failure) {
	trust := running.Trust()
	if trust == nil {
		return access.Account{}, nil
	}
	user := ""
	if trust.Placeholder != "" {
		user = g.User(r, trust.Placeholder)
	} else if sent := r.Header.Values(trust.Header); len(sent) == 1 { // a second one may be the client's
		user = sent[0]
	}
	if user == "" {
		return access.Account{}, nil
	}
	if !g.ownSite(running, r) {
		return trust.Account(user), errOtherSite
	}
	return trust.Account(user), nil
}

// ownSite reports whether a request may act with the login that the browser sends by itself, such
// as a cookie. A request that may change something must come from a page of this site, or of an
// origin that cors names, or from a program that is no browser. RFC 9110 section 9.2.1 calls GET
// and HEAD safe.
func (g *Gate) ownSite(running *service.Service, r *http.Request) bool {
	_, overrides := r.Header["X-Http-Method-Override"]
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && !overrides {
		return true
	}
	site, origin := r.Header["Sec-Fetch-Site"], r.Header["Origin"]
	switch {
	case len(site) == 1 && (site[0] == "same-origin" || site[0] == "none"):
		return true
	case len(origin) == 1 && (running.Origins().Names(origin[0]) || service.IsOrigin(g.BaseURL(r), origin[0])):
		return true
	}
	return len(site) == 0 && len(origin) == 0 && len(r.Header["Cookie"]) == 0
}

// Purges reports whether a request keeps nothing in the trash, or returns the problem of its query
// or form, for the caller.
func Purges(values url.Values) (purge bool, problem string) {
	switch values := values["purge"]; {
	case values == nil:
		return false, ""
	case len(values) == 1 && values[0] == "yes":
		return true, ""
	}
	return false, "purge is yes, or is left out"
}
