// Command people is a custom Caddy, with the media service and a Go handler that uses it. The
// handler stores portraits from remote addresses, and files of a form:
//
//	curl -d 'from=https://example.com/me.jpg' localhost:8080/portrait
//	curl -F 'cv=@cv.pdf' localhost:8080/cv
package main

import (
	"encoding/json"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddymedia/media/caddymedia"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

func main() { caddycmd.Main() }

func init() {
	caddy.RegisterModule(People{})
	httpcaddyfile.RegisterHandlerDirective("people", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return People{}, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("people", httpcaddyfile.Before, "file_server")
}

// People is the directive `people`.
type People struct{}

// CaddyModule returns the Caddy module information.
func (People) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.people", New: func() caddy.Module { return new(People) }}
}

// ServeHTTP stores the data of a person, and answers with its addresses.
func (People) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	service, release, err := mediaapp.Acquire()
	if err != nil {
		return err
	}
	defer release()
	var result media.Result
	switch r.URL.Path {
	case "/portrait":
		if err := r.ParseForm(); err != nil {
			return caddyhttp.Error(http.StatusBadRequest, err)
		}
		result = service.DownloadImage(r.Context(), r.PostForm.Get("from"), "people", "portraits")
	case "/cv":
		result = service.FormFile(r, "cv", "documents", "")
	default:
		return next.ServeHTTP(w, r)
	}
	w.Header().Set("Content-Type", "application/json")
	if !result.Success {
		w.WriteHeader(http.StatusBadRequest)
	}
	return json.NewEncoder(w).Encode(result)
}
