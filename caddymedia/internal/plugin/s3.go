package plugin

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/caller"
	"github.com/caddymedia/media/caddymedia/internal/s3api"
)

func init() {
	caddy.RegisterModule(S3{})
	httpcaddyfile.RegisterHandlerDirective("media_s3", parseS3)
	httpcaddyfile.RegisterDirectiveOrder("media_s3", httpcaddyfile.After, "encode")
}

// S3 serves the items of the app `media` to programs that know S3, on a host of its own: buckets are the aliases,
// `image-<alias>` and `file-<alias>`, and the access key and the secret are those of an account with `s3_secret`. It answers
// all requests of its site.
type S3 struct {
	// The answer to programs that ask for the region of a bucket. They may sign with any. Default: `us-east-1`.
	Region string `json:"region,omitempty"`
	// The host name below which buckets are host names too, as in `file-docs.s3.example.com`. The site must be for
	// them as well, `*.s3.example.com`. Default: none, buckets are in the path only.
	Domain string `json:"domain,omitempty"`

	handler *s3api.Handler
}

// CaddyModule returns the Caddy module information.
func (S3) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.media_s3", New: func() caddy.Module { return new(S3) }}
}

// Provision loads the app.
func (s *S3) Provision(ctx caddy.Context) error {
	module, err := ctx.App("media")
	if err != nil {
		return err
	}
	app := module.(*App) // this is what "media" is
	region := s.Region
	if region == "" {
		region = "us-east-1"
	}
	gate := caller.New(app, caller.Options(HandlerOptions(app.Redacted(ctx.Slogger()))))
	s.handler = s3api.New(gate, s3api.Options{Region: region, Domain: s.Domain})
	return nil
}

// ServeHTTP answers all requests.
func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	s.handler.ServeHTTP(w, r)
	return nil
}

// parseS3 sets up the handler from Caddyfile tokens. Syntax:
//
//	media_s3 [<matcher>] {
//		region <name>
//		domain <host>
//	}
func parseS3(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	s := new(S3)
	if err := s.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := checkOption(h); err != nil {
		return nil, h.WrapErr(err)
	}
	return s, nil
}

// UnmarshalCaddyfile reads the options.
func (s *S3) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // media_s3
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		into := map[string]*string{"region": &s.Region, "domain": &s.Domain}[d.Val()]
		if into == nil {
			return d.Errf("unknown option %q of media_s3; there are domain, region", d.Val())
		}
		if *into != "" {
			return d.Errf("option %q of media_s3 is given twice", d.Val())
		}
		if !d.AllArgs(into) {
			return d.ArgErr()
		}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*S3)(nil)
	_ caddyhttp.MiddlewareHandler = (*S3)(nil)
	_ caddyfile.Unmarshaler       = (*S3)(nil)
)
