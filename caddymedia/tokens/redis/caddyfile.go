package redis

import (
	"errors"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	redis [<url>] {
//		addresses         <host:port...>
//		master_name       <name>
//		cluster           [on|off]
//		username          <name>
//		password          <password>
//		sentinel_username <name>
//		sentinel_password <password>
//		db                <number>
//		key_prefix        <text>
//		tls               [on|off]
//		tls_ca_file       <path>
//		tls_server_name   <name>
//		tls_cert_file     <path>
//		tls_key_file      <path>
//		timeout           <duration>
//		pool_size         <number>
//	}
//
// For `addresses` one may write `address`.
func (m *Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		m.URL = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	options := m.caddyfileOptions()
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		if name == "address" {
			name = "addresses"
		}
		set, known := options[name]
		if !known {
			return d.Errf("unrecognized option %q", name)
		}
		if seen[name] {
			return d.Errf("option %q is there twice", name)
		}
		seen[name] = true
		if err := set(d.RemainingArgs()); err != nil {
			return d.Errf("option %q: %v", name, err)
		}
	}
	return nil
}

// text is an option that is a text with placeholders.
type text struct {
	name  string
	value *string
}

func (m *Module) texts() []text {
	return []text{
		{"url", &m.URL},
		{"master_name", &m.MasterName},
		{"username", &m.Username},
		{"password", &m.Password},
		{"sentinel_username", &m.SentinelUsername},
		{"sentinel_password", &m.SentinelPassword},
		{"tls_ca_file", &m.TLSCAFile},
		{"tls_server_name", &m.TLSServerName},
		{"tls_cert_file", &m.TLSCertFile},
		{"tls_key_file", &m.TLSKeyFile},
	}
}

// caddyfileOptions returns, for each option of the block, what takes its arguments.
func (m *Module) caddyfileOptions() map[string]func(args []string) error {
	options := map[string]func([]string) error{
		"key_prefix": one(func(v string) error { m.KeyPrefix = v; return nil }),
		"cluster":    onOff(&m.Cluster),
		"tls":        onOff(&m.TLS),
		"db":         number(&m.DB),
		"pool_size":  number(&m.PoolSize),
		"timeout": one(func(v string) error {
			timeout, err := caddy.ParseDuration(v)
			m.Timeout = caddy.Duration(timeout)
			return err
		}),
		"addresses": func(args []string) error {
			if len(args) == 0 {
				return errors.New("want at least one argument")
			}
			m.Addresses = args
			return nil
		},
	}
	for _, t := range m.texts()[1:] { // the url stands before the block
		options[t.name] = one(func(v string) error { *t.value = v; return nil })
	}
	return options
}

func one(set func(string) error) func([]string) error {
	return func(args []string) error {
		if len(args) != 1 {
			return errors.New("want one argument")
		}
		return set(args[0])
	}
}

func number(to *int) func([]string) error {
	return one(func(v string) (err error) {
		if *to, err = strconv.Atoi(v); err != nil {
			return errors.New("want a number")
		}
		return nil
	})
}

func onOff(to *bool) func([]string) error {
	return func(args []string) error {
		switch {
		case len(args) == 0, len(args) == 1 && args[0] == "on":
			*to = true
		case len(args) == 1 && args[0] == "off":
			*to = false
		default:
			return errors.New("want on or off")
		}
		return nil
	}
}
