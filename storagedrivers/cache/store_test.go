package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func id(n int) identity { return newIdentity("test", fmt.Sprint(n)) }

// payload returns a whole record.
func (s *Store) payload(id identity, length int) ([]byte, bool) {
	block := s.block(id, length)
	if block == nil {
		return nil, false
	}
	defer block.close()
	var payload []byte
	buf := make([]byte, frameSize)
	for i := range (length + chunkSize - 1) / chunkSize {
		b, ok := block.chunk(i, buf)
		if !ok {
			return nil, false
		}
		payload = append(payload, b...)
	}
	return payload, true
}

// TestNames: only names that the store has written are read as such.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, length := range []int{1, 10, maxPayload} {
		if got, n, ok := parseName(fileName(id(length), length)); got != id(length) || n != length || !ok {
			t.Errorf("%d bytes: %x, %d, %t", length, got, n, ok)
		}
	}
	hash := strings.Repeat("0a", 16)
	for _, name := range []string{
		"", hash, hash + "-", hash + "-0", hash + "--1", hash + "-+1", hash + "-01", hash + "-16777217", hash + "-1.tmp",
		hash + "0a-1", hash[2:] + "-1", strings.ToUpper(hash) + "-1", "0x" + hash[2:] + "-1", unfinishedName,
	} {
		if _, _, ok := parseName(name); ok {
			t.Errorf("%q is taken for a file of the store", name)
		}
	}
}

// TestRecords: records of all sizes are read as they were written, also after a restart.
func TestRecords(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder, 0)
	sizes := []int{1, 63, 64, chunkSize - 4, chunkSize, chunkSize + 1, 3 * chunkSize, mib, maxPayload}
	for i, size := range sizes {
		if !s.put(id(i), random(uint64(i), size)) {
			t.Errorf("%d bytes were not stored", size)
		}
	}
	if s.put(id(99), nil) || s.put(id(99), make([]byte, maxPayload+1)) {
		t.Error("a record of a wrong size was stored")
	}
	s.put(id(100), []byte("removed"))
	s.remove(id(100))
	for restart := range 2 {
		for i, size := range sizes {
			if got, ok := s.payload(id(i), size); !ok || !bytes.Equal(got, random(uint64(i), size)) {
				t.Errorf("%d bytes: found %t, equal %t, restart %d", size, ok, ok, restart)
			}
		}
		if s.has(id(100), 7) || s.has(id(0), 2) {
			t.Error("a record that was removed or has another size was found")
		}
		test.Is(t, s.Close(), nil)
		if _, ok := s.payload(id(0), 1); ok || s.put(id(0), []byte("x")) {
			t.Error("a closed store has records")
		}
		s = open(t, folder, 0)
		s.ready()
	}
	if stats := s.Stats(); stats.Entries != len(sizes) || stats.Damaged != 0 || stats.Bytes < size(t, folder) || !stats.Owned {
		t.Errorf("%+v", stats)
	}
}

// TestBound: the files never exceed the limit, whatever is written, and everything found is right.
func TestBound(t *testing.T) {
	t.Parallel()
	const limit = 24 * mib
	folder := t.TempDir()
	s := open(t, folder, limit)
	foreign := filepath.Join(folder, subfolders[:1], "00000001.txt")
	test.Is(t, os.MkdirAll(filepath.Dir(foreign), 0o700), nil)
	test.Is(t, os.WriteFile(foreign, nil, 0o600), nil)
	var largest int64
	var written int64
	for i := 0; written < 5*limit; i++ {
		b := random(uint64(i), 1+i*7919%(2*mib))
		written += int64(len(b))
		s.put(id(i), b)
		largest = max(largest, size(t, folder))
		if hot := max(0, i-5); i%2 == 0 {
			length := 1 + hot*7919%(2*mib)
			if got, ok := s.payload(id(hot), length); ok && !bytes.Equal(got, random(uint64(hot), length)) {
				t.Fatal("other bytes")
			}
		}
	}
	stats := s.Stats()
	if largest > limit || largest < limit/2 || stats.Bytes > limit || stats.Bytes < size(t, folder) || stats.Evicted == 0 {
		t.Errorf("up to %d bytes of %d, %+v", largest, limit, stats)
	}
	s.SetMaxSize(6 * mib)
	if got := size(t, folder); got > 6*mib || s.Stats().Bytes > 6*mib || got == 0 {
		t.Errorf("%d bytes after setting the limit to 6 MiB", got)
	}
	s.put(id(1), random(1, mib))
	if got, ok := s.payload(id(1), mib); !ok || !bytes.Equal(got, random(1, mib)) {
		t.Error("nothing is stored after setting the limit")
	}
	test.Is(t, s.Close(), nil)
	s = open(t, folder, 3*mib)
	s.ready()
	if got := size(t, folder); got > 3*mib {
		t.Errorf("%d bytes after a start with 3 MiB", got)
	}
	test.Is(t, s.Empty(), nil)
	_, err := os.Stat(foreign)
	test.Is(t, err, nil)
}

