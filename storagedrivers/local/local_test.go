package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// roots contains the folder of each test, which a test may open again.
type roots struct {
	roots  sync.Map // test name to folder
	driver func(root string) *Driver
}

func (p *roots) first(t *testing.T) storagedrivers.Driver {
	root := t.TempDir()
	p.roots.Store(t.Name(), root)
	return p.driver(root)
}

func (p *roots) root(t *testing.T) string {
	root, ok := p.roots.Load(t.Name())
	if !ok {
		t.Fatal("no folder was made yet")
	}
	return root.(string)
}

func (p *roots) another(t *testing.T) storagedrivers.Driver { return p.driver(p.root(t)) }

// cutOff simulates a killed process during an upload: no file has its name yet, and the lock of the
// scratch folder is released with its handle.
func (p *roots) cutOff(t *testing.T, _ string) {
	d := p.driver(p.root(t))
	d.named = true
	begun, err := d.Stage(t.Context())
	test.Must(t, err)
	_, err = begun.Write(make([]byte, 10<<20))
	file := begun.(*staged).file
	test.Must(t, errors.Join(err, file.Close(), d.die()))
}

func (p *roots) later(t *testing.T) storagedrivers.Driver {
	d := p.driver(p.root(t))
	d.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	return d
}

func (p *roots) files(t *testing.T) []string {
	root := p.root(t)
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	test.Must(t, err)
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
		"names of all folders kept": func(root string) *Driver {
			d := New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler))
			d.keepFrom, d.keepNames, d.firstNames = 0, 8, 4
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &roots{driver: driver}
			drivertest.Run(t, drivertest.Harness{
				New: p.first, Another: p.another, Leftovers: p.files, AbortUpload: p.cutOff, Later: p.later,
				Kill: func(_ *testing.T, d storagedrivers.Driver) { d.(*Driver).die() },
			})
		})
	}
}
