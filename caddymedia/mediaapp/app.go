// Package mediaapp is the Caddy app "media": it turns the configuration into storages,
// aliases, accounts and tokens that are in use.
//
// Go code in the same Caddy stores items by the methods of the app that [Active] gives:
// [App.DownloadImage], [App.DownloadFile], [App.FormImage] and [App.FormFile].
package mediaapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/fetch"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

func init() { caddy.RegisterModule(App{}) }

// App holds everything that the media service needs to know: where items are kept
// (storages), under which names and rules they are uploaded (aliases), who may do so
// (accounts) and where their tokens are. The `media` handler serves it on a site.
//
// Names of storages and aliases are made of `a` to `z`, `0` to `9`, `_` and `-`.
// Placeholders such as `{env.PASSWORD}` or `{file./run/secrets/x}` may stand in all texts of
// storages, aliases and accounts; they are expanded when the configuration is loaded.
type App struct {
	// What public addresses begin with, for instance `https://cdn.example.com`; an alias
	// may have its own. Default: the scheme and host of the upload request, and no host
	// at all in templates.
	CDNBase string `json:"cdn_base,omitempty"`

	// How long a token is valid. Default: `24h`.
	TokenLifetime caddy.Duration `json:"token_lifetime,omitempty"`

	// Where tokens are kept: `bolt` (a file), `redis` or `memory`. Several Caddys share
	// tokens only through Redis. Default: `bolt`, in Caddy's data folder.
	TokensRaw json.RawMessage `json:"tokens,omitempty" caddy:"namespace=media.tokens inline_key=store"`

	// The accounts by API key. Without any nobody can upload.
	Accounts map[string]*Account `json:"accounts,omitempty"`

	// The storages by name. Default: one called `default`, a folder in Caddy's data
	// folder.
	Storages map[string]*Storage `json:"storages,omitempty"`

	// The aliases for images by name. Default: one called `content`, where no alias of
	// either kind is given.
	ImageAliases map[string]*ImageAlias `json:"image_aliases,omitempty"`

	// The aliases for files by name. Default: one called `content`, where no alias of
	// either kind is given.
	FileAliases map[string]*FileAlias `json:"file_aliases,omitempty"`

	// The folder in which an upload waits until it is complete, for storages on other
	// hosts, if it has more than 1 MiB or 64 MiB of smaller ones wait in memory. It must
	// exist, and should be on a disk, not in memory as `/tmp` is on some systems. Files in
	// it have no name and are gone with the process. Default: the system's folder for
	// temporary files.
	SpoolFolder string `json:"spool_folder,omitempty"`

	// How long to wait between two checks of a storage that can be used; one that cannot
	// is looked at again after ten seconds. Default: `1m`.
	HealthInterval caddy.Duration `json:"health_interval,omitempty"`

	// What one request may hold, and how often one may fail to log in.
	Limits *Limits `json:"limits,omitempty"`

	// From where Go code in the same process may have items downloaded.
	Downloads *Downloads `json:"downloads,omitempty"`

	log       *slog.Logger
	auditLog  *zap.Logger
	metrics   *metrics
	events    *events
	storages  map[string]*storagedrivers.Storage
	poolKeys  map[string]string // of the storages
	drivers   map[string]storagedrivers.Module
	implied   struct{ storage, aliases bool } // by defaults
	tokens    tokens.StoreModule
	health    *health
	endChecks func()
	uploader  *ingest.Uploader
	remote    *fetch.Client
	issuer    *tokens.Issuer
	comparer  *comparer
	logins    loginGuard
	store     tokens.Store
	service   *media.Service
	closers   []func() error // for the service, in the end
}

