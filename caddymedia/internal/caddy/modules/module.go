package modules

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

// module is the common part of drivers and token stores. Its JSON is that of the configuration.
type module[C options.Described] struct {
	// Config has the options as written, with placeholders.
	Config C

	completed C // a copy, expanded and completed

	id     caddy.ModuleID
	what   string // names the module in errors
	create func() C
	copy   func(C) C
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Driver)(nil)
	_ caddyfile.Unmarshaler = (*Driver)(nil)
	_ options.Described     = (*Driver)(nil)
	_ caddy.Provisioner     = (*Store)(nil)
	_ caddyfile.Unmarshaler = (*Store)(nil)
	_ options.Described     = (*Store)(nil)
)

// fresh returns the module with an empty configuration.
func (m *module[C]) fresh() module[C] {
	empty := *m
	empty.Config = m.create()
	return empty
}

// Name returns the name of the module in the configuration: "s3".
func (m *module[C]) Name() string { return m.id.Name() }

// Schema returns the options.
func (m *module[C]) Schema() *options.Schema { return m.Config.Schema() }

// Values returns the options that are set, without secrets.
func (m *module[C]) Values() map[string]any { return m.Schema().Values(m.Config) }

// Secrets returns the values of the secret options.
func (m *module[C]) Secrets() []string { return m.Schema().Secrets(m.Config) }

// Line returns the module as a line of a Caddyfile that begins with option.
func (m *module[C]) Line(option string) options.Line {
	return m.Schema().Line(m.Config, option, m.Name())
}

// MarshalJSON writes the options.
func (m *module[C]) MarshalJSON() ([]byte, error) { return json.Marshal(m.Config) }

// UnmarshalJSON reads the options. An unknown option is an error, after all others have been read.
func (m *module[C]) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(m.Config)
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	<name> [<first option>] { ... }
//
// The options are those of the schema.
func (m *module[C]) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return parseModule(d, m.what, m.Schema(), m.Config, nil)
}

// expand sets the completed configuration to a copy of the written one without placeholders.
func (m *module[C]) expand() error {
	m.completed = m.copy(m.Config)
	return m.Schema().Expand(m.completed, Expander())
}

// PoolKey identifies the backend and all settings, including the content of files that the options
// name. Modules with equal keys may share one driver or store, so that connections outlive a
// reload. The key is a hash, because the settings contain secrets.
func (m *module[C]) PoolKey() string {
	// JSON has the values of pointers, and %#v has unexported fields.
	public, err := json.Marshal(m.completed)
	config := reflect.New(reflect.TypeOf(m.completed).Elem()).Elem()
	config.Set(reflect.ValueOf(m.completed).Elem())
	for _, field := range config.Fields() {
		if field.Kind() == reflect.Pointer && field.CanSet() {
			field.SetZero()
		}
	}
	settings := fmt.Appendf(nil, "%s %v %#v", public, err, config)
	return fmt.Sprintf("%s %x", m.id, sha256.Sum256(settings))
}

// Expander returns an Expander for Caddy's placeholders.
func Expander() *options.Expander {
	replacer := caddy.NewReplacer()
	return options.NewExpander(func(text string) (string, error) { return replacer.ReplaceOrErr(text, true, true) })
}
