package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Config keeps tokens in Redis (or a server with its protocol), shared by all Caddys with the same
// accounts. It is one server, a master found through Sentinel, or a cluster.
//
// While Redis is unavailable no token can be issued or checked, so nothing can be uploaded. This
// ends when Redis is back. A token may be lost by Redis, because memory ran out or a master died
// before its replica had it. It is then unknown, and callers request a new one.
//
// The Redis user needs the commands GET, SET, DEL, EVAL, EVALSHA, ZADD, ZRANGE, ZREM,
// ZREMRANGEBYSCORE, PTTL and PEXPIRE on keys that begin with `key_prefix`, and for a cluster
// CLUSTER SLOTS and PING too.
//
// Placeholders such as `{env.X}` and `{file.path}` are allowed in all texts but `key_prefix`. Use
// them for passwords, because this configuration can be read through the admin API.
type Config struct {
	// One server as `redis://[<user>:<password>@]<host>[:<port>][/<db>]`, or `rediss://` for TLS. It
	// replaces `addresses`, `username`, `password` and `db`.
	URL string `json:"url,omitempty" option:"secret" example:"{env.REDIS_URL}"`

	// The server as `<host>:<port>`. With `master_name` the Sentinels, with `cluster` some of the
	// nodes. Default: `127.0.0.1:6379`.
	Addresses []string `json:"addresses,omitempty" example:"redis.example.com:6379"`

	// The name of the master in Sentinel. `addresses` are then the Sentinels.
	MasterName string `json:"master_name,omitempty" example:"mymaster"`

	// Whether the addresses are nodes of a cluster. Default: `false`.
	Cluster bool `json:"cluster,omitempty"`

	// The user. Default: the server's default user.
	Username string `json:"username,omitempty" example:"media"`

	// The user's password. Default: none.
	Password string `json:"password,omitempty" option:"secret" example:"{env.REDIS_PASSWORD}"`

	// The user at the Sentinels, which do not know the users of the servers. Default: none.
	SentinelUsername string `json:"sentinel_username,omitempty" example:"media"`

	// The password at the Sentinels. Default: none.
	SentinelPassword string `json:"sentinel_password,omitempty" option:"secret" example:"{env.SENTINEL_PASSWORD}"`

	// The number of the database. Default: `0`.
	DB int `json:"db,omitempty" option:"zero" example:"0"`

	// The prefix of all keys. Caddys share tokens only if it is the same. Default:
	// `caddymedia:token:`.
	KeyPrefix string `json:"key_prefix,omitempty" option:"verbatim" example:"caddymedia:token:"`

	// Whether to use TLS, for the Sentinels too. Default: `false`.
	TLS bool `json:"tls,omitempty"`

	// The PEM file with the CA certificates for the server's certificate. It is read when the
	// configuration is loaded. Default: the CAs of the system.
	TLSCAFile string `json:"tls_ca_file,omitempty" example:"/etc/caddy/redis-ca.pem"`

	// The name in the server's certificate. Default: the host of the address.
	TLSServerName string `json:"tls_server_name,omitempty" example:"redis.example.com"`

	// The PEM file with the client certificate. It is read when the configuration is loaded.
	// Default: none.
	TLSCertFile string `json:"tls_cert_file,omitempty" example:"/etc/caddy/redis.pem"`

	// The PEM file with the key of the client certificate.
	TLSKeyFile string `json:"tls_key_file,omitempty" example:"/etc/caddy/redis.key"`

	// How long to wait for the server. A command is tried twice, so a dead server is detected after
	// twice the time; uploads wait for that. Default: `500ms`.
	Timeout options.Duration `json:"timeout,omitempty" example:"500ms"`

	// The largest number of connections to a server. Default: 10 per CPU.
	PoolSize int `json:"pool_size,omitempty" example:"20"`

	// The content of the files, so that changed content leads to another client.
	ca, cert, key string
}

const (
	defaultAddress   = "127.0.0.1:6379"
	defaultKeyPrefix = "caddymedia:token:"
	defaultTimeout   = 500 * time.Millisecond
	// attempts is how often a command is tried. The second attempt is for a connection that died
	// while idle.
	attempts = 2
)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// Complete splits the URL, sets the defaults, checks the options and reads the certificates.
func (c *Config) Complete(string) error {
	if err := schema.Check(c); err != nil {
		return err
	}
	if err := c.useURL(); err != nil {
		return err
	}
	if len(c.Addresses) == 0 {
		c.Addresses = []string{defaultAddress}
	}
	c.KeyPrefix = cmp.Or(c.KeyPrefix, defaultKeyPrefix)
	c.Timeout = cmp.Or(c.Timeout, options.Duration(defaultTimeout))
	if err := c.check(); err != nil {
		return err
	}
	if err := c.readFiles(); err != nil {
		return err
	}
	_, err := c.clientOptions()
	return err
}

