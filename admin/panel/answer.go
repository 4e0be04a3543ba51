package panel

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// policy lets the pages use what comes with them, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// secure sets the headers of all answers.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // what is answered here is made of texts and numbers
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone cannot be told
}

// lingerTime is how long the rest of a body is read after an answer.
const lingerTime = 3 * time.Second

// fail answers with an error in words. Where the body of the request was not read, that
// ends the connection over HTTP/1: otherwise the server would wait for the body before it
// answers. What the client still sends is thrown away for a while, as closing at once would
// take the answer from it.
func (p *Panel) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	unread := r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody
	if unread {
		w.Header().Set("Connection", "close")
	}
	answer(w, status, map[string]string{"error": message})
	control := http.NewResponseController(w)
	if unread && r.Header.Get("Expect") == "" && control.Flush() == nil && control.SetReadDeadline(p.now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, r.Body) // it ends as it may
	}
}

// allowed refuses a request of another method than these.
func (p *Panel) allowed(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	list := strings.Join(methods, ", ")
	w.Header().Set("Allow", list)
	p.fail(w, r, http.StatusMethodNotAllowed, "use "+list)
	return false
}
