package mediaapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/options"
)

// DefaultStorage is what the storage is called that stands in where none is configured, and
// that aliases are kept in which name none.
const DefaultStorage = "default"

// overwrite is the strategy that replaces items.
const overwrite = "overwrite"

// Storage is one place for items, and how they are named there.
type Storage struct {
	// The driver and its options, for instance
	// `{"name": "local", "root": "/srv/media"}`. Required.
	DriverRaw json.RawMessage `json:"driver,omitempty" caddy:"namespace=media.storages inline_key=name"`

	// The folder of an item whose upload names none: a strftime pattern of letters,
	// digits, `-`, `_`, `.`, `/` and conversions such as `%Y`, or `/` for none.
	// Default: year, month and day as `26-11/20`.
	SubFolderFormat string `json:"sub_folder_format,omitempty" option:"common" example:"%y-%m/%d"`

	// What becomes of an upload whose name is taken. `append_time`: it gets the time in
	// its name, `photo-1795132800.jpg`, and what is there is never changed. `overwrite`:
	// it replaces what is there; caches then have to ask each time. Default:
	// `append_time`.
	OverwriteStrategy string `json:"overwrite_strategy,omitempty" option:"common,words=append_time|overwrite"`

	// Whether names are made plain: lower case, without accents, spaces or signs.
	// Without it a name is stored exactly as submitted, or refused if that is not safe.
	// Default: `true`.
	Sanitize *bool `json:"sanitize,omitempty" option:"common"`

	// Of the expanded options.
	subFolder naming.Format
	replaces  bool
}

func (s *Storage) sanitize() bool  { return s.Sanitize == nil || *s.Sanitize }
func (s *Storage) overwrite() bool { return s.replaces }

// DefaultDriver is that of the storage which stands in where none is configured: a folder where
// Caddy keeps its data.
func DefaultDriver() json.RawMessage {
	return caddyconfig.JSONModuleObject(
		&local.Local{Config: local.Config{Root: filepath.Join(caddy.AppDataDir(), "media", "storage")}}, "name", "local", nil)
}

func checkName(what, name string) error {
	if !Names.Allows(name) {
		return fmt.Errorf("%s %q: a name is %s", what, name, Names.Words)
	}
	return nil
}

func (a *App) provisionStorages(ctx caddy.Context) error {
	a.storages, a.poolKeys = map[string]*storagedrivers.Storage{}, map[string]string{}
	a.drivers = map[string]storagedrivers.Module{}
	var expand options.Expander
	spool := expand.Text("spool_folder", a.SpoolFolder)
	if err := expand.Err(); err != nil {
		return err
	}
	if err := isFolder(spool); err != nil {
		return fmt.Errorf("spool_folder: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Storages)) {
		if err := checkName("storage", name); err != nil {
			return err
		}
		config := a.Storages[name]
		if config == nil {
			return fmt.Errorf("storage %q is empty", name)
		}
		storage, err := a.openStorage(ctx, name, spool, config)
		if err != nil {
			return fmt.Errorf("storage %q: %w", name, err)
		}
		a.storages[name] = storage
		a.closers = append(a.closers, storage.Close)
	}
	return nil
}

// openStorage gives the storage on the driver that the pool has for its settings.
func (a *App) openStorage(ctx caddy.Context, name, spool string, config *Storage) (*storagedrivers.Storage, error) {
	e := *config
	err := storageOptions.Expand(&e)
	if err != nil {
		return nil, err
	}
	config.replaces = e.OverwriteStrategy == overwrite
	if config.subFolder, err = naming.ParseFormat(e.SubFolderFormat); err != nil {
		return nil, fmt.Errorf("sub_folder_format: %w", err)
	}
	if config.DriverRaw == nil {
		return nil, errors.New("it has no driver")
	}
	loaded, err := ctx.LoadModule(config, "DriverRaw")
	if err != nil {
		return nil, fmt.Errorf("loading the driver: %w", err)
	}
	module, ok := loaded.(storagedrivers.Module)
	if !ok {
		return nil, fmt.Errorf("%T is no storage driver", loaded)
	}
	a.poolKeys[name], a.drivers[name] = module.PoolKey(), module
	driver, done, err := pooled("storage", module.PoolKey(), func() (storagedrivers.Driver, error) {
		return module.NewDriver(a.log)
	})
	if err != nil {
		return nil, err
	}
	return storagedrivers.New(name, driver, storagedrivers.Options{
		Timeout:  module.Timeout(),
		Location: module.Location(),
		SpoolDir: spool,
		Close:    done,
		Observe:  a.observe(name),
	}), nil
}

// isFolder tells what keeps path, if there is one, from being used as a folder.
func isFolder(path string) error {
	if path == "" {
		return nil
	}
	stat, err := os.Stat(path)
	if err == nil && !stat.IsDir() {
		return fmt.Errorf("%s is no folder", path)
	}
	return err
}
