package redis

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/block"
)

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	redis [<url>] {
//		addresses         <host:port...>
//		master_name       <name>
//		cluster           on|off
//		username          <name>
//		password          <password>
//		sentinel_username <name>
//		sentinel_password <password>
//		db                <number>
//		key_prefix        <text>
//		tls               on|off
//		tls_ca_file       <path>
//		tls_server_name   <name>
//		tls_cert_file     <path>
//		tls_key_file      <path>
//		timeout           <duration>
//		pool_size         <number>
//	}
func (m *Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		m.URL = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	options := block.Options{
		"addresses":  block.Texts(&m.Addresses),
		"cluster":    block.Switch(&m.Cluster),
		"db":         block.Number(&m.DB),
		"key_prefix": block.Text(&m.KeyPrefix),
		"tls":        block.Switch(&m.TLS),
		"timeout":    block.Duration(&m.Timeout),
		"pool_size":  block.Count(&m.PoolSize),
	}
	for _, t := range m.texts()[1:] { // the url stands before the block
		options[t.name] = block.Text(t.value)
	}
	return block.Parse(d, "tokens in redis", options)
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
