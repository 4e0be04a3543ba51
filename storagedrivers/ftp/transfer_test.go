package ftp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// replace replaces a file like another client.
func (f *fake) replace(t *testing.T, name, content string) {
	t.Helper()
	temp := filepath.Join(f.root, name+".new")
	err := os.WriteFile(temp, []byte(content), 0o600)
	if err == nil {
		err = os.Rename(temp, filepath.Join(f.root, name))
	}
	test.Is(t, err, nil)
}

// replacing makes the server replace "key" at the next command of this name, after it is armed.
func replacing(t *testing.T, f *fake, at string, now func() string) (armed *atomic.Int64) {
	t.Helper()
	armed = &atomic.Int64{}
	f.before = func(_ *session, command, _ string) string {
		if command == at && armed.Load() > 0 && armed.Add(-1) >= 0 {
			f.replace(t, "key", now())
		}
		return ""
	}
	f.start(t)
	return armed
}

// TestReplacedWhileOpened: the object is replaced between the check and the opening. The reader
// gets the new object, also if size and time are equal.
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]string{
		"longer": "the new content", "shorter": "new", "as long": "CONTENT",
	} {
		for _, facts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := &fake{facts: facts}
				armed := replacing(t, f, "RETR", func() string { return now })
				d := open(t, f.config())
				test.Must(t, put(t, d, "key", "content", create))
				armed.Store(1)
				if got, err := read(t, d, "key"); err != nil || got != now {
					t.Errorf("read %q, error %v, want %q", got, err, now)
				}
				holds(t, d, "key", now)
			})
		}
	}
}

// TestReplacedAgainAndAgain: reading fails, instead of returning bytes with the Info of others.
func TestReplacedAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int64{"short": 10, "long": maxWhole + 10} {
		for _, rng := range []storagedrivers.Range{all, {Offset: 1}} {
			t.Run(fmt.Sprint(name, rng), func(t *testing.T) {
				t.Parallel()
				n := atomic.Int64{}
				f := &fake{facts: true}
				armed := replacing(t, f, "RETR", func() string { return strings.Repeat("x", int(size+n.Add(1))) })
				d := open(t, f.config())
				test.Must(t, put(t, d, "key", strings.Repeat("x", int(size)), create))
				armed.Store(1000)
				body, _, err := d.Open(t.Context(), "key", rng)
				if err == nil {
					_, err = io.Copy(io.Discard, body)
					test.Is(t, body.Close(), nil)
				}
				test.Is(t, err, storagedrivers.ErrChanged)
				test.Is(t, err, storagedrivers.ErrUnavailable)
			})
		}
	}
}

// TestReplacedWhileRead: a reader of a short object stays on it. The last piece of a long one is
// withheld.
func TestReplacedWhileRead(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1000, 3 * maxWhole} {
		for i, rng := range []storagedrivers.Range{all, {Offset: 10, Length: int64(size - 20)}} {
			t.Run(fmt.Sprint(size, rng), func(t *testing.T) {
				t.Parallel()
				f := (&fake{facts: true}).start(t)
				d := open(t, f.config())
				old := strings.Repeat("x", size)
				test.Must(t, put(t, d, "key", old, create))
				body, _, err := d.Open(t.Context(), "key", rng)
				test.Must(t, err)
				f.replace(t, "key", strings.Repeat("y", size+i))
				got, err := io.ReadAll(body)
				want := old
				if rng != all {
					want = old[rng.Offset : rng.Offset+rng.Length]
				}
				if size > maxWhole {
					test.Is(t, err, storagedrivers.ErrChanged)
					if len(got) >= len(want) || string(got) != want[:len(got)] {
						t.Errorf("%d bytes look like the whole object", len(got))
					}
				} else if err != nil || string(got) != want {
					t.Errorf("read %d bytes, error %v, want %d of the old object", len(got), err, len(want))
				}
				test.Is(t, body.Close(), nil)
				_, err = d.Stat(t.Context(), "key")
				test.Is(t, err, nil, "stat")
			})
		}
	}
}

// TestPartBesideAnUpload: an upload of this process waits while an object is opened, so that also a
// reader of a part, which sees no end, has bytes and Info of one generation.
func TestPartBesideAnUpload(t *testing.T) {
	t.Parallel()
	var upload sync.WaitGroup
	var once sync.Once
	var another *driver
	armed := atomic.Bool{}
	f := &fake{facts: true}
	f.before = func(_ *session, command, _ string) string {
		if command == "RETR" && armed.Load() {
			once.Do(func() {
				upload.Go(func() { test.Is(t, put(t, another, "key", strings.Repeat("y", 2*maxWhole), overwrite), nil) })
				time.Sleep(200 * time.Millisecond) // more than an upload needs
			})
		}
		return ""
	}
	f.start(t)
	d := open(t, f.config())
	another = open(t, f.config())
	test.Must(t, put(t, d, "key", strings.Repeat("x", 2*maxWhole+1), create))
	armed.Store(true)
	body, info, err := d.Open(t.Context(), "key", storagedrivers.Range{Offset: 1})
	test.Must(t, err)
	part := make([]byte, 1000)
	if _, err := io.ReadFull(body, part); err != nil || part[0] != 'x' || info.Size != 2*maxWhole+1 {
		t.Errorf("read %q with the info of %d bytes, error %v", part[0], info.Size, err)
	}
	test.Is(t, body.Close(), nil)
	upload.Wait()
}

