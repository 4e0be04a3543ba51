package sftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// replacing is a host that replaces the object once, at a given operation.
type replacing struct {
	*host
	at   atomic.Pointer[string] // the operation; nil is none
	skip atomic.Int32           // how many of them come before
	now  []byte                 // the content of the object then
}

func newReplacing(t *testing.T, late bool) *replacing {
	t.Helper()
	r := &replacing{}
	r.host = newRequestHost(t, servers.RequestFiles{Late: late, Before: func(method, path string) error {
		at := r.at.Load()
		if path != "/object" || at == nil || method != *at || r.skip.Add(-1) >= 0 || !r.at.CompareAndSwap(at, nil) {
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
	test.Must(t, os.WriteFile(name, content, 0o600))
	test.Must(t, os.Chtimes(name, before, before))
}

// otherBytes returns bytes that differ from randomBytes at every offset.
func otherBytes(size int) []byte {
	b := test.Random(size)
	for i := range b {
		b[i] ^= 0xff
	}
	return b
}

// TestReplacedWhileOpened: an object that is replaced while it is opened is read as one generation,
// whether it grows, shrinks or keeps its size, also if the host opens it at the first read.
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for _, sizes := range [][2]int{{300_000, 1000}, {1000, 300_000}, {2 << 20, 2 << 20}, {2 << 20, 3 << 20}, {3 << 20, 2 << 20}} {
			for i, at := range []string{"Get", "Stat", "Stat"} { // the second one is of the handle
				r := newReplacing(t, late)
				r.skip.Store(int32(i / 2))
				d := r.driver(t, ".")
				old, now := test.Random(sizes[0]), otherBytes(sizes[1])
				r.object(t, old)
				r.now = now
				r.at.Store(&at)
				body, info, err := d.Open(t.Context(), "object", all)
				test.Is(t, err, nil)
				b, err := io.ReadAll(body)
				test.Is(t, err, nil)
				want := now
				if time.Since(info.ModTime) > time.Minute {
					want = old
				}
				if int64(len(b)) != info.Size || !bytes.Equal(b, want) {
					t.Errorf("late %t, replaced at %s: %d bytes with the info of %d, stored at %v", late, at, len(b), info.Size, info.ModTime)
				}
				test.Is(t, body.Close(), nil)
			}
		}
	}
}

// TestReplacedAfterOpening: a reader keeps its object. If handles may change to another file,
// reading a replaced object fails at its end.
func TestReplacedAfterOpening(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]*host{
		"exact": newHost(t), "by path": newRequestHost(t, servers.RequestFiles{}),
		"late": newRequestHost(t, servers.RequestFiles{Late: true}),
	} {
		for _, size := range []int{1000, 3 << 20} {
			d := h.driver(t, ".")
			test.Is(t, d.Check(t.Context()), nil)
			for _, rng := range []storagedrivers.Range{all, {Offset: 100, Length: int64(size - 200)}} {
				old := test.Random(size)
				put(t, d, "object", old, overwrite)
				body, _, err := d.Open(t.Context(), "object", rng)
				test.Is(t, err, nil)
				_, err = d.Put(t.Context(), "object", bytes.NewReader(otherBytes(size)), overwrite)
				test.Is(t, err, nil)
				want := old
				if rng != all {
					want = old[rng.Offset : rng.Offset+rng.Length]
				}
				b, err := io.ReadAll(body)
				if name == "exact" {
					test.Is(t, err, nil)
				} else {
					test.Is(t, err, storagedrivers.ErrChanged)
				}
				if err == nil && !bytes.Equal(b, want) || err != nil && (len(b) >= len(want) || !bytes.Equal(b, want[:len(b)])) {
					t.Errorf("%s, %d bytes: read %d, error %v", name, size, len(b), err)
				}
				test.Is(t, body.Close(), nil)
			}
		}
	}
}

// TestReplacementIsYounger: a replacement is younger than the replaced object, because hosts count
// whole seconds. An object that must not be older than such a one is not.
func TestReplacementIsYounger(t *testing.T) {
	t.Parallel()
	for _, can := range []abilities{{true, true, true, true}, {dates: true}} {
		h := newHost(t)
		h.force = &can
		d := h.driver(t, ".")
		var last storagedrivers.Info
		for _, text := range []string{"one", "two", "longer", "six", "ten"} {
			info, err := d.Put(t.Context(), "object", strings.NewReader(text), overwrite)
			test.Is(t, err, nil)
			if !info.ModTime.After(last.ModTime) {
				t.Errorf("%q is of %v, the object before of %v", text, info.ModTime, last.ModTime)
			}
			stat, err := d.Stat(t.Context(), "object")
			test.Is(t, err, nil)
			test.Equal(t, stat, info, "stat returns", "put")
			last = info
		}
		opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, NotBefore: last.ModTime}
		for range 2 {
			info, err := d.Put(t.Context(), "beside", strings.NewReader("text"), opts)
			test.Is(t, err, nil)
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
	test.Is(t, os.Chtimes(filepath.Join(h.folder, "object"), future, future), nil)
	info, err := d.Put(t.Context(), "object", strings.NewReader("two"), overwrite)
	test.Is(t, err, nil)
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
	test.Is(t, err, nil)
	test.Equal(t, len(page.Objects), 1, "listed", "objects")
}

// TestFailingFolder: a folder that fails is an error, and not an empty one. A folder below a file
// is empty.
func TestFailingFolder(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	h := newRequestHost(t, servers.RequestFiles{Before: func(_, path string) error {
		if broken.Load() && path == "/folder" {
			return errors.New("input/output error")
		}
		return nil
	}})
	d := h.driver(t, ".")
	put(t, d, "folder/object", []byte("content"), create)
	put(t, d, "file", []byte("content"), create)
	for prefix, want := range map[string]int{"": 2, "folder/": 1, "file/": 0, "file/below/": 0, "missing/below/": 0} {
		page, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix})
		test.Is(t, err, nil, prefix)
		test.Equal(t, len(page.Objects), want, prefix, "objects")
	}
	broken.Store(true)
	for _, prefix := range []string{"", "folder/"} {
		page, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix})
		test.Fails(t, err, fmt.Sprintf("%q was listed: %v", prefix, page))
	}
}

