package edit

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

const storageOption = "storage"

// config is the configuration of the app as the app writes it, so that each option has one spelling.
type config struct {
	app     object
	implied mediaapp.Implied
}

// load returns a configuration from JSON in any spelling. With defaults it has the parts that the app
// adds, because a new entry must not remove a default one.
func load(app object, defaults bool) (config, error) {
	parsed, err := mediaapp.ParseConfig(canonical(app))
	if err != nil {
		return config{}, err
	}
	c := config{app: object{}}
	if defaults {
		c.implied = parsed.SetDefaults()
	}
	return c, decode(canonical(parsed), &c.app)
}

// section returns the entries of a section.
func (c config) section(s Section) object { return group(c.app, string(s)) }

// implicit reports whether the entries of a section are not configured: the app adds them.
func (c config) implicit(s Section) bool {
	return s == Storages && c.implied.Storage || aliasSections[s] != "" && c.implied.Aliases
}

// set adds or replaces an entry. A new storage may change the default storage, so each alias gets
// the name of its storage first.
func (c config) set(s Section, name string, entry object) {
	if s == Storages && c.section(s)[name] == nil {
		for alias, storage := range c.storagesOfAliases() {
			group(c.section(sectionOf(alias.Kind)), alias.Alias)[storageOption] = storage
		}
	}
	if c.section(s) == nil {
		c.app[string(s)] = object{}
	}
	c.section(s)[name] = entry
}

// remove removes an entry.
func (c config) remove(s Section, name string) { delete(c.section(s), name) }

// storagesOfAliases returns the name of the storage of each alias.
func (c config) storagesOfAliases() map[Use]string {
	found := map[Use]string{}
	for s, kind := range aliasSections {
		for name := range c.section(s) {
			storage, _ := group(c.section(s), name)[storageOption].(string)
			if storage == "" { // an error would have kept Caddy from starting
				storage, _ = media.StorageOf("", slices.Collect(maps.Keys(c.section(Storages))))
			}
			found[Use{Kind: string(kind), Alias: name}] = storage
		}
	}
	return found
}

// withIDs returns a changed configuration with the "@id" fields of the old one, by which Caddy's API
// finds objects. The app does not know them.
func withIDs(old, changed object) object {
	all := maps.Clone(changed)
	for key, value := range old {
		if key == "@id" {
			all[key] = value
		} else if inner := group(all, key); inner != nil {
			all[key] = withIDs(group(old, key), inner)
		}
	}
	return all
}

// canonical returns the JSON of a value with sorted keys.
func canonical(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was JSON before
	}
	return b
}
