// Package local stores objects as files below one folder, the root. It is not for folders over
// several file systems, or on one without hard links. Begin with [Config] and [New], and then
// local.go, where an object gets its name.
//
// A key is the path of its file. Nothing outside the root can be reached: every access uses
// [os.Root], so that neither ".." nor a symbolic link leads out.
//
// An object is written to an unnamed file (O_TMPFILE, open(2)) that is linked to its name when it
// is complete. If the system or the file system has no such files, and while an object is being
// replaced, the driver uses names in a hidden folder ".media-tmp-*" of the root. A process locks
// its folder (flock(2)), so that the next start can distinguish the leftovers of a killed process
// from the data of a running one.
//
// A growing object has its name from the start. A writer locks the file itself while it appends. An
// item that was committed from it is a second name of the file; a file with several names is never
// appended to.
package local

import (
	_ "embed"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config keeps objects as files in a folder.
//
// An object appears under its name when all of it is on the disk. Two uploads of one name never
// mix, also if several processes use the folder. Symbolic links inside the folder are followed,
// unless they lead out of it.
//
// Placeholders such as `{env.MEDIA_ROOT}` are expanded in every text.
type Config struct {
	// The folder of the objects. It is created at its first use. A relative path starts at the
	// working folder of Caddy. All folders below must be on the same file system. Required.
	Root string `json:"root,omitempty" option:"required" example:"/srv/media"`

	// Whether an upload is written to the disk (file and folder are synced) before it counts as
	// stored. Without it many small files are stored faster, but a power failure can lose or empty
	// files of uploads that were confirmed. Default: `true`.
	Sync *bool `json:"sync,omitempty"`
}

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// NewDriver returns a driver, which uses the folder at its first use.
func (c *Config) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return New(*c, log), nil
}

// Complete checks the options, makes the root absolute and sets the default.
func (c *Config) Complete() (err error) {
	if err := schema.Check(c); err != nil {
		return err
	}
	if c.Sync == nil {
		c.Sync = new(true)
	}
	if c.Root, err = filepath.Abs(c.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	return nil
}

func (c *Config) sync() bool { return c.Sync == nil || *c.Sync }

// Describe returns the title, the noun and the folder.
func (c *Config) Describe() storagedrivers.Description {
	return storagedrivers.Description{
		Title: "Local folder", Noun: "folder", Local: true, Icon: "disk", Rank: 60, Where: c.Root,
	}
}

// Location returns the folder without symbolic links.
func (c *Config) Location() storagedrivers.Location {
	return storagedrivers.Location{Backend: "file:"}.Join(filepath.ToSlash(resolved(c.Root)))
}

// maxResolve bounds following links. On a network file system whose server is down it could take
// for ever, but a configuration must still load.
const maxResolve = time.Second

// resolved returns a path without symbolic links, as far as its folders exist.
func resolved(path string) string {
	found := make(chan string, 1)
	go func() { found <- followLinks(path) }()
	select {
	case real := <-found:
		return real
	case <-time.After(maxResolve):
		return path
	}
}

func followLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(followLinks(parent), filepath.Base(path))
}
