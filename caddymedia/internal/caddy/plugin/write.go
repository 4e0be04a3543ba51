package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Caddyfile returns the JSON of the app as the global option `media`, as it stands among the global
// options of a Caddyfile, in the form of `caddy fmt`. It reads the result again: omitted are the
// paths in the JSON, such as storages/archive/driver, of the values that a Caddyfile cannot
// express.
func Caddyfile(app []byte) (block string, omitted []string, err error) {
	a := new(App)
	if err := strictly(app, a); err != nil {
		return "", nil, fmt.Errorf("reading the configuration: %w", err)
	}
	block = options.Caddyfile(1, a.line())
	again, err := parseBlock(block)
	if err != nil {
		return "", nil, fmt.Errorf("reading the Caddyfile: %w", err)
	}
	return block, Differences("", a.values(), again.values()), nil
}

// strictly decodes JSON as Caddy does: an unknown key is an error.
func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// line returns the global option, without what cannot be written. It is the opposite of
// UnmarshalCaddyfile.
func (a *App) line() options.Line {
	lines := media.Schemas.Settings.Lines(&a.Settings)
	lines = append(lines, moduleLines(a.TokensRaw, "tokens", modules.StoreNamespace, "store")...)
	lines = append(lines, entryLines(a.Accounts, func(key string, account *media.Account) options.Line {
		return media.Schemas.Account.Line(account, "account", key)
	})...)
	lines = append(lines, entryLines(a.Storages, func(name string, s *Storage) options.Line {
		driver := moduleLines(s.DriverRaw, "driver", modules.DriverNamespace, "name")
		if driver == nil {
			return options.Line{}
		}
		return options.Line{Words: []string{"storage", name}, Block: append(driver, media.Schemas.Storage.Lines(&s.Storage)...)}
	})...)
	lines = append(lines, entryLines(a.ImageAliases, func(name string, alias *media.ImageAlias) options.Line {
		return options.Line{Words: []string{"image_alias", name}, Block: media.Schemas.ImageAlias.Lines(alias)}
	})...)
	lines = append(lines, entryLines(a.FileAliases, func(name string, alias *media.FileAlias) options.Line {
		return options.Line{Words: []string{"file_alias", name}, Block: media.Schemas.FileAlias.Lines(alias)}
	})...)
	if a.Limits != nil {
		lines = append(lines, options.Line{Words: []string{"limits"}, Block: media.Schemas.Limits.Lines(a.Limits)})
	}
	if a.Downloads != nil {
		lines = append(lines, options.Line{Words: []string{"downloads"}, Block: media.Schemas.Downloads.Lines(a.Downloads)})
	}
	if a.Resumable != nil {
		lines = append(lines, resumableLine(a.Resumable))
	}
	lines = slices.DeleteFunc(lines, func(line options.Line) bool {
		return len(line.Words) == 0 || strings.Contains(options.Caddyfile(0, line), "{$")
	})
	return options.Line{Words: []string{"media"}, Block: lines}
}

// resumableLine is the opposite of parseResumable. Other options beside "off" cannot be written.
func resumableLine(r *media.Resumable) options.Line {
	if r.Off {
		return options.Line{Words: []string{"resumable", resumableOff}}
	}
	return options.Line{Words: []string{"resumable"}, Block: media.Schemas.Resumable.Lines(r)}
}

// entryLines returns the lines of entries, sorted by name. Caddy does not start with an entry that
// is null.
func entryLines[T any](entries map[string]*T, line func(string, *T) options.Line) []options.Line {
	var lines []options.Line
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if entries[name] != nil {
			lines = append(lines, line(name, entries[name]))
		}
	}
	return lines
}

// moduleLines returns the line of a guest module, none for an invalid one.
func moduleLines(raw json.RawMessage, option, namespace, nameKey string) []options.Line {
	module, _ := guest(raw, namespace, nameKey)
	if written, ok := module.(interface {
		Line(option string) options.Line
	}); ok {
		return []options.Line{written.Line(option)}
	}
	return nil
}

// guest returns a guest module as its JSON sets it up, or nil if that is impossible, and its name.
func guest(raw json.RawMessage, namespace, nameKey string) (module caddy.Module, name string) {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil || json.Unmarshal(values[nameKey], &name) != nil {
		return nil, ""
	}
	delete(values, nameKey)
	info, err := caddy.GetModule(namespace + "." + name)
	if err != nil {
		return nil, name
	}
	module = info.New()
	if strictly(caddyconfig.JSON(values, nil), module) != nil {
		return nil, name
	}
	return module, name
}

// parseBlock reads a global option, as Caddy does.
func parseBlock(block string) (*App, error) {
	blocks, err := caddyfile.Parse("Caddyfile", []byte("{\n"+block+"}\n"))
	if err != nil {
		return nil, err
	}
	app := new(App)
	return app, app.UnmarshalCaddyfile(caddyfile.NewDispenser(blocks[0].Segments[0]))
}

// ParseConfig reads the JSON of the app as Caddy does. In the JSON of the result each option and
// each value has one spelling, those of drivers and the token store included.
func ParseConfig(app []byte) (*Config, error) {
	a := new(App)
	if err := strictly(caddy.RemoveMetaFields(app), a); err != nil {
		return nil, err
	}
	return a.spelt(), nil
}

// values returns the JSON of the app, in which each value is spelt in one way.
func (a *App) values() any {
	var values any
	d := json.NewDecoder(bytes.NewReader(caddyconfig.JSON(a.spelt(), nil)))
	d.UseNumber()
	_ = d.Decode(&values) // it was JSON before
	return values
}

// spelt returns the configuration with its guest modules in their own spelling.
func (a *App) spelt() *Config {
	config := a.Config
	config.TokensRaw = spelt(a.TokensRaw, modules.StoreNamespace, "store")
	config.Storages = map[string]*Storage{}
	for name, s := range a.Storages {
		if s != nil {
			s = &Storage{spelt(s.DriverRaw, modules.DriverNamespace, "name"), s.Storage}
		}
		config.Storages[name] = s
	}
	return &config
}

// spelt returns the JSON of a guest module as the module itself writes it.
func spelt(raw json.RawMessage, namespace, nameKey string) json.RawMessage {
	if module, name := guest(raw, namespace, nameKey); module != nil {
		return caddyconfig.JSONModuleObject(module, nameKey, name, nil)
	}
	return raw
}

// Differences returns the paths at which two values of JSON differ, sorted: "driver/root".
func Differences(path string, a, b any) []string {
	left, isLeft := a.(map[string]any)
	right, isRight := b.(map[string]any)
	if !isLeft || !isRight {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{strings.TrimPrefix(path, "/")}
	}
	all := maps.Clone(left)
	maps.Copy(all, right)
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		paths = append(paths, Differences(path+"/"+name, left[name], right[name])...)
	}
	return paths
}
