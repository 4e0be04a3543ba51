// Package gcs is the storage driver for Google Cloud Storage.
package gcs

import (
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(GCS{}) }

//go:embed driver.go
var comments string

var schema = options.Of[GCS](comments)

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
	Bucket string `json:"bucket,omitempty" option:"required" example:"my-bucket"`

	// The JSON file with the key of a service account, which is read when the
	// configuration is loaded. Only such a key can sign addresses. Default: Application
	// Default Credentials, which are the file that the environment variable
	// `GOOGLE_APPLICATION_CREDENTIALS` names, the login of the `gcloud` command, or the
	// service account of the machine or container on Google Cloud.
	CredentialsFile string `json:"credentials_file,omitempty" option:"common" example:"/etc/caddy/media-gcs.json"`

	// The address of the service, without a path, where it is a private endpoint or an
	// emulator. One that begins with `http://` is spoken to without credentials, unless
	// there is a `credentials_file`, whose tokens then travel unprotected. Default:
	// `https://storage.googleapis.com`.
	Endpoint string `json:"endpoint,omitempty" option:"common,address" example:"https://storage.example.com"`

	// The folder of the bucket below which all objects are kept. Default: the whole
	// bucket.
	Prefix string `json:"prefix,omitempty" option:"folder" example:"media"`

	// How long the service may keep silent before an operation is given up. Default:
	// `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded
}

// CaddyModule returns the Caddy module information.
func (GCS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.gcs",
		New: func() caddy.Module { return new(GCS) },
	}
}

// Schema describes the options.
func (*GCS) Schema() *options.Schema { return schema.Documented() }

// Provision expands and checks the options and reads the key of the service account.
func (g *GCS) Provision(caddy.Context) error {
	e := *g
	if err := schema.Expand(&e); err != nil {
		return err
	}
	c := Config{Bucket: e.Bucket, Endpoint: e.Endpoint, Prefix: e.Prefix, Timeout: e.Timeout()}
	if e.CredentialsFile != "" {
		key, err := os.ReadFile(e.CredentialsFile)
		if err != nil {
			return fmt.Errorf("credentials_file: %w", err)
		}
		c.Key = string(key)
	}
	g.config = c
	return nil
}

// Validate refuses what cannot work.
func (g *GCS) Validate() error {
	c := g.config
	if strings.ContainsAny(c.Bucket, ":/") {
		return fmt.Errorf("bucket is a name such as my-media, not %q", c.Bucket)
	}
	if c.Key != "" {
		if _, err := serviceAccount(c.Key, nil); err != nil {
			return fmt.Errorf("credentials_file is not the key of a service account: %w", err)
		}
	}
	if _, address, _ := strings.Cut(c.Endpoint, "://"); strings.Contains(address, "/") {
		return fmt.Errorf("endpoint is an address without a path, not %q", c.Endpoint)
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
//	gcs [<bucket>] { ... }
//
// The options are the fields by their JSON names.
func (g *GCS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "a gcs storage", g, nil)
}

// Interface guards
var (
	_ caddy.Module          = (*GCS)(nil)
	_ caddy.Provisioner     = (*GCS)(nil)
	_ caddy.Validator       = (*GCS)(nil)
	_ caddyfile.Unmarshaler = (*GCS)(nil)
	_ options.Described     = (*GCS)(nil)
	_ storagedrivers.Module = (*GCS)(nil)
)
