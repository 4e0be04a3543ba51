package drivertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func testRange(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	e.put(t, "object", c, create)
	e.put(t, "empty", content{2, 0}, create)
	for _, tt := range []struct {
		offset, length, want int64
	}{
		{0, 0, c.size},
		{0, 1, 1},
		{1000, 5000, 5000},
		{8*mib - 1, 2, 2},
		{5 * mib, 0, 4 * mib},
		{c.size - 1, 0, 1},
		{c.size - 1, 1, 1},
		{c.size - 10, 100, 10},
		{0, c.size, c.size},
		{0, c.size + 1, c.size},
		{1, 1 << 62, c.size - 1},
	} {
		rng := storagedrivers.Range{Offset: tt.offset, Length: tt.length}
		body, info, err := e.storage.Open(t.Context(), "object", rng)
		if err != nil {
			t.Errorf("opening %+v: %v", rng, err)
			continue
		}
		if info.Size != c.size {
			t.Errorf("opening %+v: info of %d bytes, want the whole object's %d", rng, info.Size, c.size)
		}
		succeeds(t, equal(body, c.part(tt.offset, tt.want)), fmt.Sprintf("reading %+v", rng))
		closed(t, body)
	}
	refused := func(key string, offset, length int64) {
		body, _, err := e.storage.Open(t.Context(), key, storagedrivers.Range{Offset: offset, Length: length})
		if err == nil {
			closed(t, body)
		}
		what := fmt.Sprintf("opening %d bytes from %d of %s", length, offset, key)
		fails(t, err, storagedrivers.ErrInvalidRange, what)
		never(t, err, what, fs.ErrNotExist, storagedrivers.ErrUnavailable)
	}
	refused("object", c.size, 0)
	refused("object", c.size, 1)
	refused("object", c.size+1000, 0)
	refused("object", 1<<62, 10)
	refused("object", -1, 0)
	refused("object", 0, -1)
	refused("empty", 0, 1)
	refused("empty", 1, 0)
	e.has(t, "empty", content{2, 0})
	_, _, err := e.storage.Open(t.Context(), "missing", storagedrivers.Range{Offset: 10})
	fails(t, err, fs.ErrNotExist, "a range of a missing object")
}

func testStat(t *testing.T, e *env) {
	const precision = 2 * time.Minute // precision of the backend, and error of its clock
	for key, contentType := range map[string]string{
		"a/picture.PNG": "image/png",
		"text.txt":      "text/plain; charset=utf-8",
		"no extension":  "application/octet-stream",
	} {
		before := time.Now() //nolint:forbidigo // compared with the backend's clock
		want := e.put(t, key, content{1, 12345}, create)
		got, err := e.storage.Stat(t.Context(), key)
		test.Must(t, err, "stat")
		if got.Key != key || got.Size != 12345 || got.ContentType != contentType {
			t.Errorf("stat of %q: %+v, want 12345 bytes of %s", key, got, contentType)
		}
		if age := got.ModTime.Sub(before); age < -precision || age > precision {
			t.Errorf("stat of %q: stored at %v, want about %v", key, got.ModTime, before)
		}
		sameInfo(t, "put", want, got)
		body, opened, err := e.storage.Open(t.Context(), key, storagedrivers.Range{Offset: 5, Length: 5})
		test.Must(t, err, "opening")
		closed(t, body)
		sameInfo(t, "open", opened, got)
		page, err := e.storage.List(t.Context(), storagedrivers.ListOptions{Prefix: key})
		if err != nil || len(page.Objects) != 1 {
			t.Fatalf("listing %q: %d objects, error %v", key, len(page.Objects), err)
		}
		listed := page.Objects[0]
		if age := listed.ModTime.Sub(before); age < -precision || age > precision {
			t.Errorf("listing of %q: stored at %v, want about %v", key, listed.ModTime, before)
		}
		if !e.storage.Features().ListTimes {
			listed.ModTime = got.ModTime
		}
		sameInfo(t, "list", listed, got)
	}
}

