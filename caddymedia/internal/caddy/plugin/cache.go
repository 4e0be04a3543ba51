package plugin

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/cache"
)

// openCache opens the folder of the cache of a storage. A reload keeps it open, because the folder
// belongs to one owner.
func (a *App) openCache(storage *media.Storage) error {
	c := *storage.Cache // the configuration stays as it is
	c.Folder = filepath.Clean(cmp.Or(c.Folder, filepath.Join(caddy.AppDataDir(), "media", "cache", storage.Name)))
	blocks, done, err := pooled(a, "cache", c.Folder, func() (*cache.Store, error) {
		return cache.NewStore(cache.Options{Folder: c.Folder, MaxSize: c.MaxSize, Log: a.log.With("storage", storage.Name)}), nil
	})
	if err != nil {
		return err
	}
	a.observer.Cache(storage.Name, blocks.Stats)
	closeDriver := storage.Options.Close
	storage.Options.Close = func() error { return errors.Join(closeDriver(), done()) }
	storage.Cache, storage.Blocks = &c, blocks
	a.caches[storage.Name] = blocks
	return nil
}

// resizeCaches sets the sizes of the read caches, which an earlier configuration may have used
// until now.
func (a *App) resizeCaches() {
	for name, blocks := range a.caches {
		blocks.SetMaxSize(a.Storages[name].Cache.MaxSize)
	}
}

// Caches returns the read caches of the storages that have one, by the names of the storages.
func (a *App) Caches() map[string]*cache.Store { return a.caches }
