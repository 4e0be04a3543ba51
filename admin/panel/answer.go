package panel

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/httpx"
)

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

// answer writes v as JSON. It holds texts and numbers only, so encoding cannot fail.
func answer(w http.ResponseWriter, status int, v any) { _ = httpx.WriteJSON(w, status, v) }

// fail answers with an error message, whether or not the body of the request was read.
func (p *Panel) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	_ = httpx.AnswerUnread(w, r, status, map[string]string{"error": message}) // a text can be written
	httpx.Linger(w, r, p.now)
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
