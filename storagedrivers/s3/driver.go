// Package s3 is the storage driver for Amazon S3 and services that speak its protocol.
package s3

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(S3{}) }

//go:embed driver.go
var comments string

var schema = options.Of[S3](comments)

// S3 keeps objects in a bucket of Amazon S3 or of a service that speaks its protocol.
//
// An object appears under its name when all of it has arrived. Two uploads of one name
// never mix; where the service honours `If-None-Match`, as Amazon's does, it also decides
// which of two servers may create a name.
//
// Placeholders such as `{env.MEDIA_BUCKET}` or `{file./run/secrets/key}` are expanded in
// every text.
type S3 struct {
	// The bucket, which must exist. Required.
	Bucket string `json:"bucket,omitempty" option:"required" example:"my-bucket"`

	// The region of the bucket. Default: what `AWS_REGION` or the AWS profile says, and
	// `us-east-1` where an endpoint is given.
	Region string `json:"region,omitempty" option:"common" example:"eu-central-1"`

	// The address of the service, for one other than Amazon's. Default: Amazon S3.
	Endpoint string `json:"endpoint,omitempty" option:"common,address" example:"https://s3.example.com"`

	// The access key. Default: what the AWS SDK finds by itself in the environment, in
	// the files of the AWS profile, or by asking the machine or container that it runs in.
	AccessKeyID string `json:"access_key_id,omitempty" option:"common" example:"{env.AWS_ACCESS_KEY_ID}"`

	// The secret of the access key, best as a placeholder such as
	// `{env.AWS_SECRET_ACCESS_KEY}`.
	SecretAccessKey string `json:"secret_access_key,omitempty" option:"common,secret" example:"{env.AWS_SECRET_ACCESS_KEY}"`

	// The session token of an access key that is temporary.
	SessionToken string `json:"session_token,omitempty" option:"secret" example:"{env.AWS_SESSION_TOKEN}"`

	// Whether the bucket is named in the path of addresses instead of in the host name.
	// Default: `true` where an endpoint is given, otherwise `false`.
	PathStyle *bool `json:"path_style,omitempty"`

	// The folder of the bucket below which all objects are kept. Default: the whole
	// bucket.
	Prefix string `json:"prefix,omitempty" option:"folder" example:"media"`

	// When to send and to check checksums (CRC32) of objects. Services other than
	// Amazon's may refuse them where they are not required. Default: `when_required`
	// where an endpoint is given, otherwise `when_supported`.
	Checksums string `json:"checksums,omitempty" option:"words=when_supported|when_required"`

	// How long the service may keep silent before an operation is given up. Default: `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded
}

// CaddyModule returns the Caddy module information.
func (S3) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.s3",
		New: func() caddy.Module { return new(S3) },
	}
}

// Schema describes the options.
func (*S3) Schema() *options.Schema { return schema.Documented() }

// Provision expands and checks the options.
func (s *S3) Provision(caddy.Context) error {
	e := *s
	if err := schema.Expand(&e); err != nil {
		return err
	}
	s.config = Config{
		Bucket: e.Bucket, Region: e.Region, Endpoint: e.Endpoint, Prefix: e.Prefix,
		AccessKeyID: e.AccessKeyID, SecretAccessKey: e.SecretAccessKey, SessionToken: e.SessionToken,
		PathStyle: e.Endpoint != "", Checksums: e.Checksums, Timeout: e.Timeout(),
	}
	if e.PathStyle != nil {
		s.config.PathStyle = *e.PathStyle
	}
	return nil
}

// Validate refuses options that do not go together.
func (s *S3) Validate() error {
	c := s.config
	if (c.AccessKeyID == "") != (c.SecretAccessKey == "") {
		return errors.New("access_key_id and secret_access_key go together")
	}
	if c.SessionToken != "" && c.AccessKeyID == "" {
		return errors.New("session_token goes with access_key_id and secret_access_key")
	}
	return nil
}

// PoolKey is all of the expanded configuration.
func (s *S3) PoolKey() string { return fmt.Sprintf("s3 %#v", s.config) }

// NewDriver makes the driver; the service is spoken to at its first use.
func (s *S3) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(s.config, log) }

// Timeout is how long the service may keep silent.
func (s *S3) Timeout() time.Duration { return time.Duration(s.SilenceTimeout) }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	s3 [<bucket>] { ... }
//
// The options are the fields by their JSON names.
func (s *S3) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "an s3 storage", s, nil)
}

// Interface guards
var (
	_ caddy.Module          = (*S3)(nil)
	_ caddy.Provisioner     = (*S3)(nil)
	_ caddy.Validator       = (*S3)(nil)
	_ caddyfile.Unmarshaler = (*S3)(nil)
	_ options.Described     = (*S3)(nil)
	_ storagedrivers.Module = (*S3)(nil)
)
