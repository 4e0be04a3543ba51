package mediaapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers"
)

// Storage keeps items, under names that follow its options.
type Storage struct {
	// The driver and its options, for instance
	// `{"name": "local", "root": "/srv/media"}`. Required.
	DriverRaw json.RawMessage `json:"driver,omitempty" caddy:"namespace=media.storages inline_key=name"`
	media.Storage
}

// DefaultDriver returns the driver of the default storage: a folder in Caddy's data folder.
func DefaultDriver() json.RawMessage {
	root := map[string]string{"root": filepath.Join(caddy.AppDataDir(), "media", "storage")}
	return caddyconfig.JSONModuleObject(root, "name", "local", nil)
}

// openStorage returns a storage. Its driver comes from the pool.
func (a *App) openStorage(ctx caddy.Context, name string) (media.Storage, error) {
	config := a.Storages[name]
	storage, err := expanded(media.Schemas.Storage, &config.Storage)
	if err != nil {
		return storage, err
	}
	if err := config.checkDriver(); err != nil {
		return storage, err
	}
	loaded, err := ctx.LoadModule(config, "DriverRaw")
	if err != nil {
		return storage, fmt.Errorf("loading the driver: %w", err)
	}
	module, ok := loaded.(*modules.Driver)
	if !ok {
		return storage, fmt.Errorf("%T is no storage driver", loaded)
	}
	a.drivers[name] = module
	driver, done, err := pooled(a, "storage", module.PoolKey(), func() (storagedrivers.Driver, error) {
		return module.NewDriver(a.log)
	})
	storage.Name, storage.Driver, storage.Settings = name, driver, module.PoolKey()
	storage.Options = storagedrivers.Options{
		Timeout: module.Limits().Timeout, Location: module.Location(), Description: module.Describe(), Close: done,
	}
	return storage, err
}

func (s *Storage) checkDriver() error {
	if s.DriverRaw == nil {
		return errors.New("it has no driver; there are " + modulesOf(modules.DriverNamespace))
	}
	return checkGuest(s.DriverRaw, "driver", modules.DriverNamespace, "name")
}
