package local

import (
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// places remembers the folder that a test was given, for who opens it again.
type places struct {
	roots  sync.Map // test name to folder
	driver func(root string) *Driver
}

func (p *places) first(t *testing.T) storagedrivers.Driver {
	root := t.TempDir()
	p.roots.Store(t.Name(), root)
	return p.driver(root)
}

func (p *places) root(t *testing.T) string {
	root, ok := p.roots.Load(t.Name())
	if !ok {
		t.Fatal("no folder was made yet")
	}
	return root.(string)
}

func (p *places) another(t *testing.T) storagedrivers.Driver { return p.driver(p.root(t)) }

func (p *places) files(t *testing.T) []string {
	root := p.root(t)
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestConformance(t *testing.T) {
	for name, driver := range map[string]func(root string) *Driver{
		"unnamed files": func(root string) *Driver { return New(root, true, slog.New(slog.DiscardHandler)) },
		"named files, unsynced": func(root string) *Driver {
			d := New(root, false, slog.New(slog.DiscardHandler))
			d.named = true
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &places{driver: driver}
			drivertest.Run(t, drivertest.Harness{New: p.first, Another: p.another, Leftovers: p.files})
		})
	}
}
