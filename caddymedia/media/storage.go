package media

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/cache"
	"github.com/caddymedia/media/storagedrivers/options"
)

// DefaultStorage is the name of the storage of aliases that name none.
const DefaultStorage = "default"

// Storage keeps items, under names that follow its options.
type Storage struct {
	// Name of the storage, by the rule [Names].
	Name string `json:"-"`
	// Driver of the backend. It is closed with the service, unless Options have another Close.
	Driver storagedrivers.Driver `json:"-"`
	// Options of the storage. Observe is set by the service.
	Options storagedrivers.Options `json:"-"`
	// Settings identify the driver's settings. A service takes over the state of a storage that has
	// the same name and settings in the previous one.
	Settings string `json:"-"`

	// The folder of items whose upload names none: a strftime pattern of letters, digits, `-`, `_`,
	// `.`, `/` and conversions such as `%Y`, or `/` for the root of the alias. Default: year, month
	// and day as `26-11/20`.
	SubFolderFormat string `json:"sub_folder_format,omitempty" option:"common" example:"%y-%m/%d"`

	// What happens to an upload whose name exists. `append_time` adds the time to the name
	// (`photo-1795132800.jpg`), so that stored items never change. `overwrite` replaces the stored
	// item; caches must then revalidate at each request. Default: `append_time`.
	OverwriteStrategy string `json:"overwrite_strategy,omitempty" option:"common,words=append_time|overwrite"`

	// Whether names are simplified: lower case, without accents, spaces and special characters.
	// Otherwise a name is stored exactly as submitted, or refused if it is not safe. Default:
	// `true`.
	Sanitize *bool `json:"sanitize,omitempty" option:"common"`

	// Keeps the bytes of items that were read in a folder of this host. Not for a local folder.
	// Default: each read goes to the storage.
	Cache *Cache `json:"cache,omitempty" option:"block"`

	// Blocks is the folder of the cache, for services that share it. Default: its own.
	Blocks *cache.Store `json:"-"`
}

// Cache is the read cache of a storage on another host.
type Cache struct {
	// The folder of the cached bytes, on a disk of this host. It belongs to one storage and one
	// process: a second process reads from the storage until the folder is free. Default: a folder
	// of the storage's name in Caddy's data folder.
	Folder string `json:"folder,omitempty" example:"/var/cache/media"`

	// The most bytes in the folder, at least 64 MiB, as the disk allocates them. Bytes that were not
	// read for long are removed first. Default: `10GiB`.
	MaxSize int64 `json:"max_size,omitempty" option:"size" example:"10GiB"`

	// The size of the pieces in which items are fetched and kept, `64KiB` to `16MiB`. A request for
	// one byte fetches a whole one. Those on their way share 64 MiB of memory, in turn by account
	// and visitor. Default: `1MiB`.
	Block int64 `json:"block,omitempty" option:"size" example:"1MiB"`

	// How long an item is served without asking the storage whether it has changed. With
	// `overwrite`, others may see a replaced item for so long, if another process replaced it.
	// Default: `1m`; with `overwrite` the storage is asked at each request.
	Revalidate options.Duration `json:"revalidate,omitempty" option:"zero" example:"1m"`

	// How long after `revalidate` an item is still served while the storage is unavailable. Not for
	// a storage that overwrites. Default: not at all.
	StaleIfError options.Duration `json:"stale_if_error,omitempty" option:"zero" example:"24h"`

	// Whether the bytes of an upload are kept for its first request. Default: `false`.
	FillOnUpload bool `json:"fill_on_upload,omitempty"`
}

// Bounds of the options of a cache.
const (
	minCacheSize  = 64 << 20
	minCacheBlock = 64 << 10
	maxCacheBlock = 16 << 20
)

// Check implements options.Checker.
func (c *Cache) Check() error {
	switch {
	case c.MaxSize != 0 && c.MaxSize < minCacheSize:
		return errors.New("max_size is at least 64MiB")
	case c.Block != 0 && (c.Block < minCacheBlock || c.Block > maxCacheBlock):
		return errors.New("block is from 64KiB to 16MiB")
	}
	return nil
}

// overwriteItems is the word of OverwriteStrategy that replaces items.
const overwriteItems = "overwrite"

