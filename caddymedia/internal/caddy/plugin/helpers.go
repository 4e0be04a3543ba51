package plugin

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/redact"
	"github.com/caddymedia/media/caddymedia/media"
)

// ImagePath calls [media.Service.ImagePath].
func (a *App) ImagePath(alias string) (string, error) { return a.service.ImagePath(alias) }

// ImageSrcset calls [media.Service.ImageSrcset].
func (a *App) ImageSrcset(ctx context.Context, alias, filename string) (string, error) {
	return a.service.ImageSrcset(ctx, alias, filename)
}

// ImageSize calls [media.Service.ImageSize].
func (a *App) ImageSize(ctx context.Context, alias, filename string) (*media.Size, error) {
	return a.service.ImageSize(ctx, alias, filename)
}

// FilePath is [media.Service.FilePath].
func (a *App) FilePath(alias string) (string, error) { return a.service.FilePath(alias) }

// ClientOf returns the client address of a request, given its context. Caddy determines the
// address, and accepts forwarded headers only from trusted proxies. It is empty if Caddy does not
// know the address.
func ClientOf(ctx context.Context) string {
	client, _ := caddyhttp.GetVar(ctx, caddyhttp.ClientIPVarKey).(string)
	return client
}

// Redact returns text without the secrets of the configuration and without further secrets, those
// of a request. A nil App has no configuration.
func (a *App) Redact(text string, further ...string) string {
	if a != nil {
		further = append(a.Secrets(), further...)
	}
	return redact.New(further...).Strict(text)
}

// ReadJSON decodes the body of a request into v, see [httpx.ReadJSON]: one JSON value of at most
// limit bytes without unknown fields. The error is an [http.MaxBytesError] for a larger body.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	return httpx.ReadJSON(w, r, limit, v)
}
