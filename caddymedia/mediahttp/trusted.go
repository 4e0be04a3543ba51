package mediahttp

import (
	"net/http"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// The refusals of requests of users of another login.
var (
	otherSite = &refusal{
		http.StatusForbidden, item.Forbidden,
		"the request is from a page of another site: such pages need a token, or their origin in the option cors",
	}
	noItem = &refusal{http.StatusNotFound, item.BadRequest, "there is no such item"}
	// otherAlias and otherFolder are for an upload that outlasts its configuration.
	otherAlias  = &refusal{http.StatusForbidden, item.Forbidden, "the account may not use the alias any more"}
	otherFolder = &refusal{http.StatusForbidden, item.Forbidden, "the user has another folder by now"}
	noFolder    = &refusal{http.StatusNotFound, item.Missing, upload.NoFolder}
)

// trusted returns the account of a request without a credential of this service, whose user another
// login has authenticated. The User of the account is empty if there is none.
func (h *Handler) trusted(running *service.Service, r *http.Request) (tokens.Account, *refusal) {
	trust := running.Trust()
	if trust == nil {
		return tokens.Account{}, nil
	}
	user := ""
	if trust.Placeholder != "" {
		user = h.options.User(r, trust.Placeholder)
	} else if sent := r.Header.Values(trust.Header); len(sent) == 1 { // a second one may be the client's
		user = sent[0]
	}
	if user == "" {
		return tokens.Account{}, nil
	}
	if !h.ownSite(running, r) {
		return trust.Account(user), otherSite
	}
	return trust.Account(user), nil
}

// ownSite reports whether a request may act with the login that the browser sends by itself, such as a
// cookie. A request that may change something must come from a page of this site, or of an origin that
// cors names, or from a program that is no browser. RFC 9110 section 9.2.1 calls GET and HEAD safe.
func (h *Handler) ownSite(running *service.Service, r *http.Request) bool {
	_, overrides := r.Header["X-Http-Method-Override"]
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && !overrides {
		return true
	}
	site, origin := r.Header["Sec-Fetch-Site"], r.Header["Origin"]
	switch {
	case len(site) == 1 && (site[0] == "same-origin" || site[0] == "none"):
		return true
	case len(origin) == 1 && (running.Origins().Names(origin[0]) || service.IsOrigin(h.baseURL(r), origin[0])):
		return true
	}
	return len(site) == 0 && len(origin) == 0 && len(r.Header["Cookie"]) == 0
}
