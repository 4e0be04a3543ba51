package gcs

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/block"
)

func init() { caddy.RegisterModule(GCS{}) }

// GCS keeps objects in a bucket of Google Cloud Storage.
//
// An object appears under its name when all of it has arrived. Two uploads of one name
// never mix, whoever else writes to the bucket. The account needs the permissions
// `storage.objects.create`, `storage.objects.get`, `storage.objects.list` and
// `storage.objects.delete`, which also is what overwriting takes; the role Storage Object
// User has them all.
//
// Placeholders such as `{env.MEDIA_BUCKET}` are expanded in every text.
type GCS struct {
	// The bucket, which must exist. Required.
	Bucket string `json:"bucket,omitempty"`

	// The JSON file with the key of a service account. It is read when the configuration
	// is loaded. Default: Application Default Credentials, which are the file that the
	// environment variable `GOOGLE_APPLICATION_CREDENTIALS` names, the login of the
	// `gcloud` command, or the service account of the machine or container on Google
	// Cloud. Only the key of a service account can sign addresses.
	CredentialsFile string `json:"credentials_file,omitempty"`

	// The address of the service, without a path, where it is a private endpoint or an
	// emulator. One that begins with `http://` is spoken to without credentials, unless
	// there is a `credentials_file`, whose tokens then travel unprotected. Default:
	// `https://storage.googleapis.com`.
	Endpoint string `json:"endpoint,omitempty"`

	// The folder of the bucket below which all objects are kept. Default: none.
	Prefix string `json:"prefix,omitempty"`

	// How long the service may keep silent before an operation is given up. Default:
	// `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty"`

	config Config // expanded
}

// CaddyModule returns the Caddy module information.
func (GCS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.gcs",
		New: func() caddy.Module { return new(GCS) },
	}
}

// Provision expands the placeholders and reads the key of the service account.
func (g *GCS) Provision(caddy.Context) error {
	c := Config{Timeout: g.Timeout()}
	var expand block.Expander
	c.Bucket = expand.Text("bucket", g.Bucket)
	keyFile := expand.Text("credentials_file", g.CredentialsFile)
	c.Endpoint = expand.Text("endpoint", g.Endpoint)
	c.Prefix = expand.Text("prefix", g.Prefix)
	if err := expand.Err(); err != nil {
		return err
	}
	if keyFile != "" {
		key, err := os.ReadFile(keyFile)
		if err != nil {
			return fmt.Errorf("credentials_file: %w", err)
		}
		c.Key = string(key)
	}
	c.Endpoint = strings.TrimSuffix(c.Endpoint, "/")
	c.Prefix = strings.Trim(c.Prefix, "/")
	g.config = c
	return nil
}

// Validate refuses what cannot work.
func (g *GCS) Validate() error {
	c := g.config
	if c.Bucket == "" {
		return errors.New("gcs storage without a bucket")
	}
	if strings.ContainsAny(c.Bucket, ":/") {
		return fmt.Errorf("bucket is a name such as my-media, not %q", c.Bucket)
	}
	if c.Key != "" {
		if _, err := serviceAccount(c.Key, nil); err != nil {
			return fmt.Errorf("credentials_file is not the key of a service account: %w", err)
		}
	}
	if c.Prefix != "" {
		if err := storagedrivers.ValidKey(c.Prefix); err != nil {
			return fmt.Errorf("prefix: %w", err)
		}
	}
	if c.Timeout < 0 {
		return fmt.Errorf("timeout is %s, want more than nothing", c.Timeout)
	}
	return validEndpoint(c.Endpoint)
}

func validEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	address, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	bare := url.URL{Scheme: address.Scheme, Host: address.Host}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" || *address != bare {
		return fmt.Errorf("endpoint is an address such as https://storage.example.com, not %q", endpoint)
	}
	return nil
}

// PoolKey is all of the expanded configuration, and the key itself: a new one in the same
// file is another driver.
func (g *GCS) PoolKey() string { return fmt.Sprintf("gcs %#v", g.config) }

// NewDriver makes the driver; the service is spoken to at its first use.
func (g *GCS) NewDriver(*slog.Logger) (storagedrivers.Driver, error) { return New(g.config) }

// Timeout is how long the service may keep silent.
func (g *GCS) Timeout() time.Duration { return time.Duration(g.SilenceTimeout) }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	gcs [<bucket>] {
//		bucket           <name>
//		credentials_file <path>
//		endpoint         <url>
//		prefix           <path>
//		timeout          <duration>
//	}
func (g *GCS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return block.ParseModule(d, "a gcs storage", "bucket", &g.Bucket, block.Options{
		"credentials_file": block.Text(&g.CredentialsFile),
		"endpoint":         block.Text(&g.Endpoint),
		"prefix":           block.Text(&g.Prefix),
		"timeout":          block.Duration(&g.SilenceTimeout),
	})
}

// Interface guards
var (
	_ caddy.Module          = (*GCS)(nil)
	_ caddy.Provisioner     = (*GCS)(nil)
	_ caddy.Validator       = (*GCS)(nil)
	_ caddyfile.Unmarshaler = (*GCS)(nil)
	_ storagedrivers.Module = (*GCS)(nil)
)
