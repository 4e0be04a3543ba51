package sftp

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// meeting is an object that is sent when all of begin have been asked for.
type meeting struct {
	*strings.Reader
	begin *sync.WaitGroup
	once  sync.Once
}

func (m *meeting) Read(p []byte) (int, error) {
	m.once.Do(func() {
		m.begin.Done()
		m.begin.Wait()
	})
	return m.Reader.Read(p)
}

// TestNamedOnce: of two uploads of one name in this process, the first one stays, also where the host
// has no links.
func TestNamedOnce(t *testing.T) {
	t.Parallel()
	h := newRequestHost(t, servers.RequestFiles{})
	drivers := []*driver{h.driver(t, "."), h.driver(t, ".")}
	for round := range 20 {
		key, errs := fmt.Sprint("key-", round), make([]error, len(drivers))
		var begin, uploads sync.WaitGroup
		begin.Add(len(drivers))
		for i, d := range drivers {
			uploads.Go(func() {
				_, errs[i] = d.Put(t.Context(), key, &meeting{Reader: strings.NewReader(fmt.Sprint(i)), begin: &begin}, create)
			})
		}
		uploads.Wait()
		stored := 0
		if errs[0] != nil {
			stored = 1
		}
		test.Is(t, errs[stored], nil)
		test.Is(t, errs[1-stored], fs.ErrExist)
		has(t, drivers[0], key, []byte(fmt.Sprint(stored)))
	}
}

// TestReplacedInSteps: a host cannot replace a file in one step, and refuses to name the new object
// after the removal of the old one. The new one stays under its temporary name.
func TestReplacedInSteps(t *testing.T) {
	t.Parallel()
	var renames atomic.Int32
	h := newRequestHost(t, servers.RequestFiles{NoPosixRename: true, RefuseTaken: true, Before: func(method, path string) error {
		if method == "Rename" && strings.HasSuffix(path, tempSuffix) && renames.Add(1) > 1 {
			return fs.ErrPermission
		}
		return nil
	}})
	h.force = &abilities{}
	d := h.driver(t, ".")
	test.Is(t, os.WriteFile(filepath.Join(h.folder, "object"), []byte("old"), 0o600), nil)
	_, err := d.Put(t.Context(), "object", strings.NewReader("new"), overwrite)
	if err == nil {
		t.Error("the object has no name, and no error says so")
	}
	names := test.Files(t, h.folder)
	if len(names) != 1 || !strings.HasSuffix(names[0], tempSuffix) {
		t.Fatalf("the host has %q, want the temporary file", names)
	}
	got, err := os.ReadFile(filepath.Join(h.folder, names[0]))
	if err != nil || string(got) != "new" {
		t.Errorf("it holds %q, error %v", got, err)
	}
}
