package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens/bolt"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
)

// parseModule reads a guest module from the current segment: its name and its options. noun is what
// modules of the namespace are.
func parseModule(d *caddyfile.Dispenser, noun, namespace, nameKey string) (json.RawMessage, error) {
	if !d.NextArg() {
		return nil, d.ArgErr()
	}
	name := d.Val()
	if err := checkModule(noun, namespace, name); err != nil {
		return nil, d.WrapErr(err)
	}
	module, err := caddyfile.UnmarshalModule(d, namespace+"."+name)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSONModuleObject(module, nameKey, name, nil), nil
}

// checkGuest is checkModule for the JSON of a guest module. Caddy itself finds all other mistakes
// of it.
func checkGuest(raw json.RawMessage, noun, namespace, nameKey string) error {
	var guest map[string]any
	_ = json.Unmarshal(raw, &guest)
	if name, ok := guest[nameKey].(string); ok {
		return checkModule(noun, namespace, name)
	}
	return nil
}

// checkModule returns an error with the modules of the namespace unless name is one of them.
func checkModule(noun, namespace, name string) error {
	if _, err := caddy.GetModule(namespace + "." + name); err == nil {
		return nil
	}
	if slices.Contains(separate[namespace], name) {
		return fmt.Errorf("this build has no %s %q: build it with the package %s%s; there are %s",
			noun, name, separatePackages, name, modulesOf(namespace))
	}
	return fmt.Errorf("unknown %s %q; there are %s", noun, name, modulesOf(namespace))
}

// separatePackages is the start of the import paths of the packages that register the separate
// modules, which a build may leave out.
const separatePackages = "github.com/caddymedia/media/caddymedia/drivers/"

var separate = map[string][]string{
	modules.DriverNamespace: {"azblob", "ftp", "gcs", "local", "s3", "sftp"},
	modules.StoreNamespace:  {"redis"},
}

// modulesOf returns the names of the modules of a namespace, for an error.
func modulesOf(namespace string) string {
	found := caddy.GetModules(namespace)
	if len(found) == 0 {
		return "none"
	}
	names := make([]string, len(found))
	for i, info := range found {
		names[i] = info.ID.Name()
	}
	return strings.Join(names, ", ")
}

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
	if err != nil || storage.Cache == nil {
		return storage, err
	}
	return storage, a.openCache(&storage)
}

func (s *Storage) checkDriver() error {
	if s.DriverRaw == nil {
		return errors.New("it has no driver; there are " + modulesOf(modules.DriverNamespace))
	}
	return checkGuest(s.DriverRaw, "driver", modules.DriverNamespace, "name")
}

func init() {
	modules.RegisterStore[bolt.Config]("bolt")
	modules.RegisterStore[memory.Config]("memory")
}
