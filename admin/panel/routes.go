package panel

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/admin/api"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// serveAPI serves a route below "<path>/api/". The caller has checked that the visitor may use it.
func (p *Panel) serveAPI(w http.ResponseWriter, r *http.Request, v visitor, route string) {
	area, rest, _ := strings.Cut(route, "/")
	switch {
	case area == "upload":
		p.upload(w, r, v, rest)
	case area == "session" && rest == "":
		if p.allowed(w, r, http.MethodGet, http.MethodHead) {
			p.answer(w, r, http.StatusOK, p.session(r.Context(), v))
		}
	case route == "openapi.json":
		if p.allowed(w, r, http.MethodGet, http.MethodHead) {
			p.answer(w, r, http.StatusOK, json.RawMessage(mediahttp.OpenAPI))
		}
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" { // a form of another site could send it
			p.fail(w, r, http.StatusUnsupportedMediaType, "the body must be application/json")
			return
		}
		fallthrough
	default:
		p.routes.ServeHTTP(w, r.WithContext(api.WithActor(r.Context(), v.actor(r))))
	}
}

// policy allows the pages to use their own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// loginPolicy is the policy of the login page, whose form works without its script.
var loginPolicy = strings.Replace(policy, "form-action 'none'", "form-action 'self'", 1)

// secure sets the headers of all answers.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// answer writes v as JSON, whether or not the body of the request was read. It holds texts and numbers
// only, so encoding cannot fail.
func (p *Panel) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	_ = mediahttp.AnswerUnread(w, r, p.now, status, v)
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