// Check implements options.Checker.
func (s *Storage) Check() error {
	if _, err := naming.ParseFormat(s.SubFolderFormat); err != nil {
		return fmt.Errorf("sub_folder_format: %w", err)
	}
	if s.Cache != nil && s.Cache.StaleIfError != 0 && s.OverwriteStrategy == overwriteItems {
		return errors.New("stale_if_error of the cache is for items that never change, not for overwrite_strategy overwrite")
	}
	return nil
}

// complete checks the options and adds the spool folder.
func (s *Storage) complete(spoolFolder string) error {
	if err := Names.Check(s.Name); err != nil {
		return err
	}
	if s.Driver == nil {
		return errors.New("it has no driver")
	}
	s.Options.SpoolDir = cmp.Or(s.Options.SpoolDir, spoolFolder)
	if err := Schemas.Storage.Check(s); err != nil || s.Cache == nil {
		return err
	}
	switch {
	case s.Options.Description.Local:
		return errors.New("cache: a local folder needs no cache")
	case s.Cache.Folder == "" && s.Blocks == nil:
		return errors.New("cache: folder is missing")
	}
	return nil
}

// checkCaches returns an error if two caches have the same folder.
func checkCaches(storages []Storage) error {
	owners := map[string]string{}
	for i := range storages {
		s := &storages[i]
		if s.Cache == nil || s.Cache.Folder == "" {
			continue
		}
		folder := filepath.Clean(s.Cache.Folder)
		if other, taken := owners[folder]; taken {
			return fmt.Errorf("storage %q: cache: its folder is that of storage %q", s.Name, other)
		}
		owners[folder] = s.Name
	}
	return nil
}

// StorageOf returns the storage of an alias. Without a name it is the default storage, or the only
// one of names.
func StorageOf(name string, names []string) (string, error) {
	storage := name
	if name == "" {
		storage = DefaultStorage
		if len(names) == 1 {
			storage = names[0]
		}
	}
	switch {
	case slices.Contains(names, storage):
		return storage, nil
	case name == "":
		return "", errors.New("storage is missing: there are several, and none is called default")
	default:
		return "", noStorage(name, names)
	}
}

// noStorage returns the error of an option that names an unknown storage.
func noStorage(name string, storages []string) error {
	return fmt.Errorf("storage: there is no storage %q; there are %s",
		name, strings.Join(slices.Sorted(slices.Values(storages)), ", "))
}

// cacheRevalidate is how long items that never change are served without asking their storage.
const cacheRevalidate = time.Minute

// storageParts returns the storages, those with a cache behind it.
func (c *Config) storageParts() []service.Storage {
	all := make([]service.Storage, len(c.Storages))
	for i := range c.Storages {
		s := &c.Storages[i]
		all[i] = service.Storage{Name: s.Name, Driver: s.Driver, Options: s.Options, Settings: s.Settings}
		if s.Cache != nil {
			all[i].Driver = cached(s, &all[i].Options, c.Log)
		}
	}
	return all
}

// cached returns the driver of a storage behind its cache, and sets what closes both.
func cached(config *Storage, options *storagedrivers.Options, log *slog.Logger) storagedrivers.Driver {
	c, blocks := config.Cache, config.Blocks
	closing := options.Close
	if closing == nil {
		closing = config.Driver.Close
	}
	if blocks == nil {
		closeDriver := closing
		blocks = cache.NewStore(cache.Options{Folder: c.Folder, MaxSize: c.MaxSize, Log: log})
		closing = func() error { return errors.Join(closeDriver(), blocks.Close()) }
	}
	policy := cache.Policy{
		Block: c.Block, Immutable: config.OverwriteStrategy != overwriteItems, Revalidate: time.Duration(c.Revalidate),
		StaleIfError: time.Duration(c.StaleIfError), FillOnUpload: c.FillOnUpload,
		Skip: naming.InUploadsFolder, Close: closing,
	}
	if policy.Immutable {
		policy.Revalidate = cmp.Or(policy.Revalidate, cacheRevalidate)
	}
	// Storages that share Blocks have different objects, unless they say otherwise.
	options.Location = options.Location.Or(config.Name)
	driver := cache.New(config.Driver, blocks, options.Location.String(), policy)
	options.Close = driver.Close
	return driver
}
