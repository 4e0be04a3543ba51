package mediahttp

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
)

type tokenAnswer struct {
	Success bool `json:"success"`
	// Token is opaque to the client.
	Token string `json:"token"`
	// ExpiresAt is in Unix seconds.
	ExpiresAt int64 `json:"expires_at"`
}

// generateToken responds with a token for an API key and its password.
func (h *Handler) generateToken(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refuseToken(running, w, r, http.StatusMethodNotAllowed, "use POST")
	}
	form, status, message := caller.SmallForm.Read(w, r, h.gate.Now, "api_key", "password")
	if message != "" {
		return refuseToken(running, w, r, status, message)
	}
	key := form.Get("api_key")
	if account, _ := running.Issuer().Account(key); account.PasswordHash == access.PublicHash && !h.gate.IsLocal(r) {
		running.Observer().LoggedIn(r.Context(), "", service.LoginRefused)
		return refuseToken(running, w, r, http.StatusForbidden,
			"the password of this account is in the documentation, so it works only on the computer that runs the service; caddy media account makes another one")
	}
	token, expires, err := running.Issuer().Issue(r.Context(), key, form.Get("password"), h.gate.ClientAddr(r))
	if err != nil {
		return h.loginFailed(running, w, r, err)
	}
	running.Observer().LoggedIn(r.Context(), key, service.LoginOK)
	return httpx.Answer(w, http.StatusOK, tokenAnswer{Success: true, Token: token, ExpiresAt: expires.Unix()})
}

// loginFailed responds to a request for a token that was not issued.
func (h *Handler) loginFailed(running *service.Service, w http.ResponseWriter, r *http.Request, err error) error {
	var throttled *access.ThrottledError
	result, status, message := service.LoginFailed, http.StatusInternalServerError, "internal error"
	switch {
	case errors.Is(err, access.ErrCredentials):
		result, status, message = service.LoginRefused, http.StatusUnauthorized, "wrong API key or password"
		if err != access.ErrCredentials { //nolint:errorlint // more than that: the hash in the configuration is broken
			h.gate.Log.Error("checking a password", "error", err)
		}
	case errors.As(err, &throttled):
		result, status, message = service.LoginThrottled, http.StatusTooManyRequests, "too many attempts, try again later"
		httpx.RetryAfter(w, throttled.RetryAfter)
	case r.Context().Err() != nil:
		return nil //nolint:nilerr // the client is gone
	case errors.Is(err, tokens.ErrUnavailable):
		result, status, message = service.LoginUnavailable, http.StatusServiceUnavailable, "tokens cannot be given now, try again later"
		h.gate.Log.Error("token store unreachable", "error", err)
		httpx.RetryAfter(w, time.Second)
	default:
		h.gate.Log.Error("issuing a token", "error", err)
	}
	running.Observer().LoggedIn(r.Context(), "", result)
	return refuseToken(running, w, r, status, message)
}

// refuseToken responds to a request for a token with an error.
func refuseToken(running *service.Service, w http.ResponseWriter, r *http.Request, status int, message string) error {
	return caller.RefuseForm(running, w, r, "token", status, message)
}
