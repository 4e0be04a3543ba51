// Package panel serves the administrators' panel on a site with authentication: the pages of
// package web, and the JSON API that they use. What the API answers is in package adminapi. Begin
// with [Panel] and its routes.
package panel

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/admin/web"
	"github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
)

func init() { caddy.RegisterModule(Panel{}) }

// Panel serves the pages on which administrators manage storages, aliases, accounts and
// items. Its users log in on a page of its own (`login`), or a handler before it authenticates
// them, such as `basic_auth`. Without either every request is refused.
//
// Changes go through Caddy's admin endpoint into the running configuration. They outlive a
// restart only if Caddy is started with `--resume`; otherwise the panel shows a warning.
type Panel struct {
	// The start of the panel's addresses on its site; `/` for a site of its own.
	// Other requests are passed to the next handler. Default: `/media-admin`.
	Path string `json:"path,omitempty"`

	// The users who log in on a page of the panel, with their password hashes, made by `caddy
	// hash-password --algorithm argon2id`; `{env.NAME}`, `{file./path}` and `{new_password./path}` are
	// allowed, the last one as in accounts. Failed logins are limited like those of accounts. Removing
	// a user or changing the hash ends the user's sessions at once. Default: none; another handler
	// authenticates.
	Login map[string]string `json:"login,omitempty"`

	// The lifetime of a session without a request of its user. Default: `1h`.
	SessionIdle caddy.Duration `json:"session_idle,omitempty"`

	// The longest lifetime of a session. Sessions outlive a reload and end at a restart.
	// Default: `12h`.
	SessionLifetime caddy.Duration `json:"session_lifetime,omitempty"`

	// The placeholder of the user that another handler has authenticated, instead of `login`.
	// Only that handler may set it: a header that any client can send opens the panel to all.
	// Default: `{http.auth.user.id}`, which handlers such as `basic_auth` set.
	User string `json:"user,omitempty"`

	// The users who may change everything; others may only read. An editor has the rights of the
	// system user that runs Caddy. Default: all who are no uploaders.
	Editors []string `json:"editors,omitempty"`

	// The users for whom the panel is a media library: they see and change items, and nothing of the
	// configuration. Default: none.
	Uploaders []Uploaders `json:"uploaders,omitempty"`

	// The address of Caddy's admin endpoint, on the loopback interface or a unix socket. With
	// `off` the configuration cannot be changed. Default: in a Caddyfile the address of the
	// global option `admin`, in JSON Caddy's default, `localhost:2019`.
	Admin string `json:"admin,omitempty"`

	base   string // Path without a slash at its end
	login  *login // nil if another handler authenticates
	log    *zap.Logger
	pages  *pages
	api    *adminapi.Handler
	routes http.Handler // of api, below base
	gate   *caller.Gate
	guard  *http.CrossOriginProtection
	args   []string // of the command that started Caddy
	now    func() time.Time

	publicNote string // for the session
}

const (
	defaultPath = "/media-admin"
	defaultUser = "{http.auth.user.id}"
)

// CaddyModule returns the Caddy module information.
func (Panel) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.media_admin",
		New: func() caddy.Module { return new(Panel) },
	}
}

