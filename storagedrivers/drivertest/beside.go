package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

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
			if err != nil {
				t.Errorf("%s beside a writer: %v", read.name, err)
			}
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