// TestHotRecords: records that are read survive the eviction of their segment.
func TestHotRecords(t *testing.T) {
	t.Parallel()
	const size = 64 * kib
	s := open(t, t.TempDir(), 64*size)
	for i := range 400 {
		s.put(id(i), random(uint64(i), size))
		for hot := range min(i, 5) {
			if got, ok := s.payload(id(hot), size); !ok || !bytes.Equal(got, random(uint64(hot), size)) {
				t.Fatalf("record %d is lost after %d others", hot, i)
			}
		}
	}
	if s.has(id(10), size) {
		t.Error("a record that is not read is still there")
	}
	for i := range 400 { // all of them are hot
		s.payload(id(i), size)
		if !s.put(id(1000+i), random(1, size)) {
			t.Fatal("there is no room beside hot records")
		}
		s.payload(id(1000+i), size)
	}
}

// TestDamage: a wrong bit anywhere, or a wrong length, loses its file only, and never changes
// bytes.
func TestDamage(t *testing.T) {
	t.Parallel()
	content := random(1, 200*kib) // of four blocks and a record of its Info
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1 << (at & 7); return b }
	}
	for name, tt := range map[string]struct {
		file   int // the first three are blocks, then comes the last one, and the record
		damage func([]byte) []byte
	}{
		"first byte":       {0, flip(0)},
		"middle":           {1, flip(30_000)},
		"last byte":        {2, flip(chunkSize - 1)},
		"checksum":         {0, flip(-2)},
		"last block":       {3, flip(70)},
		"info":             {4, flip(5)},
		"info, checksum":   {4, flip(-1)},
		"torn":             {0, func(b []byte) []byte { return b[:1000] }},
		"empty":            {1, func([]byte) []byte { return nil }},
		"without checksum": {2, func(b []byte) []byte { return b[:chunkSize] }},
		"zeros":            {0, func(b []byte) []byte { return make([]byte, len(b)) }},
		"torn info":        {4, func(b []byte) []byte { return b[:10] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, b := t.TempDir(), newBackend()
			s := open(t, folder, 0)
			d := behind(t, b, s, Policy{Block: 64 * kib, Immutable: true, FillOnUpload: true, Revalidate: time.Hour})
			put(t, d, "object", content)
			test.Is(t, s.Close(), nil)
			path := files(t, folder)[tt.file]
			f, err := os.ReadFile(path)
			test.Is(t, err, nil)
			test.Is(t, os.WriteFile(path, tt.damage(f), 0o600), nil)
			s = open(t, folder, 0)
			d = behind(t, b, s, Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Hour})
			b.calls()
			has(t, d, "object", all, content)
			opens, _, _ := b.calls()
			if stats := s.Stats(); stats.Damaged != 1 || stats.Entries != 5 || opens == 0 && tt.file < 4 {
				t.Errorf("%+v, %d opens", stats, opens)
			}
			has(t, d, "object", all, content)
			b.did(t, "again", 0, 0, 0)
		})
	}
}

