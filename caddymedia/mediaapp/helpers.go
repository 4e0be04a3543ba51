package mediaapp

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/media"
)

// Result is the outcome of storing an item for Go code.
type Result = media.Result

// DownloadImage is [media.Service.DownloadImage] of the running configuration. The item is ascribed to the
// client of the request that ctx belongs to.
func (a *App) DownloadImage(ctx context.Context, address, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.DownloadImage(ctx, address, alias, subFolder) })
}

// DownloadFile is [media.Service.DownloadFile] of the running configuration.
func (a *App) DownloadFile(ctx context.Context, address, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.DownloadFile(ctx, address, alias, subFolder) })
}

// FormImage is [media.Service.FormImage] of the running configuration.
func (a *App) FormImage(r *http.Request, input, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.FormImage(r, input, alias, subFolder) })
}

// FormFile is [media.Service.FormFile] of the running configuration.
func (a *App) FormFile(r *http.Request, input, alias, subFolder string) Result {
	return a.store(func(s *media.Service) Result { return s.FormFile(r, input, alias, subFolder) })
}

// store calls f with a service that stays open meanwhile. A closed one says so.
func (a *App) store(f func(*media.Service) Result) Result {
	service, release, err := a.Acquire()
	if err != nil {
		return f(a.service)
	}
	defer release()
	return f(service)
}

// ImagePath is [media.Service.ImagePath].
func (a *App) ImagePath(alias string) (string, error) { return a.service.ImagePath(alias) }

// FilePath is [media.Service.FilePath].
func (a *App) FilePath(alias string) (string, error) { return a.service.FilePath(alias) }

// ClientOf returns the address that Caddy holds for the client's, given the context of a request:
// forwarded headers count only from its trusted proxies. It is empty where Caddy knows none.
func ClientOf(ctx context.Context) string {
	client, _ := caddyhttp.GetVar(ctx, caddyhttp.ClientIPVarKey).(string)
	return client
}
