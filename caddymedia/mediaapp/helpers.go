package mediaapp

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/redact"
	"github.com/caddymedia/media/caddymedia/media"
)

// Result is the outcome of storing an item for Go code.
type Result = media.Result

// DownloadImage calls [media.Service.DownloadImage] of the running configuration. The item is
// ascribed to the client of the request that ctx belongs to.
func (a *App) DownloadImage(ctx context.Context, address, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.DownloadImage(ctx, address, alias, subFolder) })
}

// DownloadFile calls [media.Service.DownloadFile] of the running configuration.
func (a *App) DownloadFile(ctx context.Context, address, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.DownloadFile(ctx, address, alias, subFolder) })
}

// FormImage calls [media.Service.FormImage] of the running configuration.
func (a *App) FormImage(r *http.Request, input, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.FormImage(r, input, alias, subFolder) })
}

// FormFile calls [media.Service.FormFile] of the running configuration.
func (a *App) FormFile(r *http.Request, input, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.FormFile(r, input, alias, subFolder) })
}

// store calls f with a service that stays open during the call. If there is none, f gets the closed
// service and returns its error.
func (a *App) store(f func(*media.Service) Result) Result {
	service, release, err := a.Acquire()
	if err != nil {
		return f(a.service)
	}
	defer release()
	return f(service)
}

// ImagePath calls [media.Service.ImagePath].
func (a *App) ImagePath(alias string) (string, error) { return a.service.ImagePath(alias) }

// ImageSrcset calls [media.Service.ImageSrcset].
func (a *App) ImageSrcset(ctx context.Context, alias, filename string) (string, error) {
	return a.service.ImageSrcset(ctx, alias, filename)
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
