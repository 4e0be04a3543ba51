package plugin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/mediahttp"
)

func init() {
	caddy.RegisterModule(S3{})
	httpcaddyfile.RegisterHandlerDirective("media_s3", parseS3)
	httpcaddyfile.RegisterDirectiveOrder("media_s3", httpcaddyfile.After, "encode")
}

// S3 serves the items of the app `media` to programs that know S3, on a host of its own: buckets
// are the aliases, `image-<alias>` and `file-<alias>`, and the access key and the secret are those
// of an account with `s3_secret`. It answers all requests of its site.
type S3 struct {
	// The answer to programs that ask for the region of a bucket. They may sign with any. Default:
	// `us-east-1`.
	Region string `json:"region,omitempty"`
	// The host name below which buckets are host names too, as in `file-docs.s3.example.com`. The site
	// must be for them as well, `*.s3.example.com`. Default: none, buckets are in the path only.
	Domain string `json:"domain,omitempty"`

	handler http.Handler
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
	region := cmp.Or(s.Region, "us-east-1")
	s.handler = mediahttp.NewS3(app, HandlerOptions(app.Redacted(ctx.Slogger())), mediahttp.S3Options{Region: region, Domain: s.Domain})
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		for _, address := range Addresses(server, "media_s3", AnyHost, "") {
			if !strings.Contains(address, AnyHost+".") { // the host names of buckets
				app.s3 = append(app.s3, S3Endpoint{address, region})
			}
		}
	}
	return nil
}

// ServeHTTP answers all requests.
func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	s.handler.ServeHTTP(w, r)
	return nil
}

// AnyHost stands in an address for the host name of a site that has none.
const AnyHost = "*"

// S3Endpoint is the address of a site with `media_s3`, and its region.
type S3Endpoint struct {
	Address string `json:"address"`
	Region  string `json:"region"`
}

// S3Endpoints returns the addresses of the sites with `media_s3`, those with HTTPS first.
func (a *App) S3Endpoints() []S3Endpoint {
	scheme := func(e S3Endpoint) string { return strings.SplitN(e.Address, ":", 2)[0] }
	return slices.SortedFunc(slices.Values(a.s3), func(one, other S3Endpoint) int {
		return cmp.Or(strings.Compare(scheme(other), scheme(one)), strings.Compare(one.Address, other.Address))
	})
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
