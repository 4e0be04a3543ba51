package local

import (
	"fmt"
	"path/filepath"
)

// Config says where the objects are.
type Config struct {
	// The folder. It is made when it is first used; a relative one is relative to the
	// folder that Caddy was started in. Everything below must be on one file system.
	// Required.
	Root string `json:"root,omitempty" option:"required" example:"/srv/media"`

	// Whether an upload is on the disk (file and folder synced) before it is called
	// stored. Without it many small files are stored faster, and a power failure loses
	// uploads that were answered as stored, or leaves them empty. Default: `true`.
	Sync *bool `json:"sync,omitempty"`
}

// complete makes the root absolute.
func (c *Config) complete() (err error) {
	if c.Root, err = filepath.Abs(c.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	return nil
}

func (c *Config) sync() bool { return c.Sync == nil || *c.Sync }
