package mediaapp

import (
	"text/template"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/templates"

	"github.com/caddymedia/media/caddymedia/modules"
)

func init() { caddy.RegisterModule(Functions{}) }

// Functions adds functions to the `templates` handler. Two return the public address of an alias, to
// which a slash and a stored name are appended. With the name of a rendition behind that of the
// alias, it is the address of the rendition:
//
// `{{image_path "content"}}/{{.Filename}}`
//
// `{{image_path "content@thumb"}}/{{.Filename}}`
//
// `{{file_path "content"}}/{{.Filename}}`
//
// Another one returns the addresses of an image and of its renditions with their widths, for the
// attribute `srcset`:
//
// `<img src="{{image_path "content"}}/{{.Filename}}" srcset="{{image_srcset "content" .Filename}}" sizes="50vw">`
//
// Without a `cdn_base` the addresses have no host: `/static/img/content`.
type Functions struct {
	app    *App
	srcset func(alias, filename string) (string, error)
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
	f.srcset = func(alias, filename string) (string, error) { return f.app.ImageSrcset(ctx, alias, filename) }
	return nil
}

// CustomTemplateFunctions returns image_path, file_path and image_srcset.
func (f *Functions) CustomTemplateFunctions() template.FuncMap {
	return template.FuncMap{"image_path": f.app.ImagePath, "file_path": f.app.FilePath, "image_srcset": f.srcset}
}

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
