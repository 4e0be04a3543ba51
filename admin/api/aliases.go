package api

import (
	"maps"
	"net/http"
	"slices"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/media"
)

type aliasAnswer struct {
	Kind       aliases.Kind   `json:"kind"`
	Name       string         `json:"name"`
	Implicit   bool           `json:"implicit"`
	Storage    string         `json:"storage"`
	Prefix     string         `json:"prefix"`
	Address    string         `json:"address"`
	Overwrite  bool           `json:"overwrite"`
	Sanitize   bool           `json:"sanitize"`
	MaxSize    int64          `json:"max_size"`
	Extensions []string       `json:"extensions"`
	WebP       bool           `json:"webp"`
	Settings   map[string]any `json:"settings"`
	Accounts   []string       `json:"accounts"`
}

// aliases returns all aliases, image aliases first.
func (c *call) aliases() error {
	configured, implicit := c.service.Aliases(), c.app.Implied().Aliases
	all := make([]aliasAnswer, 0, len(configured))
	for _, alias := range configured {
		all = append(all, aliasAnswer{
			Kind: alias.Kind, Name: alias.Name, Implicit: implicit,
			Storage: alias.Storage.Name(), Prefix: alias.Prefix, Address: alias.BaseURL + alias.Path(),
			Overwrite: alias.Overwrite, Sanitize: alias.Sanitize, MaxSize: alias.MaxSize,
			Extensions: slices.Sorted(maps.Keys(alias.Extensions)), WebP: alias.WebP != nil,
			Settings: c.aliasSettings(alias), Accounts: orEmpty(c.app.NamedBy(alias.Name)),
		})
	}
	return c.answer(map[string]any{"aliases": all})
}

// aliasSettings returns the configured options of an alias.
func (c *call) aliasSettings(alias *aliases.Alias) map[string]any {
	if alias.Kind == aliases.Image {
		return media.Schemas.ImageAlias.Values(c.app.ImageAliases[alias.Name])
	}
	return media.Schemas.FileAlias.Values(c.app.FileAliases[alias.Name])
}

type accountAnswer struct {
	APIKey  string   `json:"api_key"`
	Aliases []string `json:"aliases"`
}

// accounts returns all accounts.
func (c *call) accounts() error {
	all := make([]accountAnswer, 0, len(c.app.Accounts))
	for _, key := range slices.Sorted(maps.Keys(c.app.Accounts)) {
		all = append(all, accountAnswer{APIKey: key, Aliases: orEmpty(c.app.Accounts[key].Aliases)})
	}
	return c.answer(map[string]any{"accounts": all})
}

// endTokens revokes all tokens of an account and returns their number.
func (c *call) endTokens() error {
	key := c.args[0]
	if _, ok := c.app.Accounts[key]; !ok {
		return failf(http.StatusNotFound, "There is no account %.128q.", key)
	}
	ctx, cancel := c.bounded()
	defer cancel()
	ended, err := c.service.Issuer().Revoke(ctx, key)
	if err != nil {
		return failf(http.StatusServiceUnavailable, "%s %s", noTokenStore, c.redacted(err.Error()))
	}
	return c.answer(map[string]int{"ended": ended})
}

// orEmpty returns an empty list for nil, which would be null in JSON.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
