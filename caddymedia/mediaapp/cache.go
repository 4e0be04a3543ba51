package mediaapp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/cache"
)

func init() { caddy.RegisterModule(cacheAPI{}) }

// openCache opens the folder of the cache of a storage. A reload keeps it open, because the folder
// belongs to one owner.
func (a *App) openCache(storage *media.Storage) error {
	c := *storage.Cache // the configuration stays as it is
	c.Folder = cmp.Or(c.Folder, filepath.Join(caddy.AppDataDir(), "media", "cache", storage.Name))
	blocks, done, err := pooled(a, "cache", c.Folder, func() (*cache.Store, error) {
		return cache.NewStore(cache.Options{Folder: c.Folder, Log: a.log.With("storage", storage.Name)}), nil
	})
	if err != nil {
		return err
	}
	blocks.SetMaxSize(c.MaxSize)
	a.observer.Cache(storage.Name, blocks.Stats)
	closeDriver := storage.Options.Close
	storage.Options.Close = func() error { return errors.Join(closeDriver(), done()) }
	storage.Cache, storage.Blocks = &c, blocks
	a.caches[storage.Name] = blocks
	return nil
}

// cacheAPI is the part of Caddy's admin API that shows and empties the read caches of the storages.
//
// `GET /media/cache` returns them as an object by the names of the storages. `DELETE` empties those
// that the parameter `storage` names, or all of them, and returns the same.
type cacheAPI struct{}

// CaddyModule returns the Caddy module information.
func (cacheAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.media_cache", New: func() caddy.Module { return cacheAPI{} }}
}

// Routes implements caddy.AdminRouter.
func (cacheAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: CachePath, Handler: caddy.AdminHandlerFunc(serveCaches)}}
}

// CachePath is the path of the read caches in Caddy's admin API.
const CachePath = "/media/cache"

func serveCaches(w http.ResponseWriter, r *http.Request) error {
	app, release, err := AcquireActive()
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: err}
	}
	defer release()
	names := r.URL.Query()["storage"]
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(app.caches))
	}
	caches := make(map[string]cache.Stats, len(names))
	for _, name := range names {
		blocks := app.caches[name]
		if blocks == nil {
			return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("no storage %q has a cache", name)}
		}
		switch r.Method {
		case http.MethodGet:
		case http.MethodDelete:
			if err := blocks.Empty(); err != nil {
				return fmt.Errorf("emptying the cache of storage %q: %w", name, err)
			}
		default:
			return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: errors.New("use GET or DELETE")}
		}
		caches[name] = blocks.Stats()
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(caches)
}

// Interface guards
var _ caddy.AdminRouter = cacheAPI{}
