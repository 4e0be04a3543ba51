package mediahttp

import (
	"errors"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/tokens"
)

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

// generateToken answers with a token for an API key and its password.
func (h *Handler) generateToken(app *mediaapp.App, w http.ResponseWriter, r *http.Request) error {
	refuse := func(status int, message string) error {
		app.CountFailure("token", strconv.Itoa(status))
		return answerUnread(w, r, status, tokenFailure{Message: message})
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, "use POST")
	}
	form, status, message := ReadForm(w, r, h.now, "api_key", "password")
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
