package mediahttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/tokens"
)

type uploadAnswer struct {
	Success bool         `json:"success"`
	Result  []uploadItem `json:"result"`
}

type uploadItem struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp,omitempty"`
}

type uploadFailure struct {
	Success bool          `json:"success"`
	Errors  []itemFailure `json:"errors"`
}

type itemFailure struct {
	Message  string `json:"message"`
	Filename string `json:"filename"`
}

// upload stores the files of a request of whom its token names.
func (h *Handler) upload(kind ingest.Kind) endpoint {
	return func(app *mediaapp.App, w http.ResponseWriter, r *http.Request) error {
		uploads := Uploads{Origin: ingest.OriginHTTP, Log: h.log, prefix: MountPrefix(r)}
		return uploads.serve(app, w, r, kind, func(app *mediaapp.App) (tokens.Account, *refusal) {
			return h.authenticate(r.Context(), app, w, r.Header)
		})
	}
}

func (h *Handler) authenticate(ctx context.Context, app *mediaapp.App, w http.ResponseWriter, header http.Header) (tokens.Account, *refusal) {
	apiKey, token, err := credentials(header)
	var account tokens.Account
	if err == nil {
		account, err = app.Issuer().Verify(ctx, token, apiKey)
	}
	switch {
	case err == nil:
		return account, nil
	case errors.Is(err, tokens.ErrUnavailable):
		h.log.Error("token store cannot be used", zap.Error(err))
		retryAfter(w, time.Second)
		return account, &refusal{http.StatusServiceUnavailable, ingest.Unavailable, "tokens cannot be checked now, try again later"}
	default:
		w.Header().Set("WWW-Authenticate", "Bearer") // RFC 6750 section 3
		return account, &refusal{http.StatusUnauthorized, ingest.Unauthorized, "missing, wrong or expired API key and token"}
	}
}

// waitFor is how long a caller had better wait: a line of pictures is worked off in some
// seconds, and who sends his picture again makes it longer.
func waitFor(failures ingest.Failures) time.Duration {
	for _, f := range failures {
		if f.Reason == ingest.Busy {
			return 5 * time.Second
		}
	}
	return time.Second
}

// statuses of the reasons, in the order of spec'd precedence: the highest wins.
var statuses = map[ingest.Reason]int{
	ingest.Internal:      http.StatusInternalServerError,
	ingest.BadRequest:    http.StatusBadRequest,
	ingest.Unauthorized:  http.StatusUnauthorized,
	ingest.Forbidden:     http.StatusForbidden,
	ingest.Conflict:      http.StatusConflict,
	ingest.TooLarge:      http.StatusRequestEntityTooLarge,
	ingest.BadContent:    http.StatusUnsupportedMediaType,
	ingest.StorageFailed: http.StatusBadGateway,
	ingest.Unavailable:   http.StatusServiceUnavailable,
	ingest.NoSpace:       http.StatusInsufficientStorage,
	ingest.Busy:          http.StatusServiceUnavailable,
}

// statusOf is the highest status of several failures.
func statusOf(failures ingest.Failures) int {
	highest := 0
	for _, f := range failures {
		highest = max(highest, statuses[f.Reason])
	}
	return highest
}