// untyped are files whose listings have names alone.
type untyped struct{ servers.RequestFiles }

// Filelist is that of RequestFiles, without attributes in listings.
func (u untyped) Filelist(r *pkgsftp.Request) (pkgsftp.ListerAt, error) {
	list, err := u.RequestFiles.Filelist(r)
	if r.Method == "List" {
		list = nameList{list}
	}
	return list, err
}

type nameList struct{ pkgsftp.ListerAt }

func (l nameList) ListAt(to []fs.FileInfo, at int64) (int, error) {
	n, err := l.ListerAt.ListAt(to, at)
	for i := range n {
		to[i] = nameOnly{to[i]}
	}
	return n, err
}

type nameOnly struct{ fs.FileInfo }

func (nameOnly) Size() int64        { return 0 }
func (nameOnly) Mode() fs.FileMode  { return fs.ModeIrregular }
func (nameOnly) ModTime() time.Time { return time.Unix(0, 0) }

// TestListingWithoutTypes: folders are found, and objects have their size, if the host lists names
// alone.
func TestListingWithoutTypes(t *testing.T) {
	t.Parallel()
	files := untyped{servers.RequestFiles{Folder: t.TempDir()}}
	h := startServerOf(t, func(session io.ReadWriteCloser) error {
		return pkgsftp.NewRequestServer(session, pkgsftp.Handlers{FileGet: files, FilePut: files, FileCmd: files, FileList: files}).Serve()
	}).host(files.Folder, 1)
	d := h.driver(t, ".")
	put(t, d, "folder/below/object", []byte("content"), create)
	put(t, d, "object", []byte("content"), create)
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	test.Is(t, err, nil)
	listed := make([]string, 0, len(page.Objects))
	for _, info := range page.Objects {
		listed = append(listed, fmt.Sprint(info.Key, " ", info.Size))
		stat, err := d.Stat(t.Context(), info.Key)
		test.Is(t, err, nil)
		test.Equal(t, info, stat)
	}
	test.Same(t, listed, []string{"folder/below/object 7", "object 7"})
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
		h.force = &abilities{true, true, true, true}
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
	h.force = &abilities{dates: true}
	d := h.driver(t, ".")
	unlock, err := naming.Lock(t.Context(), d.lockName("object"))
	test.Is(t, err, nil)
	opened := make(chan error)
	go func() {
		body, _, err := d.Open(t.Context(), "object", all)
		if err == nil {
			err = body.Close()
		}
		opened <- err
	}()
	<-looked
	test.Is(t, os.WriteFile(filepath.Join(h.folder, "object"), []byte("new"), 0o600), nil)
	unlock()
	test.Is(t, <-opened, nil)
	_, _, err = d.Open(t.Context(), "missing", all)
	test.Is(t, err, fs.ErrNotExist)
}

func TestReader(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	for _, size := range []int{0, 1, 1000} {
		content := test.Random(size)
		put(t, d, "object", content, overwrite)
		body, _, err := d.Open(t.Context(), "object", all)
		test.Is(t, err, nil)
		test.Is(t, iotest.TestReader(body, content), nil, size, "bytes")
		test.Is(t, body.Close(), nil)
		test.Is(t, body.Close(), fs.ErrClosed)
		_, err = body.Read(make([]byte, 1))
		test.Is(t, err, fs.ErrClosed)
	}
}

