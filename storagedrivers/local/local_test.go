package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
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

func TestComplete(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := &Config{Root: root + "/x/../media/"}
	if err := c.Complete(); err != nil || c.Root != filepath.Join(root, "media") || !*c.Sync {
		t.Errorf("error %v, %+v", err, c)
	}
	if err := new(Config).Complete(); err == nil || err.Error() != "root is missing" {
		t.Errorf("without a root: error %v", err)
	}
}

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	base := filepath.ToSlash(t.TempDir())
	test.Must(t, os.Mkdir(base+"/real", 0o700))
	if err := os.Symlink(base+"/real", base+"/link"); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	test.Must(t, os.WriteFile(base+"/file", nil, 0o600))
	drivertest.Describe(t, drivertest.Description{
		New:     newConfig,
		Missing: `{"root": "` + base + `/file"}`,
		Options: `{"root": "` + base + `/real/media"}`,
		Where:   base + "/real/media",
		Same: []string{
			`{"root": "` + base + `/real/media", "sync": false}`,
			`{"root": "` + base + `/real/x/../media/"}`,
			`{"root": "` + base + `/link/media"}`,
		},
		Below: []string{`{"root": "` + base + `/link/media/below/it"}`},
		Apart: []string{`{"root": "` + base + `/real/media2"}`, `{"root": "` + base + `/media"}`},
	})
}

// disk simulates the file system and counts both kinds of syncs.
type disk struct {
	mu     sync.Mutex
	rounds int
	own    int
	fail   error
	takes  time.Duration
}

func (d *disk) share() error {
	d.mu.Lock()
	d.rounds++
	err := d.fail
	d.mu.Unlock()
	time.Sleep(d.takes)
	return err
}

func (d *disk) counted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rounds
}

func (d *disk) syncOwn() error {
	d.mu.Lock()
	d.own++
	d.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return nil
}

func (d *disk) sharer() *sharer { return &sharer{now: time.Now, share: d.share} }

// syncMany calls do n times concurrently and returns the errors.
func syncMany(s *sharer, d *disk, n, failures int) []error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = s.do(d.syncOwn, failures) })
	}
	wg.Wait()
	return errs
}

func TestSharerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		s := d.sharer()
		for range 5 {
			test.Must(t, s.do(d.syncOwn, 0))
		}
		if d.own != 5 || d.rounds != 0 {
			t.Errorf("%d syncs alone and %d rounds, want 5 and none", d.own, d.rounds)
		}
	})
}

// TestSharerMany: of 64 concurrent calls one syncs alone and the others share. None returns with a
// round that had started before the call.
func TestSharerMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{takes: 20 * time.Millisecond}
		s := d.sharer()
		for _, err := range syncMany(s, d, 64, 0) {
			test.Is(t, err, nil)
		}
		if d.own+d.rounds > 4 || d.rounds == 0 {
			t.Errorf("%d syncs alone and %d rounds", d.own, d.rounds)
		}
		go s.do(d.syncOwn, 0)
		go s.do(d.syncOwn, 0)
		time.Sleep(15 * time.Millisecond) // a round is running, the one alone is done
		synctest.Wait()
		begin, rounds := time.Now(), d.counted()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { s.do(d.syncOwn, 0) })
		}
		wg.Wait()
		if took := time.Since(begin); took != 25*time.Millisecond || d.counted() != rounds+1 {
			t.Errorf("two more took %v and %d rounds, want the rest of one round and another one", took, d.counted()-rounds)
		}
	})
}

// TestSharerFails: after a failed round all objects created before fail, even in a later round, and
// none created after it.
func TestSharerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		d := &disk{takes: 20 * time.Millisecond, fail: broken}
		s := d.sharer()
		before := s.failures()
		failed := 0
		for _, err := range syncMany(s, d, 20, before) {
			if errors.Is(err, broken) {
				failed++
			}
		}
		test.Equal(t, failed, 19, "failed")
		d.fail = nil
		lost := 0
		for _, err := range syncMany(s, d, 20, before) {
			if errors.Is(err, errLost) {
				lost++
			}
		}
		test.Equal(t, lost, 19, "of those begun before were called lost")
		for _, err := range syncMany(s, d, 20, s.failures()) {
			test.Is(t, err, nil)
		}
	})
}

// TestSharerSlow: after a slow round every caller syncs alone for some time.
func TestSharerSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{takes: slowRound + time.Millisecond}
		s := d.sharer()
		syncMany(s, d, 10, 0)
		rounds := d.rounds
		syncMany(s, d, 10, 0)
		if rounds == 0 || d.rounds != rounds {
			t.Errorf("%d rounds, then %d more while they are avoided", rounds, d.rounds-rounds)
		}
		time.Sleep(avoidSlow)
		syncMany(s, d, 10, 0)
		if d.rounds == rounds {
			t.Error("no more rounds ever")
		}
	})
}

// TestSharerUnable: without support for shared syncs every caller syncs alone.
func TestSharerUnable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		s := &sharer{now: time.Now}
		syncMany(s, d, 10, 0)
		test.Equal(t, d.own, 10, "synced alone")
	})
}
