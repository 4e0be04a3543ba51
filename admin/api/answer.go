package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddymedia/media/caddymedia/httpjson"
	"github.com/caddymedia/media/caddymedia/redact"
	"github.com/caddymedia/media/storagedrivers"
)

// failure is the reason why a request is not served.
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

// answer writes v as a successful answer.
func (c *call) answer(v any) error { return c.write(http.StatusOK, v) }

func (c *call) write(status int, v any) error {
	c.w.Header().Set("Cache-Control", "no-store")
	return httpjson.Write(c.w, status, v)
}

// redacted returns text without the secrets of the configuration and of a submitted driver.
func (c *call) redacted(text string) string {
	return redact.New(append(c.app.Secrets(), c.secrets...)...).Strict(text)
}

// bounded returns the context for operations of a storage.
func (c *call) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), c.handler.maxTime)
}

// explain is [storagedrivers.Description.Explain] with a sentence for every error.
func explain(driver storagedrivers.Description, err error) string {
	return cmp.Or(driver.Explain(err),
		"The storage answered with an error that is not a usual one. The details have its own words.")
}

// storageFailed returns the failure for an error of a storage.
func storageFailed(driver storagedrivers.Description, err error) error {
	switch {
	case errors.Is(err, storagedrivers.ErrUnavailable), errors.Is(err, storagedrivers.ErrClosed),
		errors.Is(err, context.DeadlineExceeded):
		return failf(http.StatusServiceUnavailable, "%s", explain(driver, err))
	default:
		return failf(http.StatusBadGateway, "%s", explain(driver, err))
	}
}