// Provision sets the defaults and prepares the pages. It loads the media app even if that is not
// configured.
func (p *Panel) Provision(ctx caddy.Context) error {
	if p.Path == "" {
		p.Path = defaultPath
	}
	if p.User == "" && len(p.Login) == 0 {
		p.User = defaultUser
	}
	p.base = strings.TrimRight(p.Path, "/")
	p.log = ctx.Logger()
	p.now = time.Now //nolint:forbidigo // the clock's one default
	p.args = os.Args
	p.guard = http.NewCrossOriginProtection()
	module, err := ctx.App("media")
	if err != nil {
		return err
	}
	app := module.(*plugin.App) // this is what "media" is
	if err := p.checkAliases(app.Service()); err != nil {
		return err
	}
	if p.pages, err = newPages(web.Files); err != nil {
		return fmt.Errorf("reading the pages: %w", err)
	}
	var public []string
	if len(p.Login) > 0 {
		if p.login, err = p.newLogin(app); err != nil {
			return fmt.Errorf("login: %w", err)
		}
		public = p.login.public
	}
	p.publicNote = publicNote(app.PublicAccounts(), public)
	p.gate = caller.New(app, caller.Options(plugin.HandlerOptions(app.Redacted(ctx.Slogger()))))
	provisioned.Store(p, app.Service())
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		p.log.Info("serving the panel", zap.Strings("addresses", plugin.Addresses(server, "media_admin", "localhost", p.base+"/")))
	}
	address, err := caddy.NewReplacer().ReplaceOrErr(p.Admin, true, true)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	if p.api, err = adminapi.NewEditor(address, p.log); err != nil {
		return err
	}
	p.routes = http.StripPrefix(p.base+"/api", p.api)
	return nil
}

// Validate checks the options.
func (p *Panel) Validate() error {
	if err := p.checkUploaders(); err != nil {
		return err
	}
	switch {
	case slices.Contains(p.Editors, ""):
		return errors.New("editors: a name is empty")
	case !strings.HasPrefix(p.Path, "/") || strings.ContainsAny(p.Path, "*?#{}\\") || strings.Contains(p.Path, "//"):
		return fmt.Errorf("path %q: write it like /media-admin", p.Path)
	case p.login != nil:
		return p.validateLogin()
	case p.SessionIdle != 0 || p.SessionLifetime != 0:
		return errors.New("session is for the users of login, and there are none")
	}
	// A placeholder that only a request defines is unknown here. A fixed name, a name with a missing
	// brace, or a placeholder of the environment would be the same for all requests.
	if _, err := caddy.NewReplacer().ReplaceOrErr(p.User, true, true); err == nil {
		return fmt.Errorf("user %q is no placeholder such as %s", p.User, defaultUser)
	}
	return nil
}

// ServeHTTP serves the addresses below the path of the panel.
func (p *Panel) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	rest, ok := strings.CutPrefix(r.URL.Path, p.base)
	if !ok || rest != "" && rest[0] != '/' {
		return next.ServeHTTP(w, r)
	}
	secure(w.Header())
	v := p.visitor(r)
	if p.login != nil && p.serveLogin(w, r, v, rest) {
		return nil
	}
	if v.name == "" {
		p.refuseStranger(w, r, rest)
		return nil
	}
	if p.isCrossSite(r) {
		p.fail(w, r, http.StatusForbidden, otherSite)
		return nil
	}
	if !v.editor && !v.itemsOnly && changes(r, rest) {
		p.fail(w, r, http.StatusForbidden, onlyLooking)
		return nil
	}
	if route, ok := strings.CutPrefix(rest, "/api/"); ok {
		p.audited(w, r, v, rest, func(w http.ResponseWriter) { p.serveAPI(w, r, v, route) })
		return nil
	}
	if p.allowed(w, r, http.MethodGet, http.MethodHead) && !p.pages.serve(w, r, mounted(r, p.base), rest) {
		p.fail(w, r, http.StatusNotFound, "there is no such page")
	}
	return nil
}

// Cleanup releases the sessions. The panel of the next configuration continues to use them.
func (p *Panel) Cleanup() error {
	provisioned.Delete(p)
	if p.login == nil {
		return nil
	}
	return closeSessions()
}

// isCrossSite reports whether a page of another site has sent a request that may change something.
func (p *Panel) isCrossSite(r *http.Request) bool { return p.guard.Check(r) != nil }

// Interface guards
var (
	_ caddy.Provisioner           = (*Panel)(nil)
	_ caddy.CleanerUpper          = (*Panel)(nil)
	_ caddy.Validator             = (*Panel)(nil)
	_ caddyhttp.MiddlewareHandler = (*Panel)(nil)
)
