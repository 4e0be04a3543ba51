package ftp

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// raceToCreate creates one name by uploads of several drivers, like several processes.
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

func TestLockedRace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		raceToCreate(t, f.start(t).config())
	})
}

func TestLockedRaceProFTPD(t *testing.T) {
	raceToCreate(t, configFor(t, servers.ProFTPD(t, servers.FTPSettings{}), tlsNone))
}

// TestProFTPDKeepingFiles: AllowOverwrite is off, which is the default.
func TestProFTPDKeepingFiles(t *testing.T) {
	config := configFor(t, servers.ProFTPD(t, servers.FTPSettings{KeepFiles: true}), tlsNone)
	d := open(t, config)
	must(t, d.Check(t.Context()))
	if got := d.Features(); got != (storagedrivers.Features{ListTimes: true, Dated: true}) {
		t.Errorf("features %+v, want no other guarantees", got)
	}
	for _, content := range []string{"first", "second", "third"} {
		is(t, put(t, d, "folder/key", content, overwrite), nil)
		holds(t, d, "folder/key", content)
	}
	is(t, put(t, d, "folder/key", "content", create), fs.ErrExist)
	raceToCreate(t, config)
}

func TestLockedRaceVSFTPD(t *testing.T) {
	raceToCreate(t, configFor(t, servers.VSFTPD(t, servers.FTPSettings{TLS: "explicit"}), tlsExplicit))
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
	must(t, errors.Join(err, os.Chtimes(file, then, then)))
}

func TestLockOfADeadProcess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		f.start(t)
		config := f.config()
		config.Timeout = options.Duration(5 * time.Second)
		d := open(t, config)

		f.aged(t, lockPath("stale"), true, staleAfter+2*time.Minute)
		is(t, put(t, d, "stale", "content", create), nil)
		f.has(t, "stale")

		// This lock may still be held.
		f.aged(t, lockPath("held"), true, staleAfter-2*time.Minute)
		is(t, put(t, d, "held", "content", create), storagedrivers.ErrUnavailable)
		is(t, put(t, d, "held", "content", overwrite), nil)
		is(t, put(t, d, "held", "other", create), fs.ErrExist)

		// Another process is breaking this lock.
		f.aged(t, lockPath("broken"), true, time.Hour)
		f.aged(t, lockPath("broken")+breakSuffix, true, 0)
		is(t, put(t, d, "broken", "content", create), storagedrivers.ErrUnavailable)

		config.Lock = new(false)
		is(t, put(t, open(t, config), "broken", "content", create), nil)
	})
}

// TestLeaseIsOver: an upload that was delayed for minutes does not rename any more.
func TestLeaseIsOver(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	d := open(t, f.config())
	start, calls := time.Now(), 0
	d.now = func() time.Time { // when it starts to wait, asks, renames
		calls++
		if calls < 3 {
			return start
		}
		return start.Add(leaseTime + time.Second)
	}
	is(t, put(t, d, "key", "content", create), storagedrivers.ErrUnavailable)
	f.has(t, strings.TrimPrefix(lockPath("/key"), "/")) // by now it could be another's
}

// TestLockInVain: the log warns about a server on which MKD of an existing folder succeeds.
func TestLockInVain(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"refused": false, "made once more": true} {
		f := &fake{facts: true}
		made := map[string]bool{}
		f.before = func(_ *session, command, argument string) string {
			if command != "MKD" || !again || !made[argument] {
				made[argument] = made[argument] || command == "MKD"
				return ""
			}
			return "257 made"
		}
		f.start(t)
		var log bytes.Buffer
		config := f.config()
		config.Connections = 1
		d, err := newDriver(config, slog.New(slog.NewTextHandler(&log, nil)))
		must(t, err)
		if err := d.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if warned := strings.Contains(log.String(), "lock folders do not work"); warned != again {
			t.Errorf("%s: warned: %v\n%s", name, warned, log.String())
		}
		if entries, err := os.ReadDir(f.root); err != nil || len(entries) > 0 {
			t.Errorf("%s: left behind: %v, error %v", name, entries, err)
		}
		is(t, d.Close(), nil)
	}
}
