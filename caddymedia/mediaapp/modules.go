package mediaapp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// parseModule reads a guest module from the current segment: its name and its options. noun is what
// modules of the namespace are.
func parseModule(d *caddyfile.Dispenser, noun, namespace, nameKey string) (json.RawMessage, error) {
	if !d.NextArg() {
		return nil, d.ArgErr()
	}
	name := d.Val()
	if err := checkModule(noun, namespace, name); err != nil {
		return nil, d.WrapErr(err)
	}
	module, err := caddyfile.UnmarshalModule(d, namespace+"."+name)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSONModuleObject(module, nameKey, name, nil), nil
}

// checkGuest is checkModule for the JSON of a guest module. Caddy itself finds all other mistakes of it.
func checkGuest(raw json.RawMessage, noun, namespace, nameKey string) error {
	var guest map[string]any
	_ = json.Unmarshal(raw, &guest)
	if name, ok := guest[nameKey].(string); ok {
		return checkModule(noun, namespace, name)
	}
	return nil
}

// checkModule returns an error with the modules of the namespace unless name is one of them.
func checkModule(noun, namespace, name string) error {
	if _, err := caddy.GetModule(namespace + "." + name); err != nil {
		return fmt.Errorf("unknown %s %q; there are %s", noun, name, modulesOf(namespace))
	}
	return nil
}

// modulesOf returns the names of the modules of a namespace, for an error.
func modulesOf(namespace string) string {
	modules := caddy.GetModules(namespace)
	names := make([]string, len(modules))
	for i, info := range modules {
		names[i] = info.ID.Name()
	}
	return strings.Join(names, ", ")
}
