package redis

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net"
	"net/url"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/caddymedia/media/storagedrivers/options"
)

const (
	defaultAddress   = "127.0.0.1:6379"
	defaultKeyPrefix = "caddymedia:token:"
	defaultTimeout   = 500 * time.Millisecond
	// attempts is how often a command is tried. The second attempt is for a connection that died
	// while idle.
	attempts = 2
)

// expand returns a copy of the settings with placeholders replaced, the URL split and defaults
// filled in.
func (m *Module) expand() (*Module, error) {
	e := *m
	e.KeyPrefix = "" // braces in it are hash tags of a cluster, not placeholders
	if err := schema.Expand(&e); err != nil {
		return nil, err
	}
	if err := e.useURL(); err != nil {
		return nil, err
	}
	if len(e.Addresses) == 0 {
		e.Addresses = []string{defaultAddress}
	}
	e.KeyPrefix = cmp.Or(m.KeyPrefix, defaultKeyPrefix)
	e.Timeout = cmp.Or(e.Timeout, options.Duration(defaultTimeout))
	return &e, nil
}

// useURL moves the settings from the URL to their fields. Its errors do not show it, because it may
// hold a password.
func (m *Module) useURL() error {
	if m.URL == "" {
		return nil
	}
	if len(m.Addresses) > 0 || m.Username != "" || m.Password != "" || m.DB != 0 {
		return errors.New("a url excludes addresses, username, password and db")
	}
	u, err := url.Parse(m.URL)
	if err != nil || u.RawQuery != "" || !strings.HasPrefix(u.Scheme, "redis") {
		return errors.New("url: want redis[s]://[<user>:<password>@]<host>[:<port>][/<db>] without anything after it")
	}
	opts, err := goredis.ParseURL(m.URL)
	if err != nil || opts.DB < 0 {
		return errors.New("url: not understood: the scheme is redis or rediss, and only a number may follow the host")
	}
	m.Addresses, m.Username, m.Password, m.DB = []string{opts.Addr}, opts.Username, opts.Password, opts.DB
	m.TLS = m.TLS || opts.TLSConfig != nil
	m.URL = ""
	return nil
}

// check returns an error for inconsistent expanded settings.
func (m *Module) check() error {
	for _, address := range m.Addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("addresses: %q is not <host>:<port>", address)
		}
	}
	switch {
	case m.Cluster && m.MasterName != "":
		return errors.New("cluster and master_name exclude each other")
	case len(m.Addresses) > 1 && !m.Cluster && m.MasterName == "":
		return errors.New("several addresses need either cluster or master_name (Sentinel)")
	case m.Cluster && m.DB != 0:
		return errors.New("db: a cluster has database 0 only")
	case m.MasterName == "" && m.SentinelUsername+m.SentinelPassword != "":
		return errors.New("sentinel_username and sentinel_password need master_name")
	case !m.TLS && m.TLSCAFile+m.TLSServerName+m.TLSCertFile+m.TLSKeyFile != "":
		return errors.New("the options that begin with tls_ need tls")
	case (m.TLSCertFile == "") != (m.TLSKeyFile == ""):
		return errors.New("tls_cert_file and tls_key_file need each other")
	}
	return nil
}

// clientOptions returns the options of the client. It adds the content of files to the digest, so
// that changed content leads to another client.
func (m *Module) clientOptions(digest hash.Hash) (*goredis.UniversalOptions, error) {
	timeout := time.Duration(m.Timeout)
	opts := &goredis.UniversalOptions{
		Addrs:            m.Addresses,
		MasterName:       m.MasterName,
		IsClusterMode:    m.Cluster,
		Username:         m.Username,
		Password:         m.Password,
		SentinelUsername: m.SentinelUsername,
		SentinelPassword: m.SentinelPassword,
		DB:               m.DB,
		PoolSize:         m.PoolSize,

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
	if m.TLS {
		var err error
		if opts.TLSConfig, err = m.tlsConfig(digest); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

// poolKey returns a hash of the settings, because they hold passwords.
func (m *Module) poolKey(digest hash.Hash) (string, error) {
	settings, err := json.Marshal(m) //nolint:gosec // hashed at once
	if err != nil {
		return "", err
	}
	digest.Write(settings)
	return "redis:" + hex.EncodeToString(digest.Sum(nil)[:sha256.Size/2]), nil
}
