package panel

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// serveAPI serves a route below "<path>/api/". The caller has checked that the visitor may use it.
func (p *Panel) serveAPI(w http.ResponseWriter, r *http.Request, v visitor, route string) {
	area, rest, _ := strings.Cut(route, "/")
	switch {
	case area == "upload":
		p.upload(w, r, v, rest)
	case area == "items":
		p.items(w, r, v)
	case area == "session" && rest == "":
		if p.allowed(w, r, http.MethodGet, http.MethodHead) {
			p.answer(w, r, http.StatusOK, p.session(r.Context(), v))
		}
	case route == "openapi.json" && !v.itemsOnly:
		if p.allowed(w, r, http.MethodGet, http.MethodHead) {
			p.answer(w, r, http.StatusOK, json.RawMessage(mediahttp.OpenAPI))
		}
	case (r.Method == http.MethodPut || r.Method == http.MethodPost) && area != "zip" && !v.itemsOnly:
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" { // a form of another site could send it
			p.fail(w, r, http.StatusUnsupportedMediaType, "the body must be application/json")
			return
		}
		fallthrough
	default:
		actor := item.Actor{Origin: item.OriginPanel, Account: v.name, Client: plugin.ClientOf(r.Context())}
		ctx := adminapi.WithActor(r.Context(), actor)
		if v.itemsOnly {
			ctx = adminapi.WithItemsOnly(ctx, v.account)
		}
		p.routes.ServeHTTP(w, r.WithContext(ctx))
	}
}

// policy allows the pages to use their own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; " +
	"frame-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// secure sets the headers of all answers.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // without a referrer the forms of the pages would have no origin
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// answer writes v as JSON, whether or not the body of the request was read. It holds texts and
// numbers only, so encoding cannot fail.
func (p *Panel) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	_ = httpx.AnswerAndLinger(w, r, p.now, status, v)
}

// fail answers with an error message.
func (p *Panel) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	p.answer(w, r, status, map[string]string{"error": message})
}

// allowed reports whether the method of a request is one of methods. If not, it answers with an
// error.
func (p *Panel) allowed(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	list := strings.Join(methods, ", ")
	w.Header().Set("Allow", list)
	p.fail(w, r, http.StatusMethodNotAllowed, "use "+list)
	return false
}

// visitor returns the user of a request. The name is never expanded as a placeholder.
func (p *Panel) visitor(r *http.Request) visitor {
	replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return visitor{}
	}
	var name string
	if p.login != nil {
		name = p.login.user(r)
		replacer.Set(authenticatedUser, name) // for access logs
	} else if known, err := replacer.ReplaceOrErr(p.User, true, true); err == nil {
		name = known
	}
	if strings.TrimSpace(name) == "" {
		return visitor{}
	}
	return p.visitorOf(name)
}

const otherSite = "the request comes from another site"

const onlyLooking = "You can view everything here, but not change it: your user is not an editor."

func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// changes reports whether a request may change something. rest is its path below the panel. A POST
// of items to download as a zip changes nothing; their names are too long for an address.
func changes(r *http.Request, rest string) bool {
	return !reads(r) && (r.Method != http.MethodPost || !strings.HasPrefix(rest, "/api/zip/"))
}

const strangerText = "No user is logged in. Add users in the Caddyfile: " +
	"media_admin { login { <user> <password hash> } }, or put the panel behind a single sign-on (forward_auth). " +
	"Make a hash with: caddy hash-password --algorithm argon2id"

// refuseStranger answers a request without a user by an explanation of how to log in. A browser
// gets a page.
func (p *Panel) refuseStranger(w http.ResponseWriter, r *http.Request, rest string) {
	if !reads(r) || rest == "/api" || strings.HasPrefix(rest, "/api/") {
		p.fail(w, r, http.StatusForbidden, strangerText)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(p.pages.files[strangerFile]) // the client may be gone
}

// audited logs the subject, the user and the client of a change, but never its content.
func (p *Panel) audited(w http.ResponseWriter, r *http.Request, v visitor, rest string, serve func(http.ResponseWriter)) {
	if !changes(r, rest) {
		serve(w)
		return
	}
	// For "/api/config/storages/archive" these are "storages" and "archive".
	section, name, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(rest, "/api/"), "config/"), "/")
	recorder := caddyhttp.NewResponseRecorder(w, nil, nil)
	serve(recorder)
	p.log.Info("change in the panel", zap.String("user", v.name), zap.String("what", r.Method),
		zap.String("section", section), zap.String("name", name), zap.String("client", plugin.ClientOf(r.Context())),
		zap.Int("result", recorder.Status()))
}
