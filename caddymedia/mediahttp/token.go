package mediahttp

import (
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// maxTokenBody is the most bytes of a token request.
const maxTokenBody = 64 << 10

type tokenAnswer struct {
	Success bool `json:"success"`
	// Token is opaque to the client.
	Token string `json:"token"`
	// ExpiresAt is in Unix seconds.
	ExpiresAt int64 `json:"expires_at"`
}

type tokenFailure struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// generateToken gives a token for an API key and its password.
func (h *Handler) generateToken(app *mediaapp.App, w http.ResponseWriter, r *http.Request) error {
	refuse := func(status int, message string) error {
		app.CountFailure("token", strconv.Itoa(status))
		return h.answerUnread(w, r, status, tokenFailure{Message: message})
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, "use POST")
	}
	form, status, message := readTokenForm(w, r)
	if message != "" {
		return refuse(status, message)
	}
	token, expires, err := app.Issuer().Issue(r.Context(), form.Get("api_key"), form.Get("password"), clientOf(r))
	if err == nil {
		app.CountLogin(mediaapp.LoginOK)
		mediaapp.NoteAccount(r.Context(), form.Get("api_key"))
		return answer(w, http.StatusOK, tokenAnswer{Success: true, Token: token, ExpiresAt: expires.Unix()})
	}
	var throttled *tokens.ThrottledError
	switch {
	case errors.Is(err, tokens.ErrCredentials):
		app.CountLogin(mediaapp.LoginRefused)
		if err != tokens.ErrCredentials { //nolint:errorlint // more than that: the hash in the configuration is broken
			h.log.Error("checking a password", zap.Error(err))
		}
		return refuse(http.StatusUnauthorized, "wrong API key or password")
	case errors.As(err, &throttled):
		app.CountLogin(mediaapp.LoginThrottled)
		retryAfter(w, throttled.RetryAfter)
		return refuse(http.StatusTooManyRequests, "too many attempts, try again later")
	case errors.Is(err, tokens.ErrUnavailable):
		app.CountLogin(mediaapp.LoginUnavailable)
		h.log.Error("token store cannot be used", zap.Error(err))
		retryAfter(w, time.Second)
		return refuse(http.StatusServiceUnavailable, "tokens cannot be given now, try again later")
	case r.Context().Err() != nil:
		return nil //nolint:nilerr // nobody is there to be answered
	default:
		app.CountLogin(mediaapp.LoginFailed)
		h.log.Error("giving a token", zap.Error(err))
		return refuse(http.StatusInternalServerError, "internal error")
	}
}

// readTokenForm reads the two fields; a message says what is wrong with the request.
func readTokenForm(w http.ResponseWriter, r *http.Request) (url.Values, int, string) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	r.Body = &watchedBody{ReadCloser: r.Body}
	body := http.MaxBytesReader(w, r.Body, maxTokenBody)
	var form url.Values
	switch mediaType {
	case "application/x-www-form-urlencoded":
		var b []byte
		if b, err = io.ReadAll(body); err == nil {
			form, err = url.ParseQuery(string(b))
		}
	case "multipart/form-data":
		var parts *multipart.Form
		if parts, err = multipart.NewReader(body, params["boundary"]).ReadForm(maxTokenBody); err == nil {
			form = parts.Value
		}
	default:
		return nil, http.StatusUnsupportedMediaType, "the body must be application/x-www-form-urlencoded or multipart/form-data"
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, http.StatusRequestEntityTooLarge, "the body is larger than 64 KiB"
	}
	if err != nil {
		return nil, http.StatusBadRequest, "the body is malformed"
	}
	for _, name := range []string{"api_key", "password"} {
		if len(form[name]) > 1 {
			return nil, http.StatusBadRequest, "the field " + name + " is sent twice"
		}
		if form.Get(name) == "" {
			return nil, http.StatusBadRequest, "the field " + name + " is missing"
		}
	}
	return form, 0, ""
}

// clientOf is the address that Caddy holds for the client's: forwarded headers count only
// from its trusted proxies.
func clientOf(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddr(mediaapp.ClientOf(r.Context()))
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

func retryAfter(w http.ResponseWriter, wait time.Duration) {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
}
