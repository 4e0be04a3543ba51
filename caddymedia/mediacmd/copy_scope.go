package mediacmd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/internal/storagecopy"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// aliasesOf returns the aliases of names such as "img/content". Each must use one of the two
// storages: from, or to if it has been switched already.
func (s *session) aliasesOf(from, to string, names []string) ([]*ingest.Alias, error) {
	aliases := make([]*ingest.Alias, 0, len(names))
	for _, full := range names {
		kind, name, _ := strings.Cut(full, "/")
		alias, ok := s.App.Service().Alias(ingest.Kind(kind), name)
		if !ok {
			return nil, fmt.Errorf("there is no alias %q in the configuration; write img/<name> or file/<name>", full)
		}
		if kept := alias.Storage.Name(); kept != from && kept != to {
			return nil, fmt.Errorf("the alias %s is kept in storage %q, not in %q", full, kept, from)
		}
		aliases = append(aliases, alias)
	}
	return aliases, nil
}

// prefixesOf returns the prefixes of the keys to copy, in their order.
func prefixesOf(aliases []*ingest.Alias, everything bool) []string {
	prefixes := make([]string, 0, len(aliases))
	for _, alias := range aliases {
		if alias.Prefix == "" {
			everything = true
		}
		prefixes = append(prefixes, alias.Prefix+"/")
	}
	if everything {
		return []string{""}
	}
	slices.Sort(prefixes)
	// The prefix of an alias in one storage may lie within that of an alias in the other.
	last := "\xff"
	return slices.DeleteFunc(slices.Compact(prefixes), func(prefix string) bool {
		if strings.HasPrefix(prefix, last) {
			return true
		}
		last = prefix
		return false
	})
}

// aliasOf returns a function that finds the alias of a key, or nil. Aliases that use the storage to
// come first.
func (s *session) aliasOf(from, to string) func(key string) *ingest.Alias {
	var aliases []*ingest.Alias
	for _, kept := range []string{to, from} {
		for _, alias := range s.App.Service().Aliases() {
			if alias.Storage.Name() == kept {
				aliases = append(aliases, alias)
			}
		}
	}
	return func(key string) *ingest.Alias {
		for _, alias := range aliases {
			if strings.HasPrefix(key, alias.Key("")) {
				return alias
			}
		}
		return nil
	}
}

// isNoItem returns a function that reports whether an object of the storage from is a part of an
// unfinished upload, or a rendition of an alias that uses one of the two storages. Keys of items
// never are, although an alias that has been switched to the other storage may have its folder of
// renditions among them.
func (s *session) isNoItem(from, to string) func(key string) bool {
	var items, renditions []string // prefixes of keys
	for _, alias := range s.App.Service().Aliases() {
		kept := alias.Storage.Name()
		if kept == from {
			items = append(items, alias.Key(""))
		}
		if alias.HasRenditionFolder() && (kept == from || kept == to) {
			renditions = append(renditions, alias.RenditionRoot()+"/")
		}
	}
	return func(key string) bool {
		begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
		return naming.InUploadsFolder(key) || slices.ContainsFunc(renditions, begins) && !slices.ContainsFunc(items, begins)
	}
}

// describe sets the options that depend on aliases: the Cache-Control header of a key, the picture of
// a variant, and the objects that are not copied: renditions are made again.
func (s *session) describe(opts *storagecopy.Options, from, to string) {
	aliasOf := s.aliasOf(from, to)
	opts.CacheControl = func(key string) string {
		if alias := aliasOf(key); alias != nil {
			return alias.CacheControl
		}
		return ""
	}
	opts.Omits = s.isNoItem(from, to)
	opts.PictureOf = func(key string) string {
		if alias := aliasOf(key); alias == nil || !alias.IsVariant(alias.Filename(key)) {
			return ""
		}
		return strings.TrimSuffix(key, render.Suffix)
	}
}

// parallel returns how many items may be copied at once, at most wanted.
func (s *session) parallel(wanted int, storages ...*storagedrivers.Storage) int {
	for _, storage := range storages {
		if limit := s.App.Driver(storage.Name()).Parallel(); limit > 0 {
			wanted = min(wanted, limit)
		}
	}
	return wanted
}

// journal opens the journal. It returns nil for a dry run without one.
func journal(flags *copyFlags, opts storagecopy.Options) (*storagecopy.Journal, error) {
	copied := fingerprint(opts.From, opts.To)
	path := flags.state
	if path == "" {
		folder := filepath.Join(caddy.AppDataDir(), appName, "copy")
		scope := sha256.Sum256([]byte(copied + "\n" + strings.Join(opts.Prefixes, "\n")))
		path = filepath.Join(folder, fmt.Sprintf("%s-to-%s-%s.jsonl", opts.From.Name(), opts.To.Name(), hex.EncodeToString(scope[:4])))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	if flags.dryRun {
		if _, err := os.Stat(path); err != nil {
			return nil, nil //nolint:nilerr,nilnil // without a journal all is as it would be at first
		}
	}
	return storagecopy.OpenJournal(path, copied)
}

// fingerprint identifies copies between two backends.
func fingerprint(from, to *storagedrivers.Storage) string {
	sum := sha256.Sum256([]byte(from.Location().String() + "\n" + to.Location().String()))
	return fmt.Sprintf("%s to %s %x", from.Name(), to.Name(), sum[:8])
}
