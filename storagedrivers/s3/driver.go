package s3

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/block"
)

func init() { caddy.RegisterModule(S3{}) }

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
	Bucket string `json:"bucket,omitempty"`

	// The region of the bucket. Default: what `AWS_REGION` or the AWS profile says, and
	// `us-east-1` where an endpoint is given.
	Region string `json:"region,omitempty"`

	// The address of the service, such as `https://s3.example.com`. Default: Amazon S3.
	Endpoint string `json:"endpoint,omitempty"`

	// The access key. Default: what the AWS SDK finds by itself in the environment, in
	// the files of the AWS profile, or by asking the machine or container that it runs in.
	AccessKeyID string `json:"access_key_id,omitempty"`

	// The secret of the access key; better a placeholder than the secret itself.
	SecretAccessKey string `json:"secret_access_key,omitempty"`

	// The session token of an access key that is temporary.
	SessionToken string `json:"session_token,omitempty"`

	// Whether the bucket is named in the path of addresses instead of in the host name.
	// Default: `true` where an endpoint is given, otherwise `false`.
	PathStyle *bool `json:"path_style,omitempty"`

	// The folder of the bucket below which all objects are kept. Default: none.
	Prefix string `json:"prefix,omitempty"`

	// When to send and to check checksums (CRC32) of objects: `when_supported` or
	// `when_required`. Services other than Amazon's may refuse the former. Default:
	// `when_required` where an endpoint is given, otherwise `when_supported`.
	Checksums string `json:"checksums,omitempty"`

	// How long the service may keep silent before an operation is given up and tried
	// again. Default: `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty"`

	config Config // expanded
}

// CaddyModule returns the Caddy module information.
func (S3) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.s3",
		New: func() caddy.Module { return new(S3) },
	}
}

// Provision expands the placeholders.
func (s *S3) Provision(caddy.Context) error {
	c := Config{Timeout: s.Timeout()}
	var expand block.Expander
	c.Bucket = expand.Text("bucket", s.Bucket)
	c.Region = expand.Text("region", s.Region)
	c.Endpoint = expand.Text("endpoint", s.Endpoint)
	c.AccessKeyID = expand.Text("access_key_id", s.AccessKeyID)
	c.SecretAccessKey = expand.Text("secret_access_key", s.SecretAccessKey)
	c.SessionToken = expand.Text("session_token", s.SessionToken)
	c.Prefix = expand.Text("prefix", s.Prefix)
	c.Checksums = expand.Text("checksums", s.Checksums)
	if err := expand.Err(); err != nil {
		return err
	}
	c.Prefix = strings.Trim(c.Prefix, "/")
	c.PathStyle = c.Endpoint != ""
	if s.PathStyle != nil {
		c.PathStyle = *s.PathStyle
	}
	s.config = c
	return nil
}

// Validate refuses what cannot work.
func (s *S3) Validate() error {
	c := s.config
	if c.Bucket == "" {
		return errors.New("s3 storage without a bucket")
	}
	if (c.AccessKeyID == "") != (c.SecretAccessKey == "") {
		return errors.New("access_key_id and secret_access_key go together")
	}
	if c.SessionToken != "" && c.AccessKeyID == "" {
		return errors.New("session_token goes with access_key_id and secret_access_key")
	}
	if c.Prefix != "" {
		if err := storagedrivers.ValidKey(c.Prefix); err != nil {
			return fmt.Errorf("prefix: %w", err)
		}
	}
	if c.Checksums != "" && !slices.Contains(checksumWords, c.Checksums) {
		return fmt.Errorf("checksums is one of %s, not %q", strings.Join(checksumWords, ", "), c.Checksums)
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
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("endpoint is an address such as https://s3.example.com, not %q", endpoint)
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
//	s3 [<bucket>] {
//		bucket            <name>
//		region            <region>
//		endpoint          <url>
//		access_key_id     <id>
//		secret_access_key <secret>
//		session_token     <token>
//		path_style        on|off
//		prefix            <path>
//		checksums         when_supported|when_required
//		timeout           <duration>
//	}
func (s *S3) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return block.ParseModule(d, "an s3 storage", "bucket", &s.Bucket, block.Options{
		"region":            block.Text(&s.Region),
		"endpoint":          block.Text(&s.Endpoint),
		"access_key_id":     block.Text(&s.AccessKeyID),
		"secret_access_key": block.Text(&s.SecretAccessKey),
		"session_token":     block.Text(&s.SessionToken),
		"path_style":        block.OnOff(&s.PathStyle),
		"prefix":            block.Text(&s.Prefix),
		"checksums":         block.Text(&s.Checksums),
		"timeout":           block.Duration(&s.SilenceTimeout),
	})
}

// Interface guards
var (
	_ caddy.Module          = (*S3)(nil)
	_ caddy.Provisioner     = (*S3)(nil)
	_ caddy.Validator       = (*S3)(nil)
	_ caddyfile.Unmarshaler = (*S3)(nil)
	_ storagedrivers.Module = (*S3)(nil)
)
