package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

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

// cutOff does what the end of a process does to an upload: no file has its name yet, and the
// lock of the scratch folder goes with its handle.
func (p *places) cutOff(t *testing.T, _ string) {
	d := p.driver(p.root(t))
	d.named = true
	begun, err := d.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = begun.Write(make([]byte, 10<<20))
	file := begun.(*staged).file
	if err := errors.Join(err, file.Close(), d.die()); err != nil {
		t.Fatal(err)
	}
}

func (p *places) later(t *testing.T) storagedrivers.Driver {
	d := p.driver(p.root(t))
	d.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	return d
}

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
		"unnamed files": func(root string) *Driver { return New(Config{Root: root}, slog.New(slog.DiscardHandler)) },
		"named files, unsynced": func(root string) *Driver {
			d := New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler))
			d.named = true
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &places{driver: driver}
			drivertest.Run(t, drivertest.Harness{
				New: p.first, Another: p.another, Leftovers: p.files, AbortUpload: p.cutOff, Later: p.later,
				Kill: func(_ *testing.T, d storagedrivers.Driver) { d.(*Driver).die() },
			})
		})
	}
}
