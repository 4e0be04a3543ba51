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
	// contains no secret, and placeholders are not replaced. It works for a module that is not
	// provisioned.
	Where string
}

// Module is the configuration of a driver: it describes the backend and creates the driver. No
// method connects to another host. An unreachable host fails the checks, not the start.
type Module interface {
	// Describe returns the description for display.
	Describe() Description
	// PoolKey identifies the backend and all settings. Two modules with equal keys share one
	// Driver, so that connections outlive a reload. It may contain secrets and must never be
	// logged.
	PoolKey() string
	// Location returns the location of the objects. It is equal for modules that differ only in
	// credentials, time-outs and the like, contains no secret, and stays the same across reloads.
	Location() Location
	// Parallel is how many objects the driver can send or receive at the same time. 0 means no
	// limit.
	Parallel() int
	// NewDriver returns a new driver.
	NewDriver(log *slog.Logger) (Driver, error)
	// Timeout is how long the backend may stay silent. 0 is 30 s.
	Timeout() time.Duration
}

// HostKey is the public key by which a host is recognised.
type HostKey struct {
	// Key is the key as the option of the driver takes it, Fingerprint its SHA-256 hash as tools
	// show it.
	Key         string
	Fingerprint string
}

// HostKeyer is a Module whose host is recognised by a public key in the option `host_key`.
type HostKeyer interface {
	// HostKey connects to the host, without logging in, and returns the key that it presents. The
	// module need not be provisioned: only the address of the host must be set.
	HostKey(ctx context.Context) (HostKey, error)
}
