package panel

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() {
	httpcaddyfile.RegisterDirective("media_admin", parseDirective)
	// The panel is ordered after all directives that may refuse a request: basic_auth,
	// forward_auth, abort and error.
	httpcaddyfile.RegisterDirectiveOrder("media_admin", httpcaddyfile.After, "error")
}

// parseDirective sets up the handler from Caddyfile tokens. Syntax:
//
//	media_admin [<matcher>] [<path>] {
//		login {
//			<user> <password_hash>
//		}
//		session <idle> [<lifetime>]
//		user    <placeholder>
//		editors <user...>
//		uploaders <user...> {
//			aliases <alias...>
//			may     upload|replace|move|delete|sign...
//		}
//		admin   <address>|off
//	}
//
// A single argument that begins with a slash and has no asterisk is the path.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // media_admin
	var matcher caddy.ModuleMap
	if args := h.RemainingArgs(); len(args) > 1 || len(args) == 1 && (!strings.HasPrefix(args[0], "/") || strings.Contains(args[0], "*")) {
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

// globalAdmin returns the address in the global option admin, or "" for Caddy's default.
func globalAdmin(h httpcaddyfile.Helper) string {
	admin, ok := h.Option("admin").(*caddy.AdminConfig)
	switch {
	case !ok || admin.Listen == caddy.DefaultAdminListen:
		return ""
	case admin.Disabled:
		return adminapi.Off
	default:
		return admin.Listen
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. The syntax is that of the
// directive, without a matcher.
func (p *Panel) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // media_admin
	if d.NextArg() {
		p.Path = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	return modules.ParseBlock(d, "media_admin", modules.Readers{
		"login":     p.parseLogin,
		"session":   p.parseSession,
		"user":      modules.ReadText(&p.User),
		"editors":   modules.ReadTexts(&p.Editors),
		"uploaders": p.parseUploaders,
		"admin":     modules.ReadText(&p.Admin),
	}, "uploaders")
}

func (p *Panel) parseLogin(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	p.Login = map[string]string{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		user := d.Val()
		var hash string
		if !d.AllArgs(&hash) {
			return d.ArgErr()
		}
		if _, twice := p.Login[user]; twice {
			return d.Errf("the user %q of login is given twice", user)
		}
		if err := plugin.CheckHash(hash); err != nil && !options.HasPlaceholder(hash) {
			return d.Errf("login: user %q: %w", user, err)
		}
		p.Login[user] = hash
	}
	if len(p.Login) == 0 {
		return d.Err("login has no users; each is a line of a name and a password hash")
	}
	return nil
}

func (p *Panel) parseUploaders(d *caddyfile.Dispenser) error {
	var u Uploaders
	if err := modules.ReadTexts(&u.Users)(d); err != nil {
		return err
	}
	err := modules.ParseBlock(d, "uploaders", modules.Readers{
		"aliases": modules.ReadTexts(&u.Aliases), "may": modules.ReadTexts(&u.May),
	})
	if err == nil {
		err = u.check()
	}
	p.Uploaders = append(p.Uploaders, u)
	return err
}

func (p *Panel) parseSession(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) < 1 || len(args) > 2 {
		return d.ArgErr()
	}
	for i, into := range []*caddy.Duration{&p.SessionIdle, &p.SessionLifetime}[:len(args)] {
		span, err := caddy.ParseDuration(args[i])
		if err != nil || span <= 0 {
			return d.Errf("session is a duration such as 1h, not %q", args[i])
		}
		*into = caddy.Duration(span)
	}
	return nil
}

// Interface guards
var _ caddyfile.Unmarshaler = (*Panel)(nil)