// TestReaderSeeksAnywhere: a reader returns the right bytes at any offset.
func TestReaderSeeksAnywhere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	content := test.Random(6 << 20)
	put(t, d, "object", content, create)
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	defer body.Close()
	seeker := body.(io.ReadSeeker)
	random := rand.New(rand.NewPCG(1, 2))
	at := 0
	for range 300 {
		switch random.IntN(3) {
		case 0:
			at = random.IntN(len(content))
		case 1: // a little further, or back
			at = min(max(0, at+random.IntN(maxBlock)-maxBlock/4), len(content))
		}
		_, err := seeker.Seek(int64(at), io.SeekStart)
		test.Must(t, err)
		got := make([]byte, min(random.IntN(maxBlock/2), len(content)-at))
		if _, err := io.ReadFull(body, got); err != nil || !bytes.Equal(got, content[at:at+len(got)]) {
			t.Fatalf("reading %d bytes at %d: error %v", len(got), at, err)
		}
		at += len(got)
	}
}

// TestReaderOfShortened: reading a file that is truncated meanwhile returns an error.
func TestReaderOfShortened(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "object", test.Random(1<<20), create)
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	defer body.Close()
	test.Must(t, os.Truncate(filepath.Join(h.folder, "object"), 100_000))
	_, err = io.Copy(io.Discard, body)
	test.Is(t, err, io.ErrUnexpectedEOF)
	test.IsNot(t, err, storagedrivers.ErrUnavailable)
	_, err = body.(io.ReaderAt).ReadAt(make([]byte, 10), 99_995)
	test.Is(t, err, io.ErrUnexpectedEOF)
}

// gate is a session's channel that withholds replies until it has received several requests of a
// type.
type gate struct {
	io.ReadWriteCloser
	request byte // the type
	seen    atomic.Int32
	opened  chan struct{}
	open    func() // closes opened
}

// requests is the number of requests after which a gate opens.
const requests = 8

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.ReadWriteCloser.Read(p)
	if n > 0 && p[0] == g.request && g.seen.Add(1) == requests {
		g.open()
	}
	return n, err
}

func (g *gate) Write(p []byte) (int, error) {
	if g.seen.Load() > 0 {
		<-g.opened
	}
	return g.ReadWriteCloser.Write(p)
}

// TestRequestsBeforeReplies: not every packet waits for a round trip.
func TestRequestsBeforeReplies(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]byte{"reading": 5, "writing": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, opened := t.TempDir(), make(chan struct{})
			open := sync.OnceFunc(func() { close(opened) })
			s := startServerOf(t, func(channel io.ReadWriteCloser) error {
				return serveFolder(root, &gate{ReadWriteCloser: channel, request: request, opened: opened, open: open})
			})
			t.Cleanup(open)
			h := s.host(root, 1)
			h.force = &abilities{true, true, true, true}
			d := h.driver(t, ".")
			content := make([]byte, 1<<20)
			put(t, d, "object", content, create)
			has(t, d, "object", content)
		})
	}
}

// TestRangeIsNotTheFile: reading a part of a large object requests little more than that.
func TestRangeIsNotTheFile(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "object", test.Random(size), create)
	for name, read := range map[string]struct {
		rng  storagedrivers.Range
		part int64
		most int64
	}{
		"range":         {storagedrivers.Range{Offset: 1 << 20, Length: 100_000}, 100_000, 0},
		"head":          {all, 1000, firstBlock + 2*firstBlock},
		"half of range": {storagedrivers.Range{Offset: 1, Length: size / 2}, size / 4, 2 * maxBlock},
	} {
		body, _, err := d.Open(t.Context(), "object", read.rng)
		test.Is(t, err, nil)
		d.pool.mu.Lock()
		received := &d.pool.connections[0].received
		d.pool.mu.Unlock()
		before := received.Load()
		_, err = io.CopyN(io.Discard, body, read.part)
		test.Is(t, err, nil)
		r := body
		test.Is(t, r.Close(), nil)
		if got := received.Load() - before; got > read.part+read.most+read.part/10+10_000 {
			t.Errorf("%s: %d bytes were transferred for %d", name, got, read.part)
		}
	}
}

func TestReaderEndsWithContext(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "object", test.Random(1<<20), create)
	ctx, cancel := context.WithCancelCause(t.Context())
	body, _, err := d.Open(ctx, "object", all)
	test.Is(t, err, nil)
	defer body.Close()
	cancel(storagedrivers.ErrUnavailable)
	_, err = body.Read(make([]byte, 10))
	test.Is(t, err, context.Canceled)
	test.Is(t, err, storagedrivers.ErrUnavailable)
	_, err = body.(io.ReaderAt).ReadAt(make([]byte, 10), 0)
	test.Is(t, err, context.Canceled)
}
