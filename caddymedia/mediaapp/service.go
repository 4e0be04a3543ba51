package mediaapp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// bounds are the bounds of the process. They include uploads that began under an earlier
// configuration.
var bounds = media.NewBounds()

// serviceConfig loads the modules of the configuration, expands its options and returns the
// configuration of the service. Parts that outlive a reload come from the pool.
func (a *App) serviceConfig(ctx caddy.Context) (media.Config, error) {
	config := media.Config{
		TokenLifetime: time.Duration(a.TokenLifetime), HealthInterval: time.Duration(a.HealthInterval),
		Bounds: bounds, Client: ClientOf, Observer: a.observer, Log: a.log,
	}
	if before, err := Active(); err == nil {
		config.Previous = before.service
	}
	var err error
	if config.Storages, err = a.openStorages(ctx); err != nil {
		return config, err
	}
	if config.BaseURL, err = a.baseURL(); err != nil {
		return config, err
	}
	limits := *a.Limits
	if err := limitsOptions.Expand(&limits); err != nil {
		return config, fmt.Errorf("limits: %w", err)
	}
	config.Limits = limits.service().WithDefaults()
	if config.Aliases, err = a.aliases(); err != nil {
		return config, err
	}
	var closePictures, closeLogins func() error
	if config.Pictures, closePictures, err = a.openPictures(config); err != nil {
		return config, err
	}
	if config.Downloads, err = a.Downloads.options(); err != nil {
		return config, fmt.Errorf("downloads: %w", err)
	}
	if config.CORS, err = a.origins(); err != nil {
		return config, err
	}
	if config.Resumable, err = a.Resumable.options(); err != nil {
		return config, fmt.Errorf("resumable: %w", err)
	}
	if config.Tokens, err = a.openTokens(ctx); err != nil {
		return config, fmt.Errorf("tokens: %w", err)
	}
	if a.TokenLifetime < 0 {
		return config, errors.New("token_lifetime is negative")
	}
	if config.Accounts, err = a.accounts(); err != nil {
		return config, err
	}
	compare, err := loadComparer(ctx)
	if err != nil {
		return config, err
	}
	config.Comparer, config.FakeHash = compare, compare.fake
	key := fmt.Sprint(config.Limits.LoginFailures, config.Limits.PasswordChecks, config.Limits.TicketsPerMinute)
	config.Logins, closeLogins, err = pooled(a, "login", key, func() (*media.Logins, error) {
		return media.NewLogins(config.Limits), nil
	})
	config.Release = func() error { return errors.Join(closePictures(), closeLogins()) }
	return config, err
}

func (a *App) openStorages(ctx caddy.Context) ([]media.Storage, error) {
	spool, err := a.spoolFolder()
	if err != nil {
		return nil, err
	}
	a.drivers = map[string]storagedrivers.Module{}
	storages := make([]media.Storage, 0, len(a.Storages))
	for _, name := range slices.Sorted(maps.Keys(a.Storages)) {
		if err := media.CheckName("storage", name); err != nil {
			return nil, err
		}
		if a.Storages[name] == nil {
			return nil, fmt.Errorf("storage %q is empty", name)
		}
		storage, err := a.openStorage(ctx, name, spool)
		if err != nil {
			return nil, fmt.Errorf("storage %q: %w", name, err)
		}
		storages = append(storages, storage)
	}
	return storages, nil
}

// openPictures returns the maker of variants. A reload that does not change its limits keeps the
// maker, so that running work still counts.
func (a *App) openPictures(config media.Config) (*render.Maker, func() error, error) {
	limits := config.Limits.Encoding
	wanted := config.NeedsEncoder()
	maker, done, err := pooled(a, "pictures", fmt.Sprint(limits, wanted), func() (*render.Maker, error) {
		return media.NewPictures(limits, wanted, a.log)
	})
	if err != nil {
		return nil, nil, err
	}
	a.observer.Pictures(maker)
	return maker, done, nil
}
