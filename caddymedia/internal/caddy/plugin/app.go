// Package plugin is the Caddy app "media": it turns the configuration into a running service. The
// handler "media" serves it on a site, and its functions give templates the addresses of aliases.
//
// It is not for other modules: they get the running service from package mediaapp. Begin with
// [App].
package plugin

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/caddy/observe"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens/bolt"
	"github.com/caddymedia/media/storagedrivers/cache"
)

func init() { caddy.RegisterModule(App{}) }

// App is the configuration of the media service: its storages, its aliases, its accounts and the
// store of their tokens. The `media` handler serves it on a site.
//
// Names of storages and aliases consist of `a` to `z`, `0` to `9`, `_` and `-`. Placeholders such
// as `{env.PASSWORD}` or `{file./run/secrets/x}` are allowed in all texts of storages, aliases and
// accounts. They are expanded when the configuration is loaded.
type App struct {
	Config

	log      *slog.Logger
	hidden   *hidden // in the log
	observer *observe.Observer
	implied  Implied
	drivers  map[string]*modules.Driver // of the storages
	caches   map[string]*cache.Store    // of the storages that have one
	tokens   *modules.Store
	service  *media.Service
	s3       []S3Endpoint   // of the sites that are provisioned with it
	opened   []func() error // return to the pool what Provision has opened

	publicAccounts, publicUsers []string // with the password of Caddyfile.example
}

// CaddyModule returns the Caddy module information.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision builds the service. It uses no storage and no network, so that an unreachable host
// cannot keep a site from starting.
func (a *App) Provision(ctx caddy.Context) error {
	a.hidden = new(hidden)
	a.log = a.Redacted(ctx.Slogger())
	a.implied = a.SetDefaults()
	var err error
	if a.observer, err = observe.New(ctx, activeObserver); err != nil {
		return err
	}
	config, err := a.serviceConfig(ctx)
	if err != nil {
		return err
	}
	a.hidden.set(a.Secrets())
	if a.service, err = media.New(config); err != nil {
		return err
	}
	a.observer.Images(a.Service().Uploader().Derived.Images)
	return nil
}

// Start starts the background checks of the storages and checks the token store once. Failures are
// logged. The first check of a storage also sweeps the leftovers of an earlier process.
func (a *App) Start() error {
	a.log.Info("starting the media service", "version", Version())
	a.warn()
	a.resizeCaches()
	a.service.Start()
	return nil
}

// Stop does nothing, because uploads and downloads of this configuration may continue.
func (a *App) Stop() error { return nil }

// Cleanup closes the service. Running requests continue and keep the storages and the token store
// open.
func (a *App) Cleanup() error {
	if a.service != nil {
		return a.service.Close()
	}
	var err error
	for _, done := range a.opened { // before Provision has failed
		err = errors.Join(err, done())
	}
	return err
}

// Use keeps the app open, across reloads, until release is called. If this app is closed, it
// returns the app of the running configuration.
func (a *App) Use() (app *App, release func(), err error) { return a.use(Active) }

// use implements Use. active returns the running app, which may have been closed in the meantime
// too.
func (a *App) use(active func() (*App, error)) (app *App, release func(), err error) {
	for {
		_, release, err := a.service.Acquire()
		if err == nil {
			return a, release, nil
		}
		current, activeErr := active()
		if activeErr != nil {
			return nil, nil, activeErr
		}
		if current == a {
			return nil, nil, err
		}
		a = current
	}
}

// Log returns the logger of the app, which writes no secret of the configuration.
func (a *App) Log() *slog.Logger { return a.log }

// Acquire returns the service, or that of the running configuration if this one is closed. The
// service stays open, across reloads, until release is called.
func (a *App) Acquire() (service *media.Service, release func(), err error) {
	app, release, err := a.Use()
	if err != nil {
		return nil, nil, err
	}
	return app.service, release, nil
}