// TestWrongName: a file under the name of another one is never read.
func TestWrongName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder, 0)
	for i := range 3 {
		s.put(id(i), random(uint64(i), 70*kib))
	}
	test.Is(t, os.Rename(s.path(id(0), 70*kib), s.path(id(1), 70*kib)), nil)    // another one of its length
	test.Is(t, os.Rename(s.path(id(2), 70*kib), s.path(id(2), 80*kib)), nil)    // another length
	test.Is(t, os.Link(s.path(id(1), 70*kib), filepath.Join(folder, "x")), nil) // not in a subfolder
	test.Is(t, s.Close(), nil)
	s = open(t, folder, 0)
	for i, length := range []int{70 * kib, 70 * kib, 80 * kib} {
		if _, ok := s.payload(id(i), length); ok || s.has(id(i), length) {
			t.Errorf("file %d is read", i)
		}
	}
	if stats := s.Stats(); stats.Damaged != 2 || stats.Entries != 0 || stats.Bytes != 0 {
		t.Errorf("%+v", stats)
	}
}

// TestUnfinished: an unfinished file is removed at the start, and other files are left alone.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder, 0)
	s.put(id(1), random(1, 100))
	test.Is(t, s.Close(), nil)
	name := fileName(id(2), 100)
	foreign := []string{"00000001.data", name, name[:1] + "/" + name + ".bak", "g/" + name, string(subfolders[(strings.IndexByte(subfolders, name[0])+1)%16]) + "/" + name}
	test.Is(t, os.Mkdir(filepath.Join(folder, "g"), 0o700), nil)
	for _, name := range append(foreign, unfinishedName) {
		test.Is(t, os.WriteFile(filepath.Join(folder, name), make([]byte, mib), 0o600), nil)
	}
	s = open(t, folder, 0)
	if stats := s.Stats(); !s.ready() || s.Stats().Entries != 1 || s.Stats().Bytes != sizeOnDisk(100) {
		t.Errorf("%+v", stats)
	}
	test.Is(t, s.Empty(), nil)
	_, err := os.Stat(filepath.Join(folder, unfinishedName))
	test.Is(t, err, fs.ErrNotExist, "the unfinished file")
	for _, name := range foreign {
		_, err := os.Stat(filepath.Join(folder, name))
		test.Is(t, err, nil)
	}
}

// TestEvictedByTime: after a start, the files that were written first go first.
func TestEvictedByTime(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder, 0)
	const count = samples
	for i := range count {
		s.put(id(i), random(1, mib))
		at := time.Now().Add(time.Duration(i*7%count-count) * time.Minute)
		test.Is(t, os.Chtimes(s.path(id(i), mib), at, at), nil)
	}
	test.Is(t, s.Close(), nil)
	s = open(t, folder, 0)
	s.ready()
	first := -1
	for i := range count {
		if i*7%count == 0 {
			first = i
		}
	}
	s.payload(id(first), mib) // it is used
	for n := range count {
		for i := range count {
			if order := i * 7 % count; s.has(id(i), mib) != (order > n || order == 0) {
				t.Errorf("after %d evictions file %d of the order is stored: %t", n, order, s.has(id(i), mib))
			}
		}
		s.writing.Lock()
		test.Is(t, s.evict(), nil)
		s.writing.Unlock()
	}
}

// TestRemovedWhileRead: the disk does not keep a block that is removed while it is read; the reader
// gets the rest from the backend.
func TestRemovedWhileRead(t *testing.T) {
	t.Parallel()
	s, b, content := open(t, t.TempDir(), 0), newBackend(), random(1, mib)
	d := behind(t, b, s, Policy{FillOnUpload: true})
	put(t, d, "object", content)
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	got := make([]byte, 100*kib, len(content))
	_, err = io.ReadFull(body, got)
	test.Is(t, err, nil)
	test.Is(t, s.Empty(), nil)
	b.calls()
	rest, err := io.ReadAll(body)
	test.Is(t, err, nil)
	b.did(t, "without the file", 1, 0, mib)
	if !bytes.Equal(append(got, rest...), content) {
		t.Error("other bytes")
	}
	if stats := s.Stats(); stats.Damaged != 0 {
		t.Errorf("%+v", stats)
	}
	has(t, d, "object", all, content)
	test.Is(t, body.Close(), nil)
}