// TestChangedInPlace: if another program writes to the file that is sent, its last piece is
// withheld.
func TestChangedInPlace(t *testing.T) {
	t.Parallel()
	const size = 20 * maxWhole // more than sockets hold
	for name, change := range map[string]int64{"longer": size + 1, "shorter": size - 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := (&fake{facts: true}).start(t)
			d := open(t, f.config())
			test.Must(t, put(t, d, "key", strings.Repeat("x", size), create))
			body, _, err := d.Open(t.Context(), "key", storagedrivers.Range{Offset: 1})
			test.Must(t, err)
			defer body.Close()
			test.Must(t, os.Truncate(filepath.Join(f.root, "key"), change))
			got, err := io.ReadAll(body)
			if len(got) >= size-1 {
				t.Errorf("%d bytes look like the whole object", len(got))
			}
			test.Is(t, err, storagedrivers.ErrChanged)
		})
	}
}

func TestBrokenDownload(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 200_000)
	var cut atomic.Int64
	cut.Store(-1)
	f := &fake{facts: true, cutData: func(command, _ string) int64 {
		if command != "RETR" {
			return -1
		}
		return cut.Load()
	}}
	f.start(t)
	d := open(t, f.config())
	test.Must(t, put(t, d, "key", content, create))
	for _, at := range []int64{0, 1000, int64(len(content)) - 1} {
		cut.Store(at)
		got, err := read(t, d, "key")
		test.Is(t, err, storagedrivers.ErrUnavailable)
		if int64(len(got)) != at || !strings.HasPrefix(content, got) {
			t.Errorf("read %d bytes, want the first %d", len(got), at)
		}
	}
	// All bytes have arrived, but the server reports a failure.
	cut.Store(int64(len(content)))
	got, err := read(t, d, "key")
	test.Is(t, err, storagedrivers.ErrUnavailable)
	if len(got) >= len(content) {
		t.Errorf("%d bytes look like the whole object", len(got))
	}
	cut.Store(-1)
	holds(t, d, "key", content)
}

// TestClosingEarly: the connection can be used again, whatever part was read.
func TestClosingEarly(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 1_000_000)
	f := &fake{facts: true}
	var logins atomic.Int64
	f.before = func(_ *session, command, _ string) string {
		if command == "USER" {
			logins.Add(1)
		}
		return ""
	}
	f.start(t)
	config := f.config()
	config.Connections = 1
	d := open(t, config)
	test.Must(t, put(t, d, "key", content, create))
	for _, length := range []int64{0, 1, 1000, int64(len(content)) - 1, int64(len(content))} {
		for _, rng := range []storagedrivers.Range{all, {Offset: 0, Length: length}} {
			body, _, err := d.Open(t.Context(), "key", rng)
			test.Must(t, err)
			_, err = io.CopyN(io.Discard, body, length)
			test.Is(t, err, nil, "reading", length, "bytes")
			for range 2 {
				test.Is(t, body.Close(), nil)
			}
			_, err = body.Read(make([]byte, 1))
			test.Fails(t, err, "reading succeeded after closing")
			if info, err := d.Stat(t.Context(), "key"); err != nil || info.Size != int64(len(content)) {
				t.Errorf("stat after reading %d bytes: %+v, error %v", length, info, err)
			}
		}
	}
	test.Equal(t, logins.Load(), 1, "connections were made")
}

// TestRudeServer: a server may end TLS data connections without an alert.
func TestRudeServer(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	f := (&fake{tls: secured, rude: true}).start(t)
	d := open(t, f.config())
	test.Must(t, put(t, d, "folder/key", content, create))
	holds(t, d, "folder/key", content)
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	test.Is(t, err, nil)
	test.Equal(t, len(page.Objects), 1, "listed", page.Objects)
}

// raceToCreate creates one name by uploads of several drivers, like several storages in one
// process.
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
	test.Equal(t, d.Features(), (storagedrivers.Features{ListTimes: true, EmptyFolders: true, Dated: true}), "features")
	for _, content := range []string{"first", "second", "third"} {
		test.Is(t, put(t, d, "folder/key", content, overwrite), nil)
		holds(t, d, "folder/key", content)
	}
	test.Is(t, put(t, d, "folder/key", "content", create), fs.ErrExist)
}

// TestNothingMayBeRenamed: a server that refuses each rename keeps the old object, and one of the
// same size is not mistaken for the new one.
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

// TestFolderRemovedMeanwhile: another client removes a folder that is in the way of a key at the
// same time.
func TestFolderRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"MLSD", "RMD"} {
		f := &fake{facts: true}
		f.before = func(_ *session, command, _ string) string {
			if command == at {
				_ = os.RemoveAll(filepath.Join(f.root, "a")) // there is one
			}
			return ""
		}
		d := open(t, f.start(t).config())
		test.Must(t, os.MkdirAll(filepath.Join(f.root, "a", "b"), 0o700))
		test.Must(t, put(t, d, "a", "content", create))
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

// TestCrashWhileNaming: a process that dies at any command of an upload keeps no other from the
// name.
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
