package storagedrivers

import (
	"context"
	"log/slog"
	"time"
)

// Description describes a driver in English, for display.
type Description struct {
	// Title is the name of the kind of backend: "Google Cloud Storage".
	Title string
	// Noun is the word for the container of the objects: "bucket", "container", "folder".
	Noun string
	// Local backends are used with the rights of this process. The others need a login.
	Local bool
	// Icon represents the backend: "cloud", "server" or "disk".
	Icon string
	// Rank orders drivers in lists, the greatest first.
	Rank int
	// Where is a short form of the configured backend: "my-bucket/media (eu-central-1)". It
	// contains no secret, and placeholders are not replaced.
	Where string
}

// Config is the configuration of a driver: a pointer to a struct of options. No method connects to
// another host. An unreachable host fails the checks, not the start.
type Config interface {
	// Describe returns the description for display. It works for an incomplete configuration.
	Describe() Description
	// Complete checks the options, sets the defaults and reads the files that the options name. It
	// must be called before the methods below. A second call is no error.
	Complete() error
	// Location returns the location of the objects. It is equal for configurations that differ only
	// in credentials, time-outs and the like, contains no secret, and stays the same across reloads.
	Location() Location
	// NewDriver returns a new driver.
	NewDriver(log *slog.Logger) (Driver, error)
}

// Limits are the limits of a backend.
type Limits struct {
	// Timeout is how long the backend may stay silent. 0 is 30 s.
	Timeout time.Duration
	// Parallel is how many objects the driver can send or receive at the same time. 0 means no
	// limit.
	Parallel int
}

// Limited is a Config with limits. Limits may be called when it is complete.
type Limited interface{ Limits() Limits }

// HostKey is the public key by which a host is recognised.
type HostKey struct {
	// Key is the key as the option of the driver takes it, Fingerprint its SHA-256 hash as tools
	// show it.
	Key         string
	Fingerprint string
}

// HostKeyer is a Config whose host is recognised by a public key in the option `host_key`.
type HostKeyer interface {
	// HostKey connects to the host, without logging in, and returns the key that it presents. Only
	// the address of the host must be set.
	HostKey(ctx context.Context) (HostKey, error)
}