// sameInfo asserts that a method describes an object as Stat does.
func sameInfo(t *testing.T, method string, got, stat storagedrivers.Info) {
	t.Helper()
	if !got.ModTime.Equal(stat.ModTime) {
		t.Errorf("%s: stored at %v, want as stat %v", method, got.ModTime, stat.ModTime)
	}
	got.ModTime = stat.ModTime
	if got != stat {
		t.Errorf("%s: got %+v, stat %+v", method, got, stat)
	}
}

func testETag(t *testing.T, e *env) {
	seen := map[string]bool{}
	for seed := range uint64(5) {
		info := e.put(t, "object", content{seed, 1000}, overwrite)
		none := info.ETag == "" // then no generation has one
		if seed > 0 && none != seen[""] {
			t.Errorf("etag %q after those of %v", info.ETag, seen)
		}
		if !none && (len(info.ETag) < 3 || !strings.HasPrefix(info.ETag, `"`) || !strings.HasSuffix(info.ETag, `"`)) {
			t.Errorf("etag %q is not a strong one in quotes", info.ETag)
		}
		if !none && seen[info.ETag] {
			t.Errorf("etag %q was another generation's", info.ETag)
		}
		seen[info.ETag] = true
		got, err := e.storage.Stat(t.Context(), "object")
		if err != nil || got.ETag != info.ETag {
			t.Errorf("stat: got etag %q after %q was stored, error %v", got.ETag, info.ETag, err)
		}
	}
}

func testSeekingReaders(t *testing.T, e *env) {
	if !e.driver.Features().Seek {
		return // nothing is promised
	}
	c := content{1, 300 * kib}
	e.put(t, "object", c, create)
	e.put(t, "empty", content{2, 0}, create)
	body, _, err := e.driver.Open(t.Context(), "object", all)
	test.Must(t, err)
	defer closed(t, body)
	seeker, ok := body.(io.ReadSeeker)
	if !ok {
		t.Fatalf("%T has no io.Seeker", body)
	}
	at, ok := body.(io.ReaderAt)
	if !ok {
		t.Fatalf("%T has no io.ReaderAt", body)
	}
	succeeds(t, equal(io.NewSectionReader(at, 1000, 2000), c.part(1000, 2000)), "reading at 1000")
	succeeds(t, equal(seeker, c.reader()), "reading after reading at")
	offset, err := seeker.Seek(-1000, io.SeekEnd)
	if err != nil || offset != c.size-1000 {
		t.Errorf("seeking from the end: at %d, error %v", offset, err)
	}
	succeeds(t, equal(seeker, c.part(c.size-1000, 1000)), "reading the end")
	_, err = seeker.Seek(5, io.SeekStart)
	succeeds(t, err, "seeking back")
	succeeds(t, equal(seeker, c.part(5, c.size-5)), "reading again")

	empty, _, err := e.driver.Open(t.Context(), "empty", all)
	test.Must(t, err)
	defer closed(t, empty)
	if _, ok := empty.(io.Seeker); !ok {
		t.Errorf("%T of an empty object has no io.Seeker", empty)
	}
}

// testSlowReaders: readers of one owner that read no further keep no other owner from reading and
// storing.
func testSlowReaders(t *testing.T, e *env) {
	const readers = 12
	c := content{1, 4 * mib}
	e.put(t, "large", c, create)
	slow, leave := context.WithCancel(storagedrivers.WithOwner(t.Context(), "slow"))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer leave()
	opened := make(chan error, readers)
	for range readers {
		wg.Go(func() {
			body, _, err := e.storage.Open(slow, "large", all)
			if err != nil {
				opened <- err
				return
			}
			defer body.Close()
			_, err = body.Read(make([]byte, 1))
			opened <- err
			<-slow.Done()
		})
	}
	succeeds(t, <-opened, "opening as a slow reader")
	other := storagedrivers.WithOwner(t.Context(), "other")
	body, _, err := e.storage.Open(other, "large", all)
	test.Must(t, err, "opening beside slow readers of another owner")
	succeeds(t, equal(body, c.reader()), "reading beside slow readers of another owner")
	closed(t, body)
	_, err = e.storage.Put(other, "small", newSource(content{2, 100}), create)
	succeeds(t, err, "storing beside slow readers of another owner")
}

