package mediahttp

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/upload"
)

type uploadAnswer struct {
	Success bool         `json:"success"`
	Result  []uploadItem `json:"result"`
}

type uploadItem struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp,omitempty"`
	// Renditions are addresses by the names of the renditions.
	Renditions map[string]string `json:"renditions,omitempty"`
}

type uploadFailure struct {
	Success bool          `json:"success"`
	Errors  []itemFailure `json:"errors"`
}

type itemFailure struct {
	Message  string `json:"message"`
	Filename string `json:"filename"`
}

func uploadAnswerOf(items []upload.Item) uploadAnswer {
	result := make([]uploadItem, len(items))
	for i, item := range items {
		result[i] = uploadItem{FullPath: item.FullPath, Filename: item.Filename, WebP: item.WebP, Renditions: item.Renditions}
	}
	return uploadAnswer{Success: true, Result: result}
}

// refuse responds with the failures of an upload, and logs those that are not the caller's fault.
func (u *uploadRequest) refuse(service *media.Service, w http.ResponseWriter, r *http.Request, status int, failures aliases.Failures) error {
	service.Observer().Failed(r.Context(), u.kind.Name(), strconv.Itoa(status))
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		retryAfter(w, retryDelay(failures))
	}
	failed := uploadFailure{Errors: make([]itemFailure, len(failures))}
	for i, f := range failures {
		failed.Errors[i] = itemFailure{Message: f.Message, Filename: f.Filename}
		if f.Err != nil {
			level := slog.LevelWarn
			if statuses[f.Reason] >= http.StatusInternalServerError && f.Reason != aliases.Busy {
				level = slog.LevelError
			}
			u.options.Log.Log(r.Context(), level, f.Message, "status", status, "error", f.Err)
		}
	}
	return answerUnread(w, r, status, failed)
}

// retryDelay is the Retry-After value. The encoding queue drains in seconds, and early retries only
// lengthen it.
func retryDelay(failures aliases.Failures) time.Duration {
	for _, f := range failures {
		if f.Reason == aliases.Busy {
			return busyRetry
		}
	}
	return time.Second
}

const busyRetry = 5 * time.Second

// statuses of the reasons. Of several failures the highest counts.
var statuses = map[aliases.Reason]int{
	aliases.Internal:      http.StatusInternalServerError,
	aliases.BadRequest:    http.StatusBadRequest,
	aliases.Unauthorized:  http.StatusUnauthorized,
	aliases.Forbidden:     http.StatusForbidden,
	aliases.Conflict:      http.StatusConflict,
	aliases.TooLarge:      http.StatusRequestEntityTooLarge,
	aliases.BadContent:    http.StatusUnsupportedMediaType,
	aliases.StorageFailed: http.StatusBadGateway,
	aliases.Unavailable:   http.StatusServiceUnavailable,
	aliases.NoSpace:       http.StatusInsufficientStorage,
	aliases.Busy:          http.StatusServiceUnavailable,
}

// statusOf returns the highest status of several failures.
func statusOf(failures aliases.Failures) int {
	highest := 0
	for _, f := range failures {
		highest = max(highest, statuses[f.Reason])
	}
	return highest
}
