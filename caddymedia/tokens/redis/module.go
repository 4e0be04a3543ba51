package redis

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"log/slog"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() {
	caddy.RegisterModule(Module{})
}

//go:embed module.go
var comments string

var schema = options.Of[Module](comments)

// Module keeps tokens in Redis (or a server with its protocol), shared by all Caddys with the same
// accounts. It is one server, a master found through Sentinel, or a cluster.
//
// While Redis is unavailable no token can be issued or checked, so nothing can be uploaded. This
// ends when Redis is back. A token may be lost by Redis, because memory ran out or a master died
// before its replica had it. It is then unknown, and callers request a new one.
//
// The Redis user needs the commands GET, SET, DEL and SCAN on keys that begin with `key_prefix`,
// and for a cluster CLUSTER SLOTS and PING too. SCAN is only needed to end all tokens of an
// account. Tickets need EVAL, EVALSHA, HGET, HMGET, HSET, HDEL and PEXPIRE too.
//
// Placeholders such as `{env.X}` and `{file.path}` are allowed in all texts but `key_prefix`. Use
// them for passwords, because this configuration can be read through the admin API.
type Module struct {
	// One server as `redis://[<user>:<password>@]<host>[:<port>][/<db>]`, or `rediss://` for TLS.
	// It replaces `addresses`, `username`, `password` and `db`.
	URL string `json:"url,omitempty" option:"secret" example:"{env.REDIS_URL}"`

	// The server as `<host>:<port>`. With `master_name` the Sentinels, with `cluster` some of the
	// nodes. Default: `127.0.0.1:6379`.
	Addresses []string `json:"addresses,omitempty" example:"redis.example.com:6379"`

	// The name of the master in Sentinel. Then `addresses` are Sentinels.
	MasterName string `json:"master_name,omitempty" example:"mymaster"`

	// Whether the addresses are nodes of a cluster. Default: `false`.
	Cluster bool `json:"cluster,omitempty"`

	// The user. Default: the server's default user.
	Username string `json:"username,omitempty" example:"media"`

	// The user's password. Default: none.
	Password string `json:"password,omitempty" option:"secret" example:"{env.REDIS_PASSWORD}"`

	// The user at the Sentinels, which do not know the one at the servers. Default: none.
	SentinelUsername string `json:"sentinel_username,omitempty" example:"media"`

	// The password at the Sentinels. Default: none.
	SentinelPassword string `json:"sentinel_password,omitempty" option:"secret" example:"{env.SENTINEL_PASSWORD}"`

	// The number of the database. Default: `0`.
	DB int `json:"db,omitempty" example:"0"`

	// The prefix of all keys. Caddys share tokens only if it is the same. Default:
	// `caddymedia:token:`.
	KeyPrefix string `json:"key_prefix,omitempty" example:"caddymedia:token:"`

	// Whether to use TLS, for the Sentinels too. Default: `false`.
	TLS bool `json:"tls,omitempty"`

	// The PEM file with the CA certificates for the server's certificate. It is read when the
	// configuration loads. Default: the CAs of the system.
	TLSCAFile string `json:"tls_ca_file,omitempty" example:"/etc/caddy/redis-ca.pem"`

	// The name that must be in the server's certificate. Default: the host of the address.
	TLSServerName string `json:"tls_server_name,omitempty" example:"redis.example.com"`

	// The PEM file with the client certificate. It is read when the configuration loads. Default:
	// none.
	TLSCertFile string `json:"tls_cert_file,omitempty" example:"/etc/caddy/redis.pem"`

	// The PEM file with the key of that certificate.
	TLSKeyFile string `json:"tls_key_file,omitempty" example:"/etc/caddy/redis.key"`

	// How long to wait for the server. A command is tried twice, so a dead server is detected after
	// twice the time; uploads wait for that. Default: `500ms`.
	Timeout options.Duration `json:"timeout,omitempty" example:"500ms"`

	// The largest number of connections to a server. Default: 10 per CPU.
	PoolSize int `json:"pool_size,omitempty" example:"20"`

	options  *goredis.UniversalOptions
	expanded *Module
	key      string
}

// CaddyModule returns the Caddy module information.
func (Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.tokens.redis",
		New: func() caddy.Module { return new(Module) },
	}
}

// Schema describes the options.
func (*Module) Schema() *options.Schema { return schema.Documented() }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	redis [<url>] { ... }
//
// The options are the fields by their JSON names.
func (m *Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "tokens in redis", m, options.Readers{"db": options.ReadNumber(&m.DB)})
}

// Provision sets up the module. It does not connect.
func (m *Module) Provision(caddy.Context) (err error) {
	if m.expanded, err = m.expand(); err != nil {
		return err
	}
	if err := m.expanded.check(); err != nil {
		return err
	}
	digest := sha256.New()
	if m.options, err = m.expanded.clientOptions(digest); err != nil {
		return err
	}
	m.key, err = m.expanded.poolKey(digest)
	return err
}

// PoolKey implements tokens.StoreModule.
func (m *Module) PoolKey() string { return m.key }

// NewStore implements tokens.StoreModule.
func (m *Module) NewStore(*slog.Logger) (tokens.Store, error) {
	quietClient()
	return &store{
		client:  goredis.NewUniversalClient(m.options),
		prefix:  m.expanded.KeyPrefix,
		timeout: attempts * time.Duration(m.expanded.Timeout),
		now:     time.Now, //nolint:forbidigo // the default clock
	}, nil
}

// quietClient redirects the output of the client library from standard error to Caddy's log. The
// library has one logger for all its users. Its output goes to the debug level, because callers log
// its errors themselves.
var quietClient = sync.OnceFunc(func() { goredis.SetLogger(caddyLog{}) })

type caddyLog struct{}

// Printf implements the library's logger.
func (caddyLog) Printf(_ context.Context, format string, args ...any) {
	caddy.Log().Named("media.tokens.redis").Debug(fmt.Sprintf(format, args...))
}

// Interface guards
var (
	_ caddy.Module          = (*Module)(nil)
	_ caddy.Provisioner     = (*Module)(nil)
	_ caddyfile.Unmarshaler = (*Module)(nil)
	_ options.Described     = (*Module)(nil)
	_ tokens.StoreModule    = (*Module)(nil)
)