func testOpenSeeker(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	info := e.put(t, "object", c, create)
	e.put(t, "empty", content{2, 0}, create)
	o, err := e.storage.OpenSeeker(t.Context(), "object")
	test.Must(t, err)
	sameInfo(t, "opening to seek", o.Info, info)
	head := make([]byte, 100)
	_, err = io.ReadFull(o, head)
	succeeds(t, err, "reading")
	for _, tt := range []struct {
		offset int64
		whence int
		want   int64
	}{
		{0, io.SeekCurrent, 100},
		{1000, io.SeekCurrent, 1100},
		{-1000, io.SeekEnd, c.size - 1000},
		{0, io.SeekEnd, c.size},
		{10, io.SeekEnd, c.size + 10},
		{0, io.SeekStart, 0},
		{5 * mib, io.SeekStart, 5 * mib},
	} {
		at, err := o.Seek(tt.offset, tt.whence)
		if err != nil || at != tt.want {
			t.Errorf("seeking %d from %d: at %d, want %d, error %v", tt.offset, tt.whence, at, tt.want, err)
		}
		n := min(1000, max(0, c.size-at))
		succeeds(t, equal(io.LimitReader(o, 1000), c.part(at, n)), "reading after seeking")
		_, err = o.Seek(at, io.SeekStart)
		succeeds(t, err, "seeking back")
		if tt.whence == io.SeekStart && tt.offset == 0 {
			_, err = o.Seek(100, io.SeekStart)
			succeeds(t, err, "seeking back")
		}
	}
	if _, err := o.Seek(-1, io.SeekStart); err == nil {
		t.Error("seeking before the start succeeded")
	}
	succeeds(t, equal(o, c.part(5*mib, 4*mib)), "reading after a refused seek")
	closed(t, o)
	if _, err := o.Read(head); err == nil {
		t.Error("reading succeeded after closing")
	}

	empty, err := e.storage.OpenSeeker(t.Context(), "empty")
	test.Must(t, err)
	if n, err := empty.Read(head); n != 0 || err != io.EOF { //nolint:errorlint // readers return it bare
		t.Errorf("reading nothing: %d bytes, error %v", n, err)
	}
	closed(t, empty)
	_, err = e.storage.OpenSeeker(t.Context(), "missing")
	fails(t, err, fs.ErrNotExist, "opening a missing object to seek")
}

// testOpenSeekerOfReplaced: reading returns the old bytes or an error, never those of another
// generation.
func testOpenSeekerOfReplaced(t *testing.T, e *env) {
	old := content{1, 300 * kib}
	e.put(t, "object", old, create)
	o, err := e.storage.OpenSeeker(t.Context(), "object")
	test.Must(t, err)
	defer closed(t, o)
	_, err = io.ReadFull(o, make([]byte, 100))
	succeeds(t, err, "reading")
	e.put(t, "object", content{2, 400 * kib}, overwrite)
	_, err = o.Seek(1000, io.SeekStart)
	succeeds(t, err, "seeking")
	for range 2 {
		b, err := io.ReadAll(o)
		if err != nil {
			if len(b) > 0 {
				t.Errorf("%d bytes before the error %v", len(b), err)
			}
			continue
		}
		succeeds(t, equal(bytes.NewReader(b), old.part(1000, old.size-1000)), "reading a replaced object")
		break
	}
}

