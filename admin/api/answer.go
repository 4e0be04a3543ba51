package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/caddymedia/media/caddymedia/redact"
	"github.com/caddymedia/media/storagedrivers"
)

// failure is why a request is not served.
type failure struct {
	status int
	// Message is for a person. It has no secrets.
	Message string `json:"error"`
	// Option is the path of the one that is to blame, if that is known: "driver.root".
	Option string `json:"option,omitempty"`
}

func (f *failure) Error() string { return f.Message }

func failf(status int, format string, args ...any) *failure {
	return &failure{status: status, Message: fmt.Sprintf(format, args...)}
}

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // of values that come from JSON
		status, body = http.StatusInternalServerError, []byte(`{"error":"The answer could not be made."}`)
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone cannot be told
}

// answer answers with v.
func (c *call) answer(v any) error {
	answer(c.w, http.StatusOK, v)
	return nil
}

// redacted returns text without the secrets of the configuration and of a submitted driver.
func (c *call) redacted(text string) string {
	return redact.New(append(c.app.Secrets(), c.secrets...)...).Strict(text)
}

// bounded gives the context of what waits for a storage.
func (c *call) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), c.handler.maxTime)
}

// storageFailed tells of a storage that did not do what it was asked for.
func storageFailed(kind, step string, err error) error {
	switch {
	case errors.Is(err, storagedrivers.ErrUnavailable), errors.Is(err, storagedrivers.ErrClosed),
		errors.Is(err, context.DeadlineExceeded):
		return failf(http.StatusServiceUnavailable, "%s", explain(kind, step, err))
	default:
		return failf(http.StatusBadGateway, "%s", explain(kind, step, err))
	}
}
