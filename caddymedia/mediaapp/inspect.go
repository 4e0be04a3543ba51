package mediaapp

import (
	"maps"
	"slices"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/modules"
)

// Service returns the service of this configuration, which may be closed.
func (a *App) Service() *media.Service { return a.service }

// Driver returns the module of a storage's driver, or nil if there is no such storage.
func (a *App) Driver(name string) *modules.Driver { return a.drivers[name] }

// Implied returns the default parts that were added to the configuration.
func (a *App) Implied() Implied { return a.implied }

// NamedBy returns the sorted API keys of the accounts that list an alias. Accounts that may use all
// aliases are not included.
func (a *App) NamedBy(alias string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(a.Accounts)) {
		if slices.Contains(a.Accounts[key].Aliases, alias) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TokenStore returns the name of the token store in the configuration, for example "bolt".
func (a *App) TokenStore() string { return a.tokens.Name() }
