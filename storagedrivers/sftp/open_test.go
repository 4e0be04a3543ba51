package sftp

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// replacing is a host that replaces the object once, at a given operation.
type replacing struct {
	*host
	at  atomic.Pointer[string] // the operation; nil is none
	now []byte                 // the content of the object then
}

func newReplacing(t *testing.T, late bool) *replacing {
	t.Helper()
	r := &replacing{}
	r.host = newRequestHost(t, servers.RequestFiles{Late: late, Before: func(method, path string) error {
		at := r.at.Load()
		if path != "/object" || at == nil || method != *at || !r.at.CompareAndSwap(at, nil) {
			return nil
		}
		next := filepath.Join(r.folder, "next")
		return errors.Join(os.WriteFile(next, r.now, 0o600), os.Rename(next, filepath.Join(r.folder, "object")))
	}})
	return r
}

// object stores an object that is older than the next one.
func (r *replacing) object(t *testing.T, content []byte) {
	t.Helper()
	name, before := filepath.Join(r.folder, "object"), time.Now().Add(-time.Hour)
	must(t, os.WriteFile(name, content, 0o600))
	must(t, os.Chtimes(name, before, before))
}

// otherBytes returns bytes that differ from randomBytes at every offset.
func otherBytes(size int) []byte {
	b := randomBytes(size)
	for i := range b {
		b[i] ^= 0xff
	}
	return b
}

// TestReplacedWhileOpened: an object that is replaced while it is opened is read as one generation,
// whether it grows, shrinks or keeps its size, and whatever is known about the host.
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		handles handling
		late    bool
	}{{unknown, false}, {unknown, true}, {shaky, false}, {shaky, true}, {steady, false}} {
		for _, sizes := range [][2]int{{300_000, 1000}, {1000, 300_000}, {2 << 20, 2 << 20}, {2 << 20, 3 << 20}, {3 << 20, 2 << 20}} {
			for _, at := range []string{"Get", "Stat"} {
				r := newReplacing(t, tt.late)
				r.force = &abilities{claimed, true, tt.handles, true}
				d := r.driver(t, ".")
				old, now := randomBytes(sizes[0]), otherBytes(sizes[1])
				r.object(t, old)
				r.now = now
				r.at.Store(&at)
				body, info, err := d.Open(t.Context(), "object", all)
				is(t, err, nil)
				b, err := io.ReadAll(body)
				is(t, err, nil)
				want := now
				if time.Since(info.ModTime) > time.Minute {
					want = old
				}
				if int64(len(b)) != info.Size || !bytes.Equal(b, want) {
					t.Errorf("%+v, replaced at %s: %d bytes with the info of %d, stored at %v", tt, at, len(b), info.Size, info.ModTime)
				}
				is(t, body.Close(), nil)
			}
		}
	}
}

// TestReplacedAfterOpening: if a handle may read another file, reading a replaced large object
// fails, and a small one is read to its end. On other hosts the reader keeps its object.
func TestReplacedAfterOpening(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		handles handling
		size    int
		want    error
	}{
		{unknown, 1000, storagedrivers.ErrChanged},
		{shaky, 1000, nil},
		{shaky, 2 << 20, storagedrivers.ErrChanged},
		{steady, 1000, nil},
		{steady, 2 << 20, nil},
	} {
		r := newReplacing(t, tt.handles != steady)
		r.force = &abilities{claimed, true, tt.handles, true}
		d := r.driver(t, ".")
		old := randomBytes(tt.size)
		r.object(t, old)
		for _, rng := range []storagedrivers.Range{all, {Offset: 100, Length: 500}} {
			body, _, err := d.Open(t.Context(), "object", rng)
			is(t, err, nil)
			_, err = d.Put(t.Context(), "object", bytes.NewReader(otherBytes(tt.size)), overwrite)
			is(t, err, nil)
			want, whole := old, rng == all
			if !whole {
				want = old[rng.Offset : rng.Offset+rng.Length]
			}
			b, err := io.ReadAll(body)
			if small := tt.handles == shaky && !whole; small { // the range is, though the object is not
				is(t, err, nil)
			} else {
				is(t, err, tt.want)
			}
			if err == nil && !bytes.Equal(b, want) || err != nil && len(b) > 0 {
				t.Errorf("handles %d, %d bytes: read %d, error %v", tt.handles, tt.size, len(b), err)
			}
			is(t, body.Close(), nil)
			r.object(t, old)
		}
	}
}

