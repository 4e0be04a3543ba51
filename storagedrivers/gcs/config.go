// Package gcs is the storage driver for Google Cloud Storage. It neither repeats operations nor
// compares sizes, which is done by [storagedrivers.Storage] for all drivers. Begin with [Config],
// and then put.go; it is the shortest driver of a real service.
package gcs

import (
	"cmp"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

// google is the default address of the service.
const google = "https://storage.googleapis.com"

// Config keeps objects in a bucket of Google Cloud Storage.
//
// An object appears under its name when it is complete. Two uploads of one name never mix, also
// with other writers to the bucket. The account needs the permissions `storage.objects.create`,
// `storage.objects.get`, `storage.objects.list` and `storage.objects.delete`. Replacing an object
// needs the last one too. The role Storage Object User has them all.
//
// Placeholders such as `{env.MEDIA_BUCKET}` are expanded in every text.
type Config struct {
	// The bucket. It must exist. Required.
	Bucket string `json:"bucket,omitempty" option:"required" example:"my-bucket"`

	// The JSON file with the key of a service account. It is read when the configuration is
	// loaded. Only such a key can sign addresses. Default: the Application Default Credentials,
	// which are the file in the environment variable `GOOGLE_APPLICATION_CREDENTIALS`, the login
	// of the `gcloud` command, or the service account of the machine or container on Google Cloud.
	CredentialsFile string `json:"credentials_file,omitempty" option:"common" example:"/etc/caddy/media-gcs.json"`

	// The address of a private endpoint or an emulator, without a path. Over `http://` no
	// credentials are sent, unless a `credentials_file` is set. Its tokens are then unprotected.
	// Default: `https://storage.googleapis.com`.
	Endpoint string `json:"endpoint,omitempty" option:"common,address" example:"https://storage.example.com"`

	// The folder of the objects in the bucket. Default: the whole bucket.
	Prefix string `json:"prefix,omitempty" option:"folder" example:"media"`

	// How long to wait for a service that does not respond. Default: `30s`.
	Timeout options.Duration `json:"timeout,omitempty" example:"30s"`

	key string // of the service account, as in its file
}

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// NewDriver returns a driver, without using the network.
func (c *Config) NewDriver(*slog.Logger) (storagedrivers.Driver, error) { return newDriver(*c) }

// Complete checks the options, sets the defaults and reads the key. The error names an invalid
// option.
func (c *Config) Complete() error {
	if err := schema.Check(c); err != nil {
		return err
	}
	c.Timeout = cmp.Or(c.Timeout, options.Duration(network.DefaultTimeout))
	c.Endpoint = cmp.Or(c.Endpoint, google)
	if c.CredentialsFile != "" && c.key == "" {
		key, err := os.ReadFile(c.CredentialsFile)
		if err != nil {
			return fmt.Errorf("credentials_file: %w", err)
		}
		c.key = string(key)
	}
	if strings.ContainsAny(c.Bucket, ":/") {
		return fmt.Errorf("bucket is a name such as my-media, not %q", c.Bucket)
	}
	if c.key != "" {
		if _, err := serviceAccount(c.key, nil); err != nil {
			return fmt.Errorf("credentials_file is not the key of a service account: %w", err)
		}
	}
	if _, address, _ := strings.Cut(c.Endpoint, "://"); strings.Contains(address, "/") {
		return fmt.Errorf("endpoint is an address without a path, not %q", c.Endpoint)
	}
	return nil
}

// Describe returns the title, the noun and the bucket.
func (c *Config) Describe() storagedrivers.Description {
	where := path.Join(c.Bucket, c.Prefix)
	if c.Endpoint != "" {
		where += " at " + network.WithoutScheme(c.Endpoint)
	}
	return storagedrivers.Description{Title: "Google Cloud Storage", Noun: "bucket", Icon: "cloud", Rank: 30, Where: where}
}

// Location returns the bucket and the prefix. The name of a bucket is unique at Google, whatever
// the host.
func (c *Config) Location() storagedrivers.Location {
	host := network.ServiceHost(c.Endpoint)
	if host == "" || strings.HasSuffix(host, ".googleapis.com") {
		host = network.ServiceHost(google)
	}
	return storagedrivers.Location{Backend: "gs://" + host + "/" + c.Bucket}.Join(c.Prefix)
}

// Limits returns the time-out.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: time.Duration(c.Timeout)}
}
