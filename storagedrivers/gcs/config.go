package gcs

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// google is the default address of the service.
const google = "https://storage.googleapis.com"

// Config says which bucket a [Driver] uses and how.
type Config struct {
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

	// Timeout is how long the service may keep silent. 0 is 30 s.
	Timeout time.Duration `json:"-"`

	key string // of the service account, as in its file
}

// complete sets the defaults and reads the key. The error names an invalid option.
func (c *Config) complete() error {
	c.Timeout = cmp.Or(c.Timeout, network.DefaultTimeout)
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
