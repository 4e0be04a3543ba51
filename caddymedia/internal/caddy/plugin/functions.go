package plugin

import (
	"context"
	"errors"
	"fmt"
	"text/template"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/templates"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/media"
)

func init() { caddy.RegisterModule(Functions{}) }

// Functions adds functions to the `templates` handler. Two return the public address of an alias,
// to which a slash and a stored name are appended. With the name of a rendition behind that of the
// alias, it is the address of the rendition:
//
// `{{image_path "content"}}/26-11/20/photo.jpg`
//
// `{{image_path "content@thumb"}}/26-11/20/photo.jpg`
//
// `{{file_path "content"}}/26-11/20/invoice.pdf`
//
// Another one returns the addresses of an image and of its renditions with their widths, for the
// attribute `srcset`:
//
// `<img src="{{image_path "content"}}/26-11/20/photo.jpg" srcset="{{image_srcset "content" "26-11/20/photo.jpg"}}" sizes="50vw">`
//
// Another one returns the size of an image, or of a rendition, and nothing if it is not known:
//
// `<img src="..." {{with image_size "content" "26-11/20/photo.jpg"}}width="{{.Width}}" height="{{.Height}}"{{end}}>`
//
// Two others return the signed address of an item of a private alias, which is valid for the given
// time, 7 days at most. Without it, that is an hour:
//
// `<img src="{{image_url "photos" "26-11/20/photo.jpg" "1h"}}">`
//
// `<a href="{{file_url "invoices" "26-11/20/invoice.pdf"}}">`
//
// Without a `cdn_base` the addresses have no host: `/static/img/content`.
type Functions struct {
	app       *App
	functions template.FuncMap
}

// CaddyModule returns the Caddy module information.
func (Functions) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.templates.functions.media",
		New: func() caddy.Module { return new(Functions) },
	}
}

// Provision loads the media app.
func (f *Functions) Provision(ctx caddy.Context) error {
	app, err := ctx.App("media")
	if err != nil {
		return err
	}
	f.app = app.(*App) // the type of the module "media"
	f.functions = template.FuncMap{
		"image_path": f.app.ImagePath, "file_path": f.app.FilePath,
		"image_srcset": func(alias, filename string) (string, error) { return f.app.ImageSrcset(ctx, alias, filename) },
		"image_size":   func(alias, filename string) (*media.Size, error) { return f.app.ImageSize(ctx, alias, filename) },
		"image_url":    f.signed(ctx, (*media.Service).ImageURL), "file_url": f.signed(ctx, (*media.Service).FileURL),
	}
	return nil
}

// signed returns a function that signs an address by a method of the running service.
func (f *Functions) signed(
	ctx context.Context, sign func(*media.Service, context.Context, string, string, time.Duration) (string, error),
) func(alias, filename string, lifetime ...string) (string, error) {
	return func(alias, filename string, lifetime ...string) (string, error) {
		var seconds time.Duration
		if len(lifetime) > 1 {
			return "", errors.New("one lifetime at most, such as 1h")
		}
		if len(lifetime) == 1 {
			var err error
			if seconds, err = caddy.ParseDuration(lifetime[0]); err != nil || seconds <= 0 {
				return "", fmt.Errorf("the lifetime is a duration such as 1h, not %q", lifetime[0])
			}
		}
		service, release, err := f.app.Acquire()
		if err != nil {
			return "", err
		}
		defer release()
		return sign(service, ctx, alias, filename, seconds)
	}
}

// CustomTemplateFunctions returns image_path, file_path, image_srcset, image_size, image_url and
// file_url.
func (f *Functions) CustomTemplateFunctions() template.FuncMap { return f.functions }

// UnmarshalCaddyfile accepts no options. Syntax:
//
//	templates {
//		extensions {
//			media
//		}
//	}
func (f *Functions) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // media
	if d.NextArg() {
		return d.ArgErr()
	}
	return modules.ParseBlock(d, "the media functions", nil)
}

// Interface guards
var (
	_ caddy.Provisioner         = (*Functions)(nil)
	_ caddyfile.Unmarshaler     = (*Functions)(nil)
	_ templates.CustomFunctions = (*Functions)(nil)
)