func testServeContent(t *testing.T, e *env) {
	c := content{1, 300 * kib}
	info := e.put(t, "picture.png", c, create)
	for _, tt := range []struct {
		name, header, value string
		status              int
		offset, length      int64
	}{
		{"all", "Accept", "*/*", http.StatusOK, 0, c.size},
		{"range", "Range", "bytes=1000-1999", http.StatusPartialContent, 1000, 1000},
		{"end", "Range", "bytes=-10", http.StatusPartialContent, c.size - 10, 10},
		{"past the end", "Range", "bytes=307200-", http.StatusRequestedRangeNotSatisfiable, 0, -1},
		{"etag", "If-None-Match", info.ETag, http.StatusNotModified, 0, 0},
	} {
		if tt.value == "" {
			continue // no etag
		}
		o, err := e.storage.OpenSeeker(t.Context(), "picture.png")
		test.Must(t, err)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/picture.png", nil)
		request.Header.Set(tt.header, tt.value)
		answer := httptest.NewRecorder()
		answer.Header().Set("Content-Type", o.Info.ContentType)
		if o.Info.ETag != "" {
			answer.Header().Set("ETag", o.Info.ETag)
		}
		http.ServeContent(answer, request, "", o.Info.ModTime, o)
		if answer.Code != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, answer.Code, tt.status)
		}
		if tt.length >= 0 {
			succeeds(t, equal(answer.Body, c.part(tt.offset, tt.length)), tt.name)
		}
		closed(t, o)
	}
}

// besideSizes are the sizes of consecutive generations of one object: growing, shrinking and equal,
// within one packet or buffer and beyond it.
var besideSizes = []int64{20 * kib, 20 * kib, 300 * kib, 300 * kib, 40 * kib, 2*mib + 1, 2*mib + 1, 24 * kib}

// testReaderBesideWriter: every read during overwrites returns one generation or fails, and no
// entity tag stands for two.
func testReaderBesideWriter(t *testing.T, e *env) {
	const overwrites = 16
	g := &generations{coarse: e.harness.CoarseTags, earlier: e.harness.EarlierTags, contents: map[string]content{}}
	readers := []*storagedrivers.Storage{e.storage}
	if other := e.another(t); other != nil {
		readers = append(readers, other)
	}
	store := func(i int) {
		c := content{uint64(i), besideSizes[i%len(besideSizes)]}
		info, err := e.storage.Put(t.Context(), "hot", newSource(c), overwrite)
		succeeds(t, err, "overwriting beside readers")
		if err == nil {
			succeeds(t, g.add(info, c), "overwriting beside readers")
		}
	}
	store(0)
	var done atomic.Bool
	var reads, failures atomic.Int32
	atOnce(1+len(besideReads), func(i int) {
		if i == 0 {
			defer done.Store(true)
			for i := range overwrites {
				store(i + 1)
			}
			return
		}
		read, s := besideReads[i-1], readers[i%len(readers)]
		for again := true; again; again = !done.Load() {
			reads.Add(1)
			b, offset, info, err := read.run(t, s)
			if visible(s, err) {
				failures.Add(1)
				continue
			}
			if err == nil {
				err = g.check(b, offset, info, read.length)
			}
			test.Is(t, err, nil, read.name, "beside a writer")
		}
	})
	t.Logf("%d of %d reads failed", failures.Load(), reads.Load())
	succeeds(t, g.checkEarlier(), "the tags beside a writer")
	g.earlier = false
	for _, read := range besideReads {
		b, offset, info, err := read.run(t, e.storage)
		if err == nil {
			err = g.check(b, offset, info, read.length)
		}
		succeeds(t, err, read.name+" in the end")
	}
	e.holds(t, "hot")
}

// visible reports whether a reader may see err during overwrites.
func visible(s *storagedrivers.Storage, err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return s.Features().Replace != storagedrivers.Atomic
	}
	return errors.Is(err, storagedrivers.ErrChanged) || errors.Is(err, storagedrivers.ErrUnavailable)
}

// besideRead is a way of reading. It returns the bytes, their offset, and the Info of the object.
type besideRead struct {
	name   string
	length int64 // 0 means to the end
	run    func(*testing.T, *storagedrivers.Storage) ([]byte, int64, storagedrivers.Info, error)
}

