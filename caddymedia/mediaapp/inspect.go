package mediaapp

import (
	"context"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

// Storage gives the storage of a name; false if there is none.
func (a *App) Storage(name string) (*storagedrivers.Storage, bool) {
	storage, ok := a.storages[name]
	return storage, ok
}

// Driver gives the module of the driver of a storage; nil if there is no such storage.
func (a *App) Driver(name string) storagedrivers.Module { return a.drivers[name] }

// DriverName returns the name of a driver in the configuration, "sftp" for instance.
func DriverName(module storagedrivers.Module) string { return nameOf(module) }

func nameOf(module any) string {
	if known, ok := module.(caddy.Module); ok {
		return known.CaddyModule().ID.Name()
	}
	return ""
}

// ImpliesStorage tells whether the only storage is the one that stands in where the
// configuration has none.
func (a *App) ImpliesStorage() bool { return a.implied.storage }

// ImpliesAliases tells whether the only aliases are the two that stand in where the
// configuration has none.
func (a *App) ImpliesAliases() bool { return a.implied.aliases }

// Aliases gives the aliases in the order of their kinds, pictures first, and names.
func (a *App) Aliases() []*ingest.Alias {
	var aliases []*ingest.Alias
	for _, kind := range []ingest.Kind{ingest.Image, ingest.File} {
		of := a.uploader.Aliases[kind]
		for _, name := range slices.Sorted(maps.Keys(of)) {
			aliases = append(aliases, of[name])
		}
	}
	return aliases
}

// NamedBy gives the API keys of the accounts whose lists have the name of an alias, in
// their order. Accounts that may use all aliases are not among them.
func (a *App) NamedBy(alias string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(a.Accounts)) {
		if slices.Contains(a.Accounts[key].Aliases, alias) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TokenStore returns the name of the token store in the configuration, "bolt" for instance.
func (a *App) TokenStore() string { return nameOf(a.tokens) }

// CheckTokenStore tells whether the token store can be reached and takes writes.
func (a *App) CheckTokenStore(ctx context.Context) error { return a.store.Check(ctx) }
