package plugin

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/cache"
	"github.com/caddymedia/media/storagedrivers/options"
)

// process is what the services of all configurations share.
var process = media.NewProcess()

// serviceConfig loads the modules of the configuration, expands its options and returns the
// configuration of the service. Parts that outlive a reload come from the pool.
func (a *App) serviceConfig(ctx caddy.Context) (media.Config, error) {
	config := media.Config{Process: process, Client: ClientOf, Observer: a.observer, Log: a.log}
	if before, err := Active(); err == nil {
		config.Previous = before.service
	}
	err := a.expandInto(&config)
	if err != nil {
		return config, err
	}
	if config.Storages, err = a.openStorages(ctx); err != nil {
		return config, err
	}
	if config.Tokens, err = a.openTokens(ctx); err != nil {
		return config, fmt.Errorf("tokens: %w", err)
	}
	compare, err := loadComparer(ctx)
	if err != nil {
		return config, err
	}
	config.Comparer, config.FakeHash = compare, compare.fake
	return config, nil
}

// expandInto sets the options of the service, with their placeholders replaced.
func (a *App) expandInto(config *media.Config) (err error) {
	if config.Settings, err = expanded(media.Schemas.Settings, &a.Settings); err != nil {
		return err
	}
	if config.Limits, err = expanded(media.Schemas.Limits, a.Limits); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	if config.Downloads, err = expanded(media.Schemas.Downloads, a.Downloads); err != nil {
		return fmt.Errorf("downloads: %w", err)
	}
	if config.Resumable, err = expanded(media.Schemas.Resumable, a.Resumable); err != nil {
		return fmt.Errorf("resumable: %w", err)
	}
	if config.ImageAliases, err = expandedAll(media.Schemas.ImageAlias, "image alias", a.ImageAliases); err != nil {
		return err
	}
	if config.FileAliases, err = expandedAll(media.Schemas.FileAlias, "file alias", a.FileAliases); err != nil {
		return err
	}
	config.Accounts, err = a.expandAccounts()
	return err
}

// expanded returns a copy of options with their placeholders replaced; zero for nil.
func expanded[T any](schema *options.Schema, given *T) (T, error) {
	var config T
	if given != nil {
		config = *given
	}
	return config, schema.Expand(&config, modules.Expander())
}

// expandedAll returns copies of named options with their placeholders replaced.
func expandedAll[T any](schema *options.Schema, noun string, given map[string]*T) (map[string]*T, error) {
	all := make(map[string]*T, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] == nil {
			all[name] = nil // of which the service makes an error
			continue
		}
		config, err := expanded(schema, given[name])
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", noun, name, err)
		}
		all[name] = &config
	}
	return all, nil
}

func (a *App) openStorages(ctx caddy.Context) ([]media.Storage, error) {
	a.drivers, a.caches = map[string]*modules.Driver{}, map[string]*cache.Store{}
	storages := make([]media.Storage, 0, len(a.Storages))
	for _, name := range slices.Sorted(maps.Keys(a.Storages)) {
		if a.Storages[name] == nil {
			return nil, fmt.Errorf("storage %q is empty", name)
		}
		storage, err := a.openStorage(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("storage %q: %w", name, err)
		}
		storages = append(storages, storage)
	}
	return storages, nil
}

// pool keeps drivers, token stores and caches with unchanged settings across a reload, so that
// their connections stay open.
var pool = caddy.NewUsagePool()

// pooled returns the value for a key, and opens it if there is none yet. done returns the value to
// the pool; the last call closes it. done is also added to a.opened.
func pooled[T io.Closer](a *App, sort, key string, open func() (T, error)) (value T, done func() error, err error) {
	// Settings contain secrets, so the key is a hash.
	hashed := sha256.Sum256([]byte(sort + "\x00" + key))
	entry, _, err := pool.LoadOrNew(hashed, func() (caddy.Destructor, error) {
		v, err := open()
		return poolEntry[T]{v}, err
	})
	if err != nil {
		return value, nil, err
	}
	done = func() error {
		_, err := pool.Delete(hashed)
		return err
	}
	a.opened = append(a.opened, done)
	return entry.(poolEntry[T]).value, done, nil // the sort is part of the key
}

type poolEntry[T io.Closer] struct{ value T }

// Destruct closes the value.
func (e poolEntry[T]) Destruct() error { return e.value.Close() }