// TestReplacementIsYounger: a replacement is younger than the replaced object, because hosts count
// whole seconds. An object that must not be older than such a one is not.
func TestReplacementIsYounger(t *testing.T) {
	t.Parallel()
	for _, can := range []abilities{{linked, true, exact, true}, {locked, false, steady, true}, {locked, false, shaky, true}} {
		h := newHost(t)
		h.force = &can
		d := h.driver(t, ".")
		var last storagedrivers.Info
		for _, text := range []string{"one", "two", "longer", "six", "ten"} {
			info, err := d.Put(t.Context(), "object", strings.NewReader(text), overwrite)
			is(t, err, nil)
			if !info.ModTime.After(last.ModTime) {
				t.Errorf("%q is of %v, the object before of %v", text, info.ModTime, last.ModTime)
			}
			stat, err := d.Stat(t.Context(), "object")
			if err != nil || stat != info {
				t.Errorf("stat returns %+v, put %+v, error %v", stat, info, err)
			}
			last = info
		}
		opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, NotBefore: last.ModTime}
		for range 2 {
			info, err := d.Put(t.Context(), "beside", strings.NewReader("text"), opts)
			is(t, err, nil)
			if info.ModTime.Before(last.ModTime) {
				t.Errorf("the object beside it is of %v, want %v at least", info.ModTime, last.ModTime)
			}
		}
	}
}

// TestReplacementOfFuture: a time of unknown origin is not passed on to the replacement.
func TestReplacementOfFuture(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "object", []byte("one"), overwrite)
	future := time.Now().AddDate(3, 0, 0)
	is(t, os.Chtimes(filepath.Join(h.folder, "object"), future, future), nil)
	info, err := d.Put(t.Context(), "object", strings.NewReader("two"), overwrite)
	is(t, err, nil)
	if time.Since(info.ModTime).Abs() > time.Minute {
		t.Errorf("the replacement is of %v", info.ModTime)
	}
}

// TestVanishedWhileListing: a folder is listed even if a file vanishes from it meanwhile.
func TestVanishedWhileListing(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	h := newRequestHost(t, servers.RequestFiles{Before: func(method, _ string) error {
		if method == "List" && failures.Add(-1) >= 0 {
			return fs.ErrNotExist
		}
		return nil
	}})
	d := h.driver(t, ".")
	put(t, d, "object", []byte("content"), create)
	failures.Store(3)
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	if err != nil || len(page.Objects) != 1 {
		t.Errorf("listed %d objects, error %v", len(page.Objects), err)
	}
}

// TestFullByItsWords: a full disk is recognised by the host's text.
func TestFullByItsWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"write /home/media/.up-A.part: no space left on device": storagedrivers.ErrNoSpace,
		"Disk quota exceeded":                        storagedrivers.ErrNoSpace,
		"open /home/no space left: is a socket file": nil,
	} {
		h := newRequestHost(t, servers.RequestFiles{Before: func(method, _ string) error {
			if method == "Put" {
				return errors.New(text)
			}
			return nil
		}})
		h.force = &abilities{linked, true, exact, true}
		d := h.driver(t, ".")
		_, err := d.Put(t.Context(), "object", strings.NewReader("content"), create)
		if err == nil || errors.Is(err, storagedrivers.ErrNoSpace) != (want != nil) {
			t.Errorf("%q: error %v, want %v", text, err, want)
		}
	}
}

// TestMissingWhileReplaced: readers wait for an object that is missing while this process replaces
// it.
func TestMissingWhileReplaced(t *testing.T) {
	t.Parallel()
	looked := make(chan struct{}, 100)
	h := newRequestHost(t, servers.RequestFiles{NoPosixRename: true, RefuseTaken: true, Before: func(method, path string) error {
		if method == "Stat" && path == "/object" {
			looked <- struct{}{}
		}
		return nil
	}})
	h.force = &abilities{locked, false, steady, true}
	d := h.driver(t, ".")
	unlock, err := d.naming.Lock(t.Context(), d.path("object"))
	is(t, err, nil)
	opened := make(chan error)
	go func() {
		body, _, err := d.Open(t.Context(), "object", all)
		if err == nil {
			err = body.Close()
		}
		opened <- err
	}()
	<-looked
	is(t, os.WriteFile(filepath.Join(h.folder, "object"), []byte("new"), 0o600), nil)
	unlock()
	is(t, <-opened, nil)
	_, _, err = d.Open(t.Context(), "missing", all)
	is(t, err, fs.ErrNotExist)
}
