package load_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const sinkDirective = "bench_sink"

func init() {
	caddy.RegisterModule(sink{})
	httpcaddyfile.RegisterHandlerDirective(sinkDirective, func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		h.NextArg()
		return sink{Folder: h.Val()}, nil
	})
}

// sink stores the files of forms, in the fewest lines. It is what uploads are compared with, so it
// stays as it is.
type sink struct {
	Folder string `json:"folder"`
}

func (sink) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + sinkDirective, New: func() caddy.Module { return new(sink) }}
}

func (s sink) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodPost {
		return next.ServeHTTP(w, r)
	}
	form, err := r.MultipartReader()
	if err != nil {
		return err
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(s.Folder, filepath.Base(part.FileName())))
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, part); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
}
