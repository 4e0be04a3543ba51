package mediaapp

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config is the configuration of the app.
type Config struct {
	Settings

	// Where tokens are kept: `bolt` (a file), `redis` or `memory`. Several Caddys share
	// tokens only through Redis. Default: `bolt`, in Caddy's data folder.
	TokensRaw json.RawMessage `json:"tokens,omitempty" caddy:"namespace=media.tokens inline_key=store"`

	// The accounts by API key. Without any, uploads are impossible.
	Accounts map[string]*Account `json:"accounts,omitempty"`

	// The storages by name. Default: one called `default`, a folder in Caddy's data
	// folder.
	Storages map[string]*Storage `json:"storages,omitempty"`

	// The aliases for images by name. Default: one called `content`, where no alias of
	// either kind is given.
	ImageAliases map[string]*ImageAlias `json:"image_aliases,omitempty"`

	// The aliases for files by name. Default: one called `content`, where no alias of
	// either kind is given.
	FileAliases map[string]*FileAlias `json:"file_aliases,omitempty"`

	// The limits of requests, of work on pictures and of failed logins.
	Limits *Limits `json:"limits,omitempty"`

	// From where Go code in the same process may have items downloaded.
	Downloads *Downloads `json:"downloads,omitempty"`

	// Uploads that continue after an interruption. Default: they are accepted.
	Resumable *Resumable `json:"resumable,omitempty"`
}

// Settings are the options of the app that are one value each.
type Settings struct {
	// The start of public addresses, for instance `https://cdn.example.com`; an alias
	// may have its own. Default: the scheme and host of the upload request, and no host
	// at all in templates.
	CDNBase string `json:"cdn_base,omitempty" option:"address" example:"https://cdn.example.com"`

	// The origins of the pages that may use the service in a browser although they are on another
	// site: `https://www.example.com`, or `*` for all. Pages can upload only with a token or a
	// ticket; cookies are never accepted. Default: none.
	CORS []string `json:"cors,omitempty" example:"https://www.example.com"`

	// How long a token is valid. Default: `24h`.
	TokenLifetime options.Duration `json:"token_lifetime,omitempty"`

	// The folder in which an upload waits until it is complete, for storages on other
	// hosts, if it has more than 1 MiB or 64 MiB of smaller ones wait in memory. It must
	// exist, and should be on a disk, not in memory as `/tmp` is on some systems. Files in
	// it have no name and are gone with the process. Default: the system's folder for
	// temporary files.
	SpoolFolder string `json:"spool_folder,omitempty"`

	// How long to wait between two checks of a storage that can be used; one that cannot
	// is looked at again after ten seconds. Default: `1m`.
	HealthInterval options.Duration `json:"health_interval,omitempty"`
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
		c.ImageAliases = map[string]*ImageAlias{ingest.DefaultAlias: new(ImageAlias)}
		c.FileAliases = map[string]*FileAlias{ingest.DefaultAlias: new(FileAlias)}
	}
	return implied
}

// StorageOf returns the name of the storage of an alias.
func (c *Config) StorageOf(alias *AliasOptions) (string, error) {
	return media.StorageOf(alias.Storage, slices.Collect(maps.Keys(c.Storages)))
}
