package mediaapp

import (
	"net/http"

	"github.com/caddymedia/media/caddymedia/httpjson"
	"github.com/caddymedia/media/caddymedia/redact"
)

// Redact returns text without the secrets of the configuration and without further secrets, those
// of a request. A nil App has no configuration.
func (a *App) Redact(text string, further ...string) string {
	if a != nil {
		further = append(a.Secrets(), further...)
	}
	return redact.New(further...).Strict(text)
}

// ReadJSON decodes the body of a request into v, see [httpjson.Read]: one JSON value of at most
// limit bytes without unknown fields. The error is an [http.MaxBytesError] for a larger body.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	return httpjson.Read(w, r, limit, v)
}
