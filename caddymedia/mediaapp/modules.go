package mediaapp

import (
	"encoding/json"
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
	if _, err := caddy.GetModule(namespace + "." + name); err != nil {
		return nil, d.Errf("unknown %s %q; there are %s", noun, name, modulesOf(namespace))
	}
	module, err := caddyfile.UnmarshalModule(d, namespace+"."+name)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSONModuleObject(module, nameKey, name, nil), nil
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
