package ftp

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// harness returns the harness of a server whose login folder is store on this machine. Every
// subtest has its own folder below it.
func harness(store string, open func(t *testing.T, root string) storagedrivers.Driver) drivertest.Harness {
	var roots sync.Map // test name to folder
	var n atomic.Int64
	root := func(t *testing.T) string {
		t.Helper()
		name, ok := roots.Load(t.Name())
		if !ok {
			t.Fatal("no place was made yet")
		}
		return name.(string)
	}
	return drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			name := fmt.Sprintf("place%d/of test", n.Add(1))
			roots.Store(t.Name(), name)
			return open(t, name)
		},
		Another:   func(t *testing.T) storagedrivers.Driver { return open(t, root(t)) },
		Leftovers: func(t *testing.T) []string { return files(t, filepath.Join(store, root(t))) },
		AbortUpload: func(t *testing.T, key string) {
			t.Helper()
			cutOff(t, open(t, root(t)).(*driver), key)
		},
		Later: func(t *testing.T) storagedrivers.Driver {
			d := open(t, root(t)).(*driver)
			d.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
			return d
		},
	}
}

// files returns the files below a folder. It includes lock folders, because they must not remain.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (!entry.IsDir() || entry.Name()[0] == '.') {
			name, _ := filepath.Rel(folder, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	must(t, err)
	return names
}
