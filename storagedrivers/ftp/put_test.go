package ftp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// raceToCreate creates one name by uploads of several drivers, like several storages in one process.
func raceToCreate(t *testing.T, config Config) {
	t.Helper()
	const drivers, uploads, rounds = 3, 4, 8
	over := make([]*driver, drivers)
	for i := range over {
		over[i] = open(t, config)
	}
	for round := range rounds {
		key := fmt.Sprintf("race %d/key", round)
		errs := make([]error, drivers*uploads)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				content := strings.Repeat(fmt.Sprint(i%10), 100+i)
				_, errs[i] = over[i%drivers].Put(t.Context(), key, strings.NewReader(content), create)
			})
		}
		wg.Wait()
		winners, size := 0, int64(0)
		for i, err := range errs {
			if err == nil {
				winners++
				size = int64(100 + i)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("creating in a race: %v", err)
			}
		}
		info, err := over[0].Stat(t.Context(), key)
		if winners != 1 || err != nil || info.Size != size {
			t.Errorf("%q has %d winners, the last with %d bytes, stored are %d, error %v", key, winners, size, info.Size, err)
		}
	}
}

// TestRaceOfDrivers: in one process exactly one upload creates a name.
func TestRaceOfDrivers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		raceToCreate(t, f.start(t).config())
	})
}

// TestProFTPDKeepingFiles: AllowOverwrite is off, which is the default.
func TestProFTPDKeepingFiles(t *testing.T) {
	config := configFor(t, servers.ProFTPD(t, servers.FTPSettings{KeepFiles: true}), tlsNone)
	d := open(t, config)
	test.Must(t, d.Check(t.Context()))
	test.Equal(t, d.Features(), (storagedrivers.Features{ListTimes: true, Dated: true}), "features")
	for _, content := range []string{"first", "second", "third"} {
		test.Is(t, put(t, d, "folder/key", content, overwrite), nil)
		holds(t, d, "folder/key", content)
	}
	test.Is(t, put(t, d, "folder/key", "content", create), fs.ErrExist)
}

// TestNothingMayBeRenamed: a server that refuses each rename keeps the old object, and one of the same
// size is not mistaken for the new one.
func TestNothingMayBeRenamed(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"RNFR", "RNTO", "RNFR DELE", "RNTO DELE"} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, f *fake) {
				f.refuse(func(command, _ string) bool { return strings.Contains(refused, command) }, refusal)
				f.start(t)
				d := open(t, f.config())
				f.replace(t, "object", "old")
				_, err := d.Put(t.Context(), "object", strings.NewReader("new"), overwrite)
				test.Is(t, err, fs.ErrPermission)
				holds(t, d, "object", "old")
			})
		})
	}
}

// TestReplacedInSteps: a server does not rename over files, and the connection breaks around the
// removal of the old object. The new one gets its name over another connection, or stays under its
// temporary one.
func TestReplacedInSteps(t *testing.T) {
	t.Parallel()
	third := nth(3, "RNTO")
	for name, tt := range map[string]struct {
		fault func(f *fake)
		want  error
	}{
		"reply to the removal lost": {func(f *fake) { f.lose = nth(2, "DELE") }, nil}, // the first is of the probe
		"rename never came": {func(f *fake) {
			f.before = func(s *session, command, argument string) string {
				if third(command, argument) {
					s.raw.Close()
					return "421 too late"
				}
				return ""
			}
		}, nil},
		"removal refused": {func(f *fake) { f.refuse(nth(2, "DELE"), "550 Permission denied.") }, fs.ErrPermission},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{facts: true, keep: true}
			tt.fault(f)
			f.start(t)
			d := open(t, f.config())
			test.Must(t, d.Check(t.Context()))
			f.replace(t, "key", "old")
			test.Is(t, put(t, d, "key", "content", overwrite), tt.want)
			f.has(t, "key")
			holds(t, d, "key", map[bool]string{true: "content", false: "old"}[tt.want == nil])
		})
	}
}

// TestCrashWhileNaming: a process that dies at any command of an upload keeps no other from the name.
func TestCrashWhileNaming(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"STOR", "MLST", "RNFR", "RNTO"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			f := &fake{facts: true}
			var died atomic.Bool
			var proxy *faults.Proxy
			f.before = func(_ *session, got, _ string) string {
				if got == command && !died.Swap(true) {
					proxy.SetRefusing(true)
				}
				return ""
			}
			f.start(t)
			proxy = faults.New(t, f.address)
			config := f.config()
			config.Address = proxy.Address
			dead := open(t, config)
			test.Is(t, put(t, dead, "key", "dead", create), storagedrivers.ErrUnavailable)
			err := put(t, open(t, f.config()), "key", "content", create)
			if err != nil && !errors.Is(err, fs.ErrExist) {
				t.Errorf("the name is locked: %v", err)
			}
		})
	}
}

// aged creates an old file or folder.
func (f *fake) aged(t *testing.T, name string, folder bool, age time.Duration) {
	t.Helper()
	file := filepath.Join(f.root, name)
	var err error
	if folder {
		err = os.MkdirAll(file, 0o755)
	} else {
		err = os.WriteFile(file, []byte("x"), 0o600)
	}
	then := time.Now().Add(-age)
	test.Must(t, errors.Join(err, os.Chtimes(file, then, then)))
}