// NewStore returns the store, which connects at its first use.
func (c *Config) NewStore(log *slog.Logger) (tokens.Store, error) {
	opts, err := c.clientOptions()
	if err != nil {
		return nil, err
	}
	clientLog.Store(log)
	return &store{
		client:  goredis.NewUniversalClient(opts),
		prefix:  c.KeyPrefix,
		timeout: attempts * time.Duration(c.Timeout),
		now:     time.Now, //nolint:forbidigo // the default clock
	}, nil
}

// clientLog is the log of the latest store. The client library has one logger for all its users,
// which writes to standard error by default.
var clientLog atomic.Pointer[slog.Logger]

func init() { goredis.SetLogger(quietLog{}) }

type quietLog struct{}

// Printf writes to the debug level, because callers log the errors of the library themselves.
func (quietLog) Printf(ctx context.Context, format string, args ...any) {
	if log := clientLog.Load(); log != nil {
		log.DebugContext(ctx, "client of redis", "message", fmt.Sprintf(format, args...))
	}
}

// useURL moves the settings from the URL to their fields. Its errors do not show it, because it may
// hold a password.
func (c *Config) useURL() error {
	if c.URL == "" {
		return nil
	}
	if len(c.Addresses) > 0 || c.Username != "" || c.Password != "" || c.DB != 0 {
		return errors.New("a url excludes addresses, username, password and db")
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.RawQuery != "" || !strings.HasPrefix(u.Scheme, "redis") {
		return errors.New("url: want redis[s]://[<user>:<password>@]<host>[:<port>][/<db>] without anything after it")
	}
	opts, err := goredis.ParseURL(c.URL)
	if err != nil || opts.DB < 0 {
		return errors.New("url: not understood: the scheme is redis or rediss, and only a number may follow the host")
	}
	c.Addresses, c.Username, c.Password, c.DB = []string{opts.Addr}, opts.Username, opts.Password, opts.DB
	c.TLS = c.TLS || opts.TLSConfig != nil
	c.URL = ""
	return nil
}

// check returns an error for inconsistent expanded settings.
func (c *Config) check() error {
	for _, address := range c.Addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("addresses: %q is not <host>:<port>", address)
		}
	}
	switch {
	case c.Cluster && c.MasterName != "":
		return errors.New("cluster and master_name exclude each other")
	case len(c.Addresses) > 1 && !c.Cluster && c.MasterName == "":
		return errors.New("several addresses need either cluster or master_name (Sentinel)")
	case c.Cluster && c.DB != 0:
		return errors.New("db: a cluster has database 0 only")
	case c.MasterName == "" && c.SentinelUsername+c.SentinelPassword != "":
		return errors.New("sentinel_username and sentinel_password need master_name")
	case !c.TLS && c.TLSCAFile+c.TLSServerName+c.TLSCertFile+c.TLSKeyFile != "":
		return errors.New("the options that begin with tls_ need tls")
	case (c.TLSCertFile == "") != (c.TLSKeyFile == ""):
		return errors.New("tls_cert_file and tls_key_file need each other")
	}
	return nil
}

// clientOptions returns the options of the client.
func (c *Config) clientOptions() (*goredis.UniversalOptions, error) {
	timeout := time.Duration(c.Timeout)
	opts := &goredis.UniversalOptions{
		Addrs:            c.Addresses,
		MasterName:       c.MasterName,
		IsClusterMode:    c.Cluster,
		Username:         c.Username,
		Password:         c.Password,
		SentinelUsername: c.SentinelUsername,
		SentinelPassword: c.SentinelPassword,
		DB:               c.DB,
		PoolSize:         c.PoolSize,

		DialTimeout:           timeout,
		ReadTimeout:           timeout,
		WriteTimeout:          timeout,
		PoolTimeout:           timeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            attempts - 1,
		MaxRetryBackoff:       timeout / 10,
		DialerRetries:         1,

		// Commands of the client that an ACL may forbid.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if c.TLS {
		var err error
		if opts.TLSConfig, err = c.tlsConfig(); err != nil {
			return nil, err
		}
	}
	return opts, nil
}