// TestOtherProcess: a folder belongs to one store. The other one reads from the backend and takes
// the folder over when it is free.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	folder, content := t.TempDir(), random(1, 300*kib)
	var log bytes.Buffer
	first, c := open(t, folder, 0), &clock{}
	second := c.on(NewStore(Options{Folder: folder, Log: slog.New(slog.NewTextHandler(&log, nil))}))
	defer second.Close()
	b := newBackend()
	one, two := behind(t, b, first, small), behind(t, b, second, small)
	put(t, one, "object", content)
	has(t, one, "object", all, content)
	b.calls()
	for range 3 {
		has(t, two, "object", all, content)
		c.advance(2 * time.Second)
	}
	b.did(t, "without the folder", 3, 0, 3*300*kib)
	if second.Stats().Owned || second.Empty() == nil {
		t.Error("two stores own the folder")
	}
	put(t, two, "object", content)
	test.Is(t, first.Close(), nil)
	c.advance(2 * time.Second)
	for range 2 {
		has(t, two, "object", all, content)
	}
	if !second.Stats().Owned || strings.Count(log.String(), "another process") != 1 {
		t.Errorf("owned %t, log %s", second.Stats().Owned, log.String())
	}
	b.calls()
	has(t, two, "object", all, content)
	has(t, one, "object", all, content)
	b.did(t, "after the other has closed", 1, 1, 300*kib)
}

// TestUnusableFolder: without a folder everything comes from the backend.
func TestUnusableFolder(t *testing.T) {
	t.Parallel()
	content := random(1, 300*kib)
	file := filepath.Join(t.TempDir(), "file")
	test.Is(t, os.WriteFile(file, nil, 0o600), nil)
	var log bytes.Buffer
	c := &clock{}
	s := c.on(NewStore(Options{Folder: file, Log: slog.New(slog.NewTextHandler(&log, nil))}))
	b := newBackend()
	d := behind(t, b, s, Policy{FillOnUpload: true})
	for range 5 {
		put(t, d, "object", content)
		has(t, d, "object", all, content)
		c.advance(2 * time.Second)
	}
	test.Equal(t, strings.Count(log.String(), "level=WARN"), 1, "warnings", log.String())
	test.Is(t, os.Remove(file), nil)
	has(t, d, "object", all, content)
	b.calls()
	has(t, d, "object", all, content)
	b.did(t, "with a folder", 0, 1, 0)
	test.Is(t, s.Close(), nil)
}

// TestFailingWrites: objects that cannot be stored are still read.
func TestFailingWrites(t *testing.T) {
	t.Parallel()
	content := random(1, 300*kib)
	folder := t.TempDir()
	s, b := open(t, folder, 0), newBackend()
	d := behind(t, b, s, small)
	put(t, d, "object", content)
	has(t, d, "object", storagedrivers.Range{Length: 10}, content[:10])
	d.(*cached).running.Wait()
	unfinished := filepath.Join(folder, unfinishedName)
	test.Is(t, os.Mkdir(unfinished, 0o700), nil) // every write fails from now on
	for range 3 {
		has(t, d, "object", all, content)
	}
	test.Is(t, os.RemoveAll(unfinished), nil)
	has(t, d, "object", all, content)
	b.calls()
	has(t, d, "object", all, content)
	b.did(t, "the disk is back", 0, 1, 0)

	test.Is(t, os.RemoveAll(folder), nil)
	for range 4 {
		s.lastAttempt = time.Time{}
		has(t, d, "object", all, content)
	}
	b.calls()
	has(t, d, "object", all, content)
	b.did(t, "the folder is back", 0, 1, 0)
}

