package mediaapp

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/tokens/bolt"
)

// warn logs what works, but probably not as the administrator expects.
func (a *App) warn() {
	a.warnOfDataFolder()
	a.warnOfHEIC()
}

// warnOfHEIC logs the aliases that accept HEIC, which is stored but not decoded here.
func (a *App) warnOfHEIC() {
	for _, name := range slices.Sorted(maps.Keys(a.ImageAliases)) {
		if alias, ok := a.service.Alias(aliases.Image, name); ok && alias.Extensions["heic"] {
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
