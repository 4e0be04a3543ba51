package mediaapp

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

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
	config := media.Config{ImageAliases: c.ImageAliases, FileAliases: c.FileAliases, Accounts: c.Accounts}
	for name := range c.Storages {
		config.Storages = append(config.Storages, media.Storage{Name: name})
	}
	if c.Resumable != nil {
		config.Resumable = *c.Resumable
	}
	return config.CheckReferences(func(name string) bool { return !options.HasPlaceholder(name) })
}