// Active returns the app of the running configuration. Code that outlives a configuration must call
// Active each time.
func Active() (*App, error) {
	app, err := caddy.ActiveContext().AppIfConfigured("media")
	if err != nil {
		return nil, fmt.Errorf("finding the running media app: %w", err)
	}
	return app.(*App), nil // this is what "media" is
}

func activeObserver() (*observe.Observer, error) {
	app, err := Active()
	if err != nil {
		return nil, err
	}
	return app.observer, nil
}

// Change is a change of items or of the configuration, as in the audit log.
type Change = observe.Change

// Configured records that an entry of the configuration was added, changed or removed.
func (a *App) Configured(actor item.Actor, action, section, name string, options []string) {
	a.observer.Configured(actor, action, section, name, options)
}

// Changes returns the last changes in this process, the newest first, also those under earlier
// configurations. They began to be kept at since.
func (a *App) Changes() (last []Change, since time.Time) { return a.observer.Changes().Last() }

// AcquireActive returns the app of the running configuration, which stays open, through any reload,
// until release is called.
func AcquireActive() (app *App, release func(), err error) {
	app, err = Active()
	if err != nil {
		return nil, nil, err
	}
	return app.Use()
}

// Running returns the service of the running configuration, which stays open until release is
// called. If no configuration is running, because Caddy is stopping for instance, it returns the
// app's own service.
func (a *App) Running() (service *media.Service, release func()) {
	if current, err := Active(); err == nil {
		if service, release, err := current.service.Acquire(); err == nil {
			return service, release
		}
	}
	return a.service, func() {}
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)

// warn logs what works, but probably not as the administrator expects.
func (a *App) warn() {
	a.warnOfDataFolder()
	a.warnOfHEIC()
	a.warnOfTrustedHeader()
	a.warnOfPublicPassword()
}

// warnOfPublicPassword logs the accounts and users with the password of Caddyfile.example.
func (a *App) warnOfPublicPassword() {
	users := slices.Compact(slices.Sorted(slices.Values(a.publicUsers))) // of all panels
	if len(a.publicAccounts)+len(users) > 0 {
		a.log.Warn("everyone knows the password of these accounts and users of the panel, because it is in the documentation: replace it; "+
			"caddy media account <name> prints another one, with the line for the Caddyfile", "accounts", a.publicAccounts, "panel_users", users)
	}
}

// warnOfTrustedHeader logs a header that names users.
func (a *App) warnOfTrustedHeader() {
	if trust := a.Service().Trust(); trust != nil && trust.Header != "" {
		a.log.Warn("a header names the users: whoever can send it to this server is any of them; "+
			"let no request past forward_auth, and let it remove the header of clients (copy_headers does)", "trust_header", trust.Header)
	}
}

// warnOfHEIC logs the aliases that accept HEIC, which is stored but not decoded here.
func (a *App) warnOfHEIC() {
	for _, name := range slices.Sorted(maps.Keys(a.ImageAliases)) {
		if alias, ok := a.Service().Alias(item.Image, name); ok && alias.Extensions["heic"] {
			a.log.Warn("HEIC images get no variant and no renditions, and only Safari shows them", "image_alias", name)
		}
	}
}

// warnOfDataFolder logs which files are kept in the folder that Caddy was started in, because Caddy
// found no data folder: a service may run without HOME.
func (a *App) warnOfDataFolder() {
	if filepath.IsAbs(caddy.AppDataDir()) || os.Getenv("XDG_DATA_HOME") != "" {
		return
	}
	const unset = "neither HOME nor XDG_DATA_HOME is set: set XDG_DATA_HOME, or name the "
	folder, err := filepath.Abs(caddy.AppDataDir())
	if err != nil {
		folder = caddy.AppDataDir()
	}
	if a.implied.Storage {
		a.log.Warn(unset+"folder of items in the global option media: storage default { driver local <path> }", "now", folder)
	}
	if store, ok := a.tokens.Config.(*bolt.Config); ok && store.Path == "" {
		a.log.Warn(unset+"file of tokens in the global option media: tokens bolt <path>", "now", folder)
	}
}
