package edit

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

const storageOption = "storage"

// config is the configuration of the app with what the app adds to it by itself: without
// storages the one called "default", without aliases of either kind "content" of both. An
// entry that is added beside them must not make them vanish, and no alias may lose its
// storage because of what is done to storages.
type config struct{ app object }

// section gives the entries that are configured.
func (c config) section(s Section) object { return group(c.app, string(s)) }

// implicit gives the entries of a section that the app adds.
func (c config) implicit(s Section) object {
	switch {
	case s == Storages && len(c.section(Storages)) == 0:
		var driver object
		if err := decode(mediaapp.DefaultDriver(), &driver); err != nil {
			return nil
		}
		return object{media.DefaultStorage: object{driverGroup: driver}}
	case aliasSections[s] != "" && len(c.section(ImageAliases)) == 0 && len(c.section(FileAliases)) == 0:
		return object{ingest.DefaultAlias: object{}}
	default:
		return nil
	}
}

// all gives the entries of a section, those that the app adds included.
func (c config) all(s Section) object {
	if implicit := c.implicit(s); implicit != nil {
		return implicit
	}
	return c.section(s)
}

// entry gives one; false if there is none.
func (c config) entry(s Section, name string) (entry object, implicit, ok bool) {
	entry, ok = c.all(s)[name].(object)
	return entry, ok && c.implicit(s) != nil, ok
}

// keep writes down what the app adds to a section, and for aliases to both.
func (c config) keep(s Section) {
	implicit := map[Section]object{}
	for _, other := range []Section{Storages, ImageAliases, FileAliases} {
		if other == s || aliasSections[other] != "" && aliasSections[s] != "" {
			implicit[other] = c.implicit(other)
		}
	}
	for other, entries := range implicit {
		if entries != nil {
			c.app[string(other)] = entries
		}
	}
}

// set adds or replaces an entry.
func (c config) set(s Section, name string, entry object) {
	c.change(s, func(entries object) { entries[name] = entry })
}

// remove takes an entry away.
func (c config) remove(s Section, name string) {
	c.change(s, func(entries object) { delete(entries, name) })
}

func (c config) change(s Section, do func(entries object)) {
	before := c.storagesOfAliases()
	c.keep(s)
	entries := c.section(s)
	if entries == nil {
		entries = object{}
	}
	do(entries)
	c.app[string(s)] = entries
	if len(entries) == 0 {
		delete(c.app, string(s))
	}
	if s == Storages {
		c.pin(before)
	}
}

// pin writes into each alias that names no storage the one that it has had, where that
// would be another one now.
func (c config) pin(before map[Use]string) {
	after := c.storagesOfAliases()
	for alias, storage := range before {
		if after[alias] == storage {
			continue
		}
		c.keep(ImageAliases)
		s := sectionOf(alias.Kind)
		if entry, ok := c.section(s)[alias.Alias].(object); ok {
			entry[storageOption] = storage
		}
	}
}

// storagesOfAliases gives the name of the storage of each alias.
func (c config) storagesOfAliases() map[Use]string {
	found := map[Use]string{}
	for s, kind := range aliasSections {
		for name, entry := range c.all(s) {
			alias, _ := entry.(object)
			found[Use{Kind: string(kind), Alias: name}] = c.storageOf(alias)
		}
	}
	return found
}

// storageOf gives the name of the storage of an alias: the one that it names, else the one
// called "default", else the only one; empty if there is no such storage.
func (c config) storageOf(alias object) string {
	if name, _ := alias[storageOption].(string); name != "" {
		return name
	}
	names := slices.Collect(maps.Keys(c.all(Storages)))
	if len(names) == 1 {
		return names[0]
	}
	if slices.Contains(names, media.DefaultStorage) {
		return media.DefaultStorage
	}
	return ""
}

// canonical is the JSON of a value with sorted keys.
func canonical(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was JSON before
	}
	return b
}