// CaddyModule returns the Caddy module information.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision builds what the configuration describes. It touches no storage and no
// network, so that a host that is down cannot keep a site from starting.
func (a *App) Provision(ctx caddy.Context) error {
	a.log = ctx.Slogger()
	a.auditLog = ctx.Logger().Named(auditName)
	a.metrics = newMetrics(ctx.GetMetricsRegistry())
	a.health = newHealth()
	a.defaults()
	for _, step := range []func(caddy.Context) error{
		a.provisionEvents, a.provisionStorages, a.provisionUploader, a.provisionDownloads, a.provisionTokens, a.provisionIssuer,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	a.service = media.New(media.Config{
		Uploader: a.uploader, Issuer: a.issuer, Limits: a.Limits.service(), Bounds: bounds,
		Observer: recorder{a}, Release: a.closeAll, Log: a.log,
	})
	if before, err := Active(); err == nil {
		a.inherit(before)
	}
	return nil
}

// bounds are those of the process: uploads that began under an earlier configuration count too.
var bounds = media.NewBounds()

// defaults fills in what the configuration leaves out.
func (a *App) defaults() {
	if a.Limits == nil {
		a.Limits = new(Limits)
	}
	if a.implied.storage = len(a.Storages) == 0; a.implied.storage {
		a.Storages = map[string]*Storage{DefaultStorage: {DriverRaw: DefaultDriver()}}
	}
	if a.implied.aliases = len(a.ImageAliases) == 0 && len(a.FileAliases) == 0; a.implied.aliases {
		a.ImageAliases = map[string]*ImageAlias{ingest.DefaultAlias: new(ImageAlias)}
		a.FileAliases = map[string]*FileAlias{ingest.DefaultAlias: new(FileAlias)}
	}
}

// Start begins to check, in the background, whether the storages can be used, and looks
// once after the token store; what is wrong goes to the log. The first check also sweeps
// what an earlier run left over.
func (a *App) Start() error {
	var ctx context.Context
	ctx, a.endChecks = context.WithCancel(context.Background())
	for name, storage := range a.storages {
		go a.watch(ctx, name, storage)
	}
	if _, release, err := a.service.Acquire(); err == nil {
		go a.checkTokens(ctx, release)
	}
	return nil
}

// checkTokens checks the token store once, and then calls release.
func (a *App) checkTokens(ctx context.Context, release func()) {
	defer release()
	ctx, cancel := context.WithTimeout(ctx, maxCheckTime)
	defer cancel()
	if err := a.store.Check(ctx); err != nil && !errors.Is(err, context.Canceled) {
		a.log.Error("token store cannot be used now", "error", err)
	}
}

// Stop does nothing: uploads and downloads of this configuration may go on.
func (a *App) Stop() error { return nil }

// Cleanup closes the storages and the token store when their last user is done.
func (a *App) Cleanup() error {
	if a.endChecks != nil {
		a.endChecks()
	}
	if a.service == nil { // Provision has failed
		return a.closeAll()
	}
	return a.service.Close()
}

func (a *App) closeAll() error {
	var err error
	for _, closer := range a.closers {
		err = errors.Join(err, closer())
	}
	return err
}

// Use keeps the app open, through any reload, until release is called. It returns the app of the
// running configuration if this one is closed.
func (a *App) Use() (app *App, release func(), err error) { return a.use(Active) }

// use is Use with the app that active returns, which may be closed as well by then.
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

// Acquire returns the service, or that of the running configuration if this one is closed. It stays
// open, through any reload, until release is called.
func (a *App) Acquire() (service *media.Service, release func(), err error) {
	app, release, err := a.Use()
	if err != nil {
		return nil, nil, err
	}
	return app.service, release, nil
}

// Active gives the app of the running configuration. Whoever outlives a configuration
// must ask each time.
func Active() (*App, error) {
	app, err := caddy.ActiveContext().AppIfConfigured("media")
	if err != nil {
		return nil, fmt.Errorf("looking for the running media app: %w", err)
	}
	return app.(*App), nil // this is what "media" is
}

// AcquireActive returns the app of the running configuration, which stays open, through any reload,
// until release is called.
func AcquireActive() (app *App, release func(), err error) {
	app, err = Active()
	if err != nil {
		return nil, nil, err
	}
	return app.Use()
}

// Running returns the service of the running configuration, which stays open until release is called.
// While there is none, because Caddy stops for instance, it is that of the app itself.
func (a *App) Running() (service *media.Service, release func()) {
	if current, err := Active(); err == nil {
		if service, release, err := current.service.Acquire(); err == nil {
			return service, release
		}
	}
	return a.service, func() {}
}

// Uploader stores items.
func (a *App) Uploader() *ingest.Uploader { return a.uploader }

// Service returns the service of this configuration, which may be closed.
func (a *App) Service() *media.Service { return a.service }

// Issuer gives and checks tokens.
func (a *App) Issuer() *tokens.Issuer { return a.issuer }

// Alias gives an alias; false if there is none of that kind and name.
func (a *App) Alias(kind ingest.Kind, name string) (*ingest.Alias, bool) {
	alias, ok := a.uploader.Aliases[kind][name]
	return alias, ok
}

// ImagePath gives the public address of an image alias, to which "/" and a stored name
// are added: "https://cdn.example.com/static/img/content".
func (a *App) ImagePath(alias string) (string, error) { return a.pathOf(ingest.Image, alias) }

// FilePath gives the public address of a file alias.
func (a *App) FilePath(alias string) (string, error) { return a.pathOf(ingest.File, alias) }

func (a *App) pathOf(kind ingest.Kind, name string) (string, error) {
	alias, ok := a.Alias(kind, name)
	if !ok {
		return "", fmt.Errorf("unknown alias %q", name)
	}
	return alias.BaseURL + alias.Path(), nil
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
