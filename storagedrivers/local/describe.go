package local

import (
	"path/filepath"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

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
