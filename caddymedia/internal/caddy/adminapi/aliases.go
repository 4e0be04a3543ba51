package adminapi

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/front/s3api"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

type aliasAnswer struct {
	Kind      item.Kind `json:"kind"`
	Name      string    `json:"name"`
	Implicit  bool      `json:"implicit"`
	Storage   string    `json:"storage"`
	Prefix    string    `json:"prefix"`
	Address   string    `json:"address"`
	Overwrite bool      `json:"overwrite"`
	// Dated means that weak entity tags of its items are conditions of If-Match.
	Dated      bool     `json:"dated"`
	Private    bool     `json:"private"`
	Sanitize   bool     `json:"sanitize"`
	MaxSize    int64    `json:"max_size"`
	Extensions []string `json:"extensions"`
	WebP       bool     `json:"webp"`
	// Trash is for how many seconds deleted items can be had back; 0 without a trash.
	Trash int64 `json:"trash,omitempty"`
	// TrashLocked means that nothing is purged.
	TrashLocked bool           `json:"trash_locked,omitempty"`
	Settings    map[string]any `json:"settings"`
	Accounts    []string       `json:"accounts"`
}

// aliases returns all aliases, image aliases first. A user who may use items and nothing else gets
// what the pages of items need, of the aliases of the user.
func (c *call) aliases() error {
	aliases, implicit := c.service.Aliases(), c.app.Implied().Aliases
	all := make([]aliasAnswer, 0, len(aliases))
	for _, alias := range aliases {
		if c.account != nil && !c.account.Allows(alias.Name) {
			continue
		}
		var settings map[string]any
		if alias.Kind == item.Image {
			settings = media.Schemas.ImageAlias.Values(c.app.ImageAliases[alias.Name])
		} else {
			settings = media.Schemas.FileAlias.Values(c.app.FileAliases[alias.Name])
		}
		answer := aliasAnswer{
			Kind: alias.Kind, Name: alias.Name, Implicit: implicit,
			Storage: alias.Storage.Name(), Prefix: alias.Prefix, Address: alias.BaseURL + alias.Path(),
			Overwrite: alias.Overwrite, Dated: alias.Storage.Features().Dated, Private: alias.Private != nil,
			Sanitize: alias.Sanitize, MaxSize: alias.MaxSize,
			Extensions: slices.Sorted(maps.Keys(alias.Extensions)), WebP: alias.WebP != nil, Trash: int64(alias.Trash / time.Second), TrashLocked: alias.TrashLocked,
			Settings: settings, Accounts: append([]string{}, c.app.NamedBy(alias.Name)...),
		}
		if c.account != nil {
			answer.Storage, answer.Prefix, answer.Accounts = "", "", []string{}
			answer.Settings = map[string]any{"rename_mismatched": settings["rename_mismatched"]}
		}
		all = append(all, answer)
	}
	return c.answer(map[string]any{"aliases": all})
}

type accountAnswer struct {
	APIKey  string   `json:"api_key"`
	Aliases []string `json:"aliases"`
	// May are the rights.
	May []access.Right `json:"may"`
	// Trusted means that the account has users of another login, and no password.
	Trusted bool `json:"trusted,omitempty"`
	// Buckets are those of its aliases in the S3 front; null for an account without S3.
	Buckets []string `json:"buckets"`
}

// accounts returns all accounts, and the addresses of the S3 front.
func (c *call) accounts() error {
	all := make([]accountAnswer, 0, len(c.app.Accounts))
	for _, key := range slices.Sorted(maps.Keys(c.app.Accounts)) {
		account, _ := c.service.Issuer().Account(key)
		answer := accountAnswer{
			APIKey: key, Aliases: append([]string{}, account.Aliases...), May: account.AllRights(), Trusted: account.Trusted,
		}
		if account.S3Secret != "" {
			answer.Buckets = []string{}
			for _, alias := range c.service.Aliases() {
				if account.Allows(alias.Name) {
					answer.Buckets = append(answer.Buckets, s3api.BucketOf(alias))
				}
			}
		}
		all = append(all, answer)
	}
	return c.answer(map[string]any{"accounts": all, "s3_endpoints": append([]plugin.S3Endpoint{}, c.app.S3Endpoints()...)})
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

type kindsAnswer struct {
	Drivers    map[string]driverSchema `json:"drivers"`
	Storage    *options.Schema         `json:"storage"`
	ImageAlias *options.Schema         `json:"image_alias"`
	FileAlias  *options.Schema         `json:"file_alias"`
	Account    *options.Schema         `json:"account"`
}

// driverSchema describes a driver and its options.
type driverSchema struct {
	Title string `json:"title"`
	Icon  string `json:"icon"`
	Rank  int    `json:"rank"`
	// HostKeys reports whether a host of the driver can be asked for its key.
	HostKeys bool `json:"host_keys"`
	*options.Schema
}

// kinds returns the options of everything that can be configured.
func (c *call) kinds() error {
	drivers := map[string]driverSchema{}
	for _, info := range caddy.GetModules("media.storages") {
		if driver, ok := info.New().(*modules.Driver); ok {
			d := driver.Describe()
			_, hostKeys := driver.HostKeyer()
			drivers[info.ID.Name()] = driverSchema{d.Title, d.Icon, d.Rank, hostKeys, driver.Schema()}
		}
	}
	all := media.Schemas
	account := all.Account.Documented()
	return c.answer(kindsAnswer{
		Drivers: drivers, Storage: all.Storage.Documented(),
		ImageAlias: all.ImageAlias.Documented(), FileAlias: all.FileAlias.Documented(),
		Account: &options.Schema{
			Help: account.Help,
			// The server generates the hash of a password.
			Options: slices.DeleteFunc(slices.Clone(account.Options), func(o options.Option) bool { return o.Name == hashOption }),
		},
	})
}
