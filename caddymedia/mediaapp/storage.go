package mediaapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/options"
)

const (
	// overwrite is the strategy that replaces items.
	overwrite = "overwrite"
	// driverNamespace is Caddy's namespace of drivers.
	driverNamespace = "media.storages"
	// storeNamespace is Caddy's namespace of token stores.
	storeNamespace = "media.tokens"
)

// Storage keeps items, under names that follow its options.
type Storage struct {
	// The driver and its options, for instance
	// `{"name": "local", "root": "/srv/media"}`. Required.
	DriverRaw json.RawMessage `json:"driver,omitempty" caddy:"namespace=media.storages inline_key=name"`

	// The folder of an item whose upload names none: a strftime pattern of letters,
	// digits, `-`, `_`, `.`, `/` and conversions such as `%Y`, or `/` for none.
	// Default: year, month and day as `26-11/20`.
	SubFolderFormat string `json:"sub_folder_format,omitempty" option:"common" example:"%y-%m/%d"`

	// The treatment of an upload whose name exists. `append_time` adds the time to the name
	// (`photo-1795132800.jpg`), so that stored items never change. `overwrite` replaces the
	// stored item; caches then have to ask each time. Default: `append_time`.
	OverwriteStrategy string `json:"overwrite_strategy,omitempty" option:"common,words=append_time|overwrite"`

	// Whether names are made plain: lower case, without accents, spaces or signs.
	// Without it a name is stored exactly as submitted, or refused if that is not safe.
	// Default: `true`.
	Sanitize *bool `json:"sanitize,omitempty" option:"common"`
}

// DefaultDriver returns the driver of the default storage: a folder in Caddy's data folder.
func DefaultDriver() json.RawMessage {
	return caddyconfig.JSONModuleObject(
		&local.Local{Config: local.Config{Root: filepath.Join(caddy.AppDataDir(), "media", "storage")}}, "name", "local", nil)
}

// openStorage returns a storage. Its driver comes from the pool.
func (a *App) openStorage(ctx caddy.Context, name, spool string) (media.Storage, error) {
	config := *a.Storages[name]
	if err := storageOptions.Expand(&config); err != nil {
		return media.Storage{}, err
	}
	subFolder, err := naming.ParseFormat(config.SubFolderFormat)
	if err != nil {
		return media.Storage{}, fmt.Errorf("sub_folder_format: %w", err)
	}
	if err := config.checkDriver(); err != nil {
		return media.Storage{}, err
	}
	loaded, err := ctx.LoadModule(a.Storages[name], "DriverRaw")
	if err != nil {
		return media.Storage{}, fmt.Errorf("loading the driver: %w", err)
	}
	module, ok := loaded.(storagedrivers.Module)
	if !ok {
		return media.Storage{}, fmt.Errorf("%T is no storage driver", loaded)
	}
	a.drivers[name] = module
	driver, done, err := pooled(a, "storage", module.PoolKey(), func() (storagedrivers.Driver, error) {
		return module.NewDriver(a.log)
	})
	if err != nil {
		return media.Storage{}, err
	}
	return media.Storage{
		Name: name, Driver: driver, Settings: module.PoolKey(),
		Options: storagedrivers.Options{
			Timeout: module.Timeout(), Location: module.Location(), Description: module.Describe(), SpoolDir: spool, Close: done,
		},
		SubFolder: subFolder, Overwrite: config.OverwriteStrategy == overwrite,
		KeepNames: config.Sanitize != nil && !*config.Sanitize,
	}, nil
}

func (s *Storage) checkDriver() error {
	if s.DriverRaw == nil {
		return errors.New("it has no driver; there are " + modulesOf(driverNamespace))
	}
	return checkGuest(s.DriverRaw, "driver", driverNamespace, "name")
}

// spoolFolder returns the expanded spool folder, or "" if none is configured. The folder must
// exist.
func (c *Config) spoolFolder() (string, error) {
	var expand options.Expander
	folder := expand.Text("spool_folder", c.SpoolFolder)
	if err := expand.Err(); err != nil || folder == "" {
		return "", err
	}
	stat, err := os.Stat(folder)
	if err == nil && !stat.IsDir() {
		err = fmt.Errorf("%s is no folder", folder)
	}
	if err != nil {
		return "", fmt.Errorf("spool_folder: %w", err)
	}
	return folder, nil
}