var besideReads = []besideRead{
	{"reading", 0, func(t *testing.T, s *storagedrivers.Storage) ([]byte, int64, storagedrivers.Info, error) {
		return readRange(t, s, all)
	}},
	{"reading a range", 5 * kib, func(t *testing.T, s *storagedrivers.Storage) ([]byte, int64, storagedrivers.Info, error) {
		return readRange(t, s, storagedrivers.Range{Offset: 10 * kib, Length: 5 * kib})
	}},
	{"seeking", 0, func(t *testing.T, s *storagedrivers.Storage) ([]byte, int64, storagedrivers.Info, error) {
		return readSeeking(t, s, 16*kib, 0)
	}},
	{"seeking to a part", 5 * kib, func(t *testing.T, s *storagedrivers.Storage) ([]byte, int64, storagedrivers.Info, error) {
		return readSeeking(t, s, 8*kib, 5*kib)
	}},
}

func readRange(t *testing.T, s *storagedrivers.Storage, rng storagedrivers.Range) ([]byte, int64, storagedrivers.Info, error) {
	body, info, err := s.Open(t.Context(), "hot", rng)
	if err != nil {
		return nil, 0, info, err
	}
	b, err := io.ReadAll(body)
	return b, rng.Offset, info, errors.Join(err, body.Close())
}

// readSeeking reads as http.ServeContent does: length bytes from offset, 0 means to the end.
func readSeeking(t *testing.T, s *storagedrivers.Storage, offset, length int64) ([]byte, int64, storagedrivers.Info, error) {
	o, err := s.OpenSeeker(t.Context(), "hot")
	if err != nil {
		return nil, 0, storagedrivers.Info{}, err
	}
	defer closed(t, o)
	if _, err := o.Seek(offset, io.SeekStart); err != nil {
		return nil, 0, o.Info, err
	}
	if length == 0 {
		length = o.Info.Size - offset
	}
	var b bytes.Buffer
	if _, err = io.CopyN(&b, o, length); errors.Is(err, io.EOF) {
		err = fmt.Errorf("%d bytes of %d as if they were all", b.Len(), length)
	}
	return b.Bytes(), offset, o.Info, err
}

// generations are the generations of one key by their entity tags.
type generations struct {
	coarse   bool
	earlier  bool // readers may get tags of earlier generations
	mu       sync.Mutex
	contents map[string]content
	reads    []taggedRead
}

// taggedRead is the tag and the content of a read.
type taggedRead struct {
	tag string
	content
}

// add records that info describes c. It fails if it described another generation before.
func (g *generations) add(info storagedrivers.Info, c content) error {
	if info.Size != c.size {
		return fmt.Errorf("the info of %d bytes describes an object of %d", info.Size, c.size)
	}
	tag := info.ETag
	if tag == "" && !info.ModTime.IsZero() && !g.coarse {
		tag = fmt.Sprintf("%d bytes of %v", info.Size, info.ModTime)
	}
	if tag == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if other, ok := g.contents[tag]; ok && other != c {
		return fmt.Errorf("the tag %s stands for the generations %d and %d", tag, other.seed, c.seed)
	}
	g.contents[tag] = c
	return nil
}

// check checks that b has length bytes of one generation from offset on, a multiple of the block
// size, and that info describes it.
func (g *generations) check(b []byte, offset int64, info storagedrivers.Info, length int64) error {
	if len(b) < headerSize {
		return fmt.Errorf("%d bytes", len(b))
	}
	c := content{binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))}
	if length == 0 {
		length = c.size - offset
	}
	if int64(len(b)) != length {
		return fmt.Errorf("%d bytes, want %d of an object of %d", len(b), length, c.size)
	}
	if err := equal(bytes.NewReader(b), c.part(offset, length)); err != nil {
		return err
	}
	if g.earlier && info.ETag != "" && info.Size == c.size {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.reads = append(g.reads, taggedRead{info.ETag, c})
		return nil
	}
	return g.add(info, c)
}

// checkEarlier checks that no read returned the tag of a later generation than its bytes. A client
// would keep such bytes for ever.
func (g *generations) checkEarlier() error {
	for _, read := range g.reads {
		if tagged, ok := g.contents[read.tag]; !ok || tagged.seed > read.seed {
			return fmt.Errorf("the tag %s of the generation %d was read with the bytes of %d", read.tag, tagged.seed, read.seed)
		}
	}
	return nil
}