// TestConcurrentUse: everything at once, for the race detector.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s, b := open(t, t.TempDir(), 2*mib), newBackend()
	d := behind(t, b, s, Policy{Block: 64 * kib, FillOnUpload: true})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for round := range 30 {
				key := fmt.Sprint("object", i, round%3)
				content := random(uint64(i*100+round), 100*kib+round*1000)
				put(t, d, key, content)
				has(t, d, key, all, content)
				has(t, d, key, storagedrivers.Range{Offset: 70 * kib, Length: 10 * kib}, content[70*kib:80*kib])
				switch {
				case round == 10 && i == 0:
					test.Is(t, s.Empty(), nil)
				case round == 20 && i == 1:
					s.SetMaxSize(mib)
				}
				s.Stats()
			}
		})
	}
	wg.Wait()
}

// TestMillion: a million files need little memory and are there soon after a start. Under the race
// detector there are fewer.
func TestMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	n, limit := 1_000_000, int64(64*mib)
	if drivertest.RaceDetector {
		n, limit = n/20, limit/20
	}
	folder := t.TempDir()
	s := open(t, folder, 8<<30)
	of := func(i int) identity {
		var id identity
		binary.LittleEndian.PutUint64(id[:], uint64(i)*0x9e3779b97f4a7c15)
		return id
	}
	payload := make([]byte, 100)
	written := map[byte]int{} // by subfolder
	for i := range n {        // a start reads names only
		path := s.path(of(i), len(payload))
		subfolder := of(i)[0] >> 4
		first, ok := written[subfolder]
		if ok {
			test.Is(t, os.Link(s.path(of(first), len(payload)), path), nil)
			continue
		}
		written[subfolder] = i
		if !s.put(of(i), payload) {
			t.Fatal("not stored")
		}
	}
	test.Is(t, s.Close(), nil)
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc) // of earlier tests too, so it may fall
	}
	base := heap()
	s = open(t, folder, 8<<30)
	before := time.Now()
	s.ready()
	start := time.Since(before)
	used := heap() - base
	if stats := s.Stats(); stats.Entries != n || stats.Bytes != int64(n)*sizeOnDisk(len(payload)) || used > limit {
		t.Errorf("%+v, %d bytes of heap, %v", stats, used, start)
	}
	for _, i := range written {
		if got, ok := s.payload(of(i), len(payload)); !ok || !slices.Equal(got, payload) {
			t.Error("a file is missing")
		}
	}
	t.Logf("started in %v, %d bytes of heap", start, used)
}

// FuzzFile: a file with any content and any name never leads to wrong bytes.
func FuzzFile(f *testing.F) {
	folder, want := f.TempDir(), random(1, 70*kib)
	s := open(f, folder, 0)
	s.put(id(1), want)
	stored := files(f, folder)[0]
	content, err := os.ReadFile(stored)
	test.Is(f, err, nil)
	test.Is(f, s.Close(), nil)
	name := filepath.Base(stored)
	f.Add(name, len(content), 0, byte(0))
	f.Add(name, 1000, 70_000, byte(1))
	f.Add(name[:30]+"ff-71680", len(content), 0, byte(0))
	f.Fuzz(func(t *testing.T, name string, length, at int, flip byte) {
		if name == "" || !filepath.IsLocal(name) || strings.ContainsAny(name, "/\x00") || len(name) > 255 {
			t.Skip("no name of a file")
		}
		folder := t.TempDir()
		changed := slices.Clone(content[:uint(length)%uint(len(content)+1)])
		if len(changed) > 0 {
			changed[uint(at)%uint(len(changed))] ^= flip
		}
		test.Is(t, os.MkdirAll(filepath.Join(folder, name[:1]), 0o700), nil)
		test.Is(t, os.WriteFile(filepath.Join(folder, name[:1], name), changed, 0o600), nil)
		s := open(t, folder, 0)
		for _, id := range []identity{id(1), id(2)} {
			if got, ok := s.payload(id, len(want)); ok && !bytes.Equal(got, want) {
				t.Error("other bytes")
			}
			if s.put(id, want) {
				if got, ok := s.payload(id, len(want)); !ok || !bytes.Equal(got, want) {
					t.Error("a stored file is not read")
				}
			}
		}
		test.Is(t, s.Empty(), nil)
	})
}
