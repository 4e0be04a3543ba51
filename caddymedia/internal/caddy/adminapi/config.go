package adminapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// config is the configuration of the app as the app writes it, so that each option has one
// spelling.
type config struct {
	*plugin.Config
	app     object // the JSON of Config, in which entries are changed
	implied plugin.Implied
}

// loadConfig returns a configuration from JSON in any spelling. With defaults it has the parts that
// the app adds, because a new entry must not remove a default one.
func loadConfig(app object, defaults bool) (config, error) {
	parsed, err := plugin.ParseConfig(canonical(app))
	if err != nil {
		return config{}, err
	}
	c := config{Config: parsed, app: object{}}
	if defaults {
		c.implied = parsed.SetDefaults()
	}
	return c, decode(canonical(parsed), &c.app)
}

// section returns the entries of a section.
func (c config) section(s section) object { return group(c.app, string(s)) }

// set adds or replaces an entry. A new storage may change the default storage, so each alias gets
// the name of its storage first.
func (c config) set(s section, name string, entry object) {
	if s == storages && c.section(s)[name] == nil {
		for _, alias := range c.aliases() {
			alias.Storage = c.storageOf(alias)
		}
		_ = decode(canonical(c.Config), &c.app) // it was JSON before
	}
	if c.section(s) == nil {
		c.app[string(s)] = object{}
	}
	c.section(s)[name] = entry
}

// view returns an entry without its secrets, or nil if there is none.
func (c config) view(s section, name string) *shownEntry {
	entry := group(c.section(s), name)
	if entry == nil {
		return nil
	}
	view := &shownEntry{
		Section: s, Name: name, Tag: tagOf(s, name, entry), Secrets: []string{},
		Implicit: s == storages && c.implied.Storage || aliasSections[s] && c.implied.Aliases,
	}
	opts, err := s.options(driverOf(entry))
	if err != nil {
		// Options that are not described may be secrets.
		view.Value = object{driverGroup: object{driverName: driverOf(entry)}}
		return view
	}
	var secrets []string
	view.Value, secrets = shown(opts, entry)
	view.Secrets = append(view.Secrets, secrets...)
	return view
}

// aliases returns the options of all aliases.
func (c config) aliases() map[use]*media.AliasOptions {
	all := map[use]*media.AliasOptions{}
	for name, alias := range c.ImageAliases {
		if alias != nil { // null has no options
			all[use{Kind: string(item.Image), Alias: name}] = &alias.AliasOptions
		}
	}
	for name, alias := range c.FileAliases {
		if alias != nil {
			all[use{Kind: string(item.File), Alias: name}] = &alias.AliasOptions
		}
	}
	return all
}

// storageOf returns the name of the storage of an alias.
func (c config) storageOf(alias *media.AliasOptions) string {
	if alias.Storage != "" { // it may be a placeholder
		return alias.Storage
	}
	name, _ := media.StorageOf("", slices.Collect(maps.Keys(c.Storages))) // an error would have kept Caddy from starting
	return name
}

// withIDs returns a changed configuration with the "@id" fields of the old one, by which Caddy's
// API finds objects. The app does not know them.
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

// use is a part of the configuration that needs an entry: an alias its storage, an account an
// alias, resumable uploads their storage.
type use struct {
	// Kind is the kind of an alias ("img" or "file"), "account" or "resumable".
	Kind   string `json:"kind"`
	Alias  string `json:"alias,omitempty"`
	APIKey string `json:"api_key,omitempty"`
}

const (
	accountUse   = "account"
	resumableUse = "resumable"
)

func (u use) String() string {
	switch u.Kind {
	case accountUse:
		return "the account " + u.APIKey
	case resumableUse:
		return "resumable uploads"
	case string(item.Image):
		return "the image alias " + u.Alias
	default:
		return "the file alias " + u.Alias
	}
}

// uses returns the parts of the configuration that need this entry, sorted.
func (c config) uses(s section, name string) []use {
	var uses []use
	_, image := c.ImageAliases[name]
	_, file := c.FileAliases[name]
	switch {
	case s == storages:
		for use, alias := range c.aliases() {
			if c.storageOf(alias) == name {
				uses = append(uses, use)
			}
		}
	case aliasSections[s] && image != file: // an account may name an alias of the other kind
		for key, account := range c.Accounts {
			if account != nil && slices.Contains(account.Aliases, name) {
				uses = append(uses, use{Kind: accountUse, APIKey: key})
			}
		}
	}
	slices.SortFunc(uses, func(a, b use) int {
		// Image aliases come before file aliases.
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Alias, b.Alias), cmp.Compare(a.APIKey, b.APIKey))
	})
	if s == storages && c.Resumable != nil && c.Resumable.Storage == name {
		uses = append(uses, use{Kind: resumableUse})
	}
	return uses
}

// removable returns an error if an entry must not be removed.
func (c config) removable(s section, name string) error {
	if uses := c.uses(s, name); len(uses) > 0 {
		words := make([]string, len(uses))
		for i, use := range uses {
			words[i] = use.String()
		}
		list := words[len(words)-1]
		if others := words[:len(words)-1]; len(others) > 0 {
			list = strings.Join(others, ", ") + " and " + list
		}
		f := failf(http.StatusConflict, "%s is used by %s", s.title(name), list)
		f.UsedBy = uses
		return f
	}
	if aliasSections[s] && len(c.ImageAliases)+len(c.FileAliases) == 1 {
		return failf(http.StatusConflict,
			"%s is the last alias: add another one first, because without any alias those called %s are added",
			s.title(name), item.DefaultAlias)
	}
	return nil
}

// decode decodes JSON and keeps numbers as they are written.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}
