package guest_test

import (
	_ "embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { modules.RegisterDriver[Config]("shelf", "a shelf storage") }

//go:embed driver_test.go
var comments string

var schema = options.Of[Config](comments)

// Config keeps objects in memory. They are gone with the process.
type Config struct {
	// The name of the shelf. Required.
	Label string `json:"label,omitempty" option:"required" example:"top"`

	// The word that opens the shelf, best as a placeholder such as `{env.SHELF_WORD}`.
	Word string `json:"password,omitempty" option:"secret" example:"{env.SHELF_WORD}"`

	// Whether the shelf refuses every request. Default: `false`.
	Locked bool `json:"locked,omitempty" option:"common"`
}

const locked storagedrivers.Cause = "The shelf is locked. Unlock it."

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// Complete checks the options.
func (c *Config) Complete() error { return schema.Check(c) }

// Describe returns the description of the driver for the panel and the documentation.
func (c *Config) Describe() storagedrivers.Description {
	return storagedrivers.Description{Title: "Shelf in memory", Noun: "shelf", Icon: "disk", Where: c.Label}
}

// Location returns the location of the shelf.
func (c *Config) Location() storagedrivers.Location {
	return storagedrivers.Location{Backend: "shelf:" + c.Label}
}

// NewDriver returns the driver of the shelf.
func (c *Config) NewDriver(*slog.Logger) (storagedrivers.Driver, error) {
	driver := memory.New()
	if c.Label == "lost" {
		driver.Fail = func(string, string) error { return fs.ErrNotExist }
	}
	if c.Locked {
		driver.Fail = func(string, string) error {
			return storagedrivers.WithCause(fmt.Errorf("%w: said %q", fs.ErrPermission, c.Word), locked)
		}
	}
	return driver, nil
}
