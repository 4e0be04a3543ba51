package mediahttp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return caddyhttp.Error(http.StatusInternalServerError, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone cannot be told
	return nil
}

// Bounds of [Linger]. A client that sends a picture, or reads answers while it sends, sees the answer.
const (
	lingerTime  = 3 * time.Second
	lingerBytes = 96 << 20
)

// AnswerUnread answers with v as JSON a request whose body is not read to its end, and lingers. now is
// the clock of that. The error is for Caddy; nothing was answered then.
func AnswerUnread(w http.ResponseWriter, r *http.Request, now func() time.Time, status int, v any) error {
	err := answerUnread(w, r, status, v)
	Linger(w, r, now)
	return err
}

// answerUnread answers with v as JSON a request whose body is not read to its end. Over HTTP/1 that
// ends the connection: otherwise the server waits for the body before it answers, a minute if the
// client in turn waits for "100 Continue".
func answerUnread(w http.ResponseWriter, r *http.Request, status int, v any) error {
	if hasUnread(r) {
		w.Header().Set("Connection", "close")
	}
	return answer(w, status, v)
}

func hasUnread(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody
}

// Linger reads a little more of a body that was refused, after the answer. To close the connection at
// once would reset it, and the client would lose the answer that it has not read yet, RFC 9112 section
// 9.6. It does nothing after other answers. Nothing should be held meanwhile.
func Linger(w http.ResponseWriter, r *http.Request, now func() time.Time) {
	if !hasUnread(r) || w.Header().Get("Connection") != "close" {
		return
	}
	control := http.NewResponseController(w)
	waits := r.Header.Get("Expect") != "" && !bodyBegun(r)
	if control.Flush() == nil && !waits && control.SetReadDeadline(now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // it ends as it may
	}
}

// watchedBody remembers whether anything was read of a body.
type watchedBody struct {
	io.ReadCloser
	begun bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.begun = true
	return b.ReadCloser.Read(p)
}

func bodyBegun(r *http.Request) bool {
	body, ok := r.Body.(*watchedBody)
	return ok && body.begun
}

// baseURL is the scheme and host that the client used. What a proxy says of them counts
// only if Caddy trusts it.
func baseURL(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
		if scheme := r.Header.Get("X-Forwarded-Proto"); scheme == "http" || scheme == "https" {
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

// MountPrefix returns the prefix of the client's path that was removed on the way to the handler, as
// `handle_path` does. Items are served below it too.
func MountPrefix(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok || original.URL == nil {
		return ""
	}
	prefix, ok := strings.CutSuffix(original.URL.EscapedPath(), r.URL.EscapedPath())
	if !ok || strings.HasPrefix(prefix, "//") { // without a host before it, "//" begins one
		return ""
	}
	return prefix
}

// validHost tells a host and port from what else a Host header can hold.
func validHost(host string) bool {
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
