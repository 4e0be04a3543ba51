package mediahttp

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
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

func uploadAnswerOf(items []ingest.Item) uploadAnswer {
	result := make([]uploadItem, len(items))
	for i, item := range items {
		result[i] = uploadItem{FullPath: item.FullPath, Filename: item.Filename, WebP: item.WebP, Renditions: item.Renditions}
	}
	return uploadAnswer{Success: true, Result: result}
}

// refuse responds with the failures of an upload, and logs those that are not the caller's fault.
func (u *upload) refuse(service *media.Service, w http.ResponseWriter, r *http.Request, status int, failures ingest.Failures) error {
	service.Observer().Failed(r.Context(), u.kind.Name(), strconv.Itoa(status))
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		retryAfter(w, retryDelay(failures))
	}
	failed := uploadFailure{Errors: make([]itemFailure, len(failures))}
	for i, f := range failures {
		failed.Errors[i] = itemFailure{Message: f.Message, Filename: f.Filename}
		if f.Err != nil {
			level := slog.LevelWarn
			if statuses[f.Reason] >= http.StatusInternalServerError && f.Reason != ingest.Busy {
				level = slog.LevelError
			}
			u.options.Log.Log(r.Context(), level, f.Message, "status", status, "error", f.Err)
		}
	}
	return answerUnread(w, r, status, failed)
}

// retryDelay is the Retry-After value. The encoding queue drains in seconds, and early retries only
// lengthen it.
func retryDelay(failures ingest.Failures) time.Duration {
	for _, f := range failures {
		if f.Reason == ingest.Busy {
			return busyRetry
		}
	}
	return time.Second
}

const busyRetry = 5 * time.Second

// statuses of the reasons. Of several failures the highest counts.
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

// statusOf returns the highest status of several failures.
func statusOf(failures ingest.Failures) int {
	highest := 0
	for _, f := range failures {
		highest = max(highest, statuses[f.Reason])
	}
	return highest
}
