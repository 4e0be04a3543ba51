package guest_test

import (
	_ "embed"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(Shelf{}) }

//go:embed driver_test.go
var comments string

var schema = options.Of[Shelf](comments)

// Shelf keeps objects in memory. They are gone with the process.
type Shelf struct {
	// The name of the shelf. Required.
	Label string `json:"label,omitempty" option:"required" example:"top"`

	// The word that opens the shelf, best as a placeholder such as `{env.SHELF_WORD}`.
	Word string `json:"password,omitempty" option:"secret" example:"{env.SHELF_WORD}"`

	// Whether the shelf refuses every request. Default: `false`.
	Locked bool `json:"locked,omitempty" option:"common"`

	expanded struct{ label, word string }
}

const locked storagedrivers.Cause = "The shelf is locked. Unlock it."

// CaddyModule returns the Caddy module information.
func (Shelf) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "media.storages.shelf", New: func() caddy.Module { return new(Shelf) }}
}

// Schema describes the options.
func (*Shelf) Schema() *options.Schema { return schema.Documented() }

// Describe returns the description of the driver for the panel and the documentation.
func (s *Shelf) Describe() storagedrivers.Description {
	return storagedrivers.Description{Title: "Shelf in memory", Noun: "shelf", Icon: "disk", Where: s.Label}
}

// Provision expands the options.
func (s *Shelf) Provision(caddy.Context) error {
	e := *s
	if err := schema.Expand(&e); err != nil {
		return err
	}
	s.expanded.label, s.expanded.word = e.Label, e.Word
	return nil
}

// PoolKey identifies the settings: all options.
func (s *Shelf) PoolKey() string { return fmt.Sprintf("shelf %q %t", s.expanded, s.Locked) }

// Location returns the location of the shelf.
func (s *Shelf) Location() storagedrivers.Location {
	return storagedrivers.Location{Backend: "shelf:" + s.expanded.label}
}

// Parallel returns a small limit.
func (*Shelf) Parallel() int { return 3 }

// Timeout selects the default.
func (*Shelf) Timeout() time.Duration { return 0 }

// NewDriver returns the driver of the shelf.
func (s *Shelf) NewDriver(*slog.Logger) (storagedrivers.Driver, error) {
	driver := memory.New()
	if s.expanded.label == "lost" {
		driver.Fail = func(string, string) error { return fs.ErrNotExist }
	}
	if s.Locked {
		driver.Fail = func(string, string) error {
			return storagedrivers.WithCause(fmt.Errorf("%w: said %q", fs.ErrPermission, s.expanded.word), locked)
		}
	}
	return driver, nil
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	shelf [<label>] { ... }
func (s *Shelf) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "a shelf storage", s, nil)
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Shelf)(nil)
	_ caddyfile.Unmarshaler = (*Shelf)(nil)
	_ options.Described     = (*Shelf)(nil)
	_ storagedrivers.Module = (*Shelf)(nil)
)
