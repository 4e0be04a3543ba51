package plugin

import (
	"encoding/json"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// Config is the configuration of the app.
type Config struct {
	media.Settings

	// The token store: `bolt` (a file), `redis` or `memory`. Several Caddys share tokens only
	// through Redis. Default: `bolt`, in Caddy's data folder.
	TokensRaw json.RawMessage `json:"tokens,omitempty" caddy:"namespace=media.tokens inline_key=store"`

	// The accounts by API key. Without an account all uploads are refused.
	Accounts map[string]*media.Account `json:"accounts,omitempty"`

	// The storages by name. Default: a storage called `default`, in Caddy's data folder.
	Storages map[string]*Storage `json:"storages,omitempty"`

	// The image aliases by name. Default: an alias called `content`, if there is no alias at all.
	ImageAliases map[string]*media.ImageAlias `json:"image_aliases,omitempty"`

	// The file aliases by name. Default: an alias called `content`, if there is no alias at all.
	FileAliases map[string]*media.FileAlias `json:"file_aliases,omitempty"`

	// The limits of requests, images and failed logins.
	Limits *media.Limits `json:"limits,omitempty"`

	// The hosts that Go code in the same process may download items from.
	Downloads *media.Downloads `json:"downloads,omitempty"`

	// Uploads that continue after an interruption. Default: they are accepted.
	Resumable *media.Resumable `json:"resumable,omitempty"`
}

// Implied reports which default parts were added to a configuration.
type Implied struct {
	// Storage reports whether the default storage was added.
	Storage bool
	// Aliases reports whether the default aliases were added.
	Aliases bool
}

// SetDefaults adds the default storage if the configuration has no storage, and the default aliases
// if it has no alias of either kind. It returns what it has added.
func (c *Config) SetDefaults() Implied {
	implied := Implied{
		Storage: len(c.Storages) == 0,
		Aliases: len(c.ImageAliases) == 0 && len(c.FileAliases) == 0,
	}
	if implied.Storage {
		c.Storages = map[string]*Storage{media.DefaultStorage: {DriverRaw: DefaultDriver()}}
	}
	if implied.Aliases {
		c.ImageAliases = map[string]*media.ImageAlias{item.DefaultAlias: new(media.ImageAlias)}
		c.FileAliases = map[string]*media.FileAlias{item.DefaultAlias: new(media.FileAlias)}
	}
	return implied
}
