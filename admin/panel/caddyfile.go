package panel

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddymedia/media/admin/edit"
	"github.com/caddymedia/media/storagedrivers/block"
)

func init() {
	httpcaddyfile.RegisterDirective("media_admin", parseDirective)
	// Inside of everything that keeps somebody out: basic_auth, forward_auth, abort and error.
	httpcaddyfile.RegisterDirectiveOrder("media_admin", httpcaddyfile.After, "error")
}

// parseDirective sets up the handler from Caddyfile tokens. Syntax:
//
//	media_admin [<matcher>] [<path>] {
//		user    <placeholder>
//		editors <user...>
//		admin   <address>|off
//	}
//
// A single argument that begins with a slash and has no asterisk is the path.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // media_admin
	var matcher caddy.ModuleMap
	if args := h.RemainingArgs(); len(args) > 1 || len(args) == 1 && !isPath(args[0]) {
		h.Reset()
		h.Next()
		var err error
		if matcher, err = h.ExtractMatcherSet(); err != nil {
			return nil, err
		}
	}
	h.Reset()
	p := new(Panel)
	if err := p.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if p.Admin == "" {
		p.Admin = globalAdmin(h)
	}
	return h.NewRoute(matcher, p), nil
}

func isPath(argument string) bool {
	return strings.HasPrefix(argument, "/") && !strings.Contains(argument, "*")
}

// globalAdmin is what the global option admin says; empty for Caddy's default.
func globalAdmin(h httpcaddyfile.Helper) string {
	admin, ok := h.Option("admin").(*caddy.AdminConfig)
	switch {
	case !ok || admin.Listen == caddy.DefaultAdminListen:
		return ""
	case admin.Disabled:
		return edit.Off
	default:
		return admin.Listen
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens, without a matcher; the
// syntax is that of the directive.
func (p *Panel) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // media_admin
	if d.NextArg() {
		p.Path = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	return block.Parse(d, "media_admin", block.Options{
		"user":    block.Text(&p.User),
		"editors": block.Texts(&p.Editors),
		"admin":   block.Text(&p.Admin),
	})
}

// Interface guards
var _ caddyfile.Unmarshaler = (*Panel)(nil)
