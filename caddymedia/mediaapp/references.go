package mediaapp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// CheckOption returns an error if an alias or resumable uploads in the global option media have an
// unknown storage, or an account an unknown alias. Only the directives of sites can check this: several blocks make up the
// option.
func CheckOption(h httpcaddyfile.Helper) error {
	option, ok := h.Option("media").(httpcaddyfile.App)
	if !ok {
		return nil
	}
	var c Config
	if err := json.Unmarshal(option.Value, &c); err != nil {
		return err
	}
	c.SetDefaults()
	for _, name := range slices.Sorted(maps.Keys(c.ImageAliases)) {
		if err := c.checkStorageOf(ingest.Image, name, &c.ImageAliases[name].AliasOptions); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.FileAliases)) {
		if err := c.checkStorageOf(ingest.File, name, &c.FileAliases[name].AliasOptions); err != nil {
			return err
		}
	}
	if r := c.Resumable; r != nil && !options.HasPlaceholder(r.Storage) {
		if err := media.CheckResumableStorage(r.Storage, slices.Collect(maps.Keys(c.Storages))); err != nil {
			return fmt.Errorf("resumable: %w", err)
		}
	}
	return c.checkAccounts()
}

func (c *Config) checkAccounts() error {
	names := slices.Concat(slices.Collect(maps.Keys(c.ImageAliases)), slices.Collect(maps.Keys(c.FileAliases)))
	for _, key := range slices.Sorted(maps.Keys(c.Accounts)) {
		for _, alias := range c.Accounts[key].Aliases {
			if err := media.CheckAliasOf(key, alias, names); err != nil && !options.HasPlaceholder(alias) {
				return err
			}
		}
	}
	return nil
}

func (c *Config) checkStorageOf(kind ingest.Kind, name string, alias *AliasOptions) error {
	if options.HasPlaceholder(alias.Storage) {
		return nil
	}
	if _, err := c.StorageOf(alias); err != nil {
		return fmt.Errorf("%s alias %q: %w", kind.Name(), name, err)
	}
	return nil
}
