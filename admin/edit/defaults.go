package edit

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

const storageOption = "storage"

// config is the configuration of the app, with the defaults of [mediaapp.Config.SetDefaults]. A new
// entry must not remove a default one, and a change of a storage must not move an alias to another
// storage.
type config struct{ app object }

// section returns the configured entries.
func (c config) section(s Section) object { return group(c.app, string(s)) }

// implicit returns the default entries of a section that the app adds.
func (c config) implicit(s Section) object {
	app := mediaapp.Config{
		Storages:     named[mediaapp.Storage](c.section(Storages)),
		ImageAliases: named[mediaapp.ImageAlias](c.section(ImageAliases)),
		FileAliases:  named[mediaapp.FileAlias](c.section(FileAliases)),
	}
	implied := app.SetDefaults()
	added := s == Storages && implied.Storage || aliasSections[s] != "" && implied.Aliases
	var defaults object
	if !added || decode(canonical(app), &defaults) != nil {
		return nil
	}
	return group(defaults, string(s))
}

// named returns a map with the same names and nil entries.
func named[T any](entries object) map[string]*T {
	all := map[string]*T{}
	for name := range entries {
		all[name] = nil
	}
	return all
}

// all returns the entries of a section, including the default ones.
func (c config) all(s Section) object {
	if implicit := c.implicit(s); implicit != nil {
		return implicit
	}
	return c.section(s)
}

// entry returns an entry; false if there is none.
func (c config) entry(s Section, name string) (entry object, implicit, ok bool) {
	entry, ok = c.all(s)[name].(object)
	return entry, ok && c.implicit(s) != nil, ok
}

// keep writes the default entries of a section into the configuration. For an alias section it
// writes those of both alias sections.
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

// remove removes an entry.
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

// pin writes the former storage into each alias that names none and whose default storage has
// changed.
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

// storagesOfAliases returns the name of the storage of each alias.
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

// storageOf returns the name of the storage of an alias; empty if it names none and has no default.
func (c config) storageOf(alias object) string {
	name, _ := alias[storageOption].(string)
	if name == "" {
		name, _ = media.StorageOf("", slices.Collect(maps.Keys(c.all(Storages))))
	}
	return name
}

// canonical returns the JSON of a value with sorted keys.
func canonical(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was JSON before
	}
	return b
}
