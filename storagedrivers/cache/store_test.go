package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

func id(n int) identity { return newIdentity("test", fmt.Sprint(n)) }

// payload returns a whole record.
func (s *Store) payload(id identity, length int) ([]byte, bool) {
	var payload []byte
	buf := make([]byte, frameSize)
	for i := range chunks(length) {
		b, ok := s.chunk(id, length, i, buf)
		if !ok {
			return nil, false
		}
		payload = append(payload, b...)
	}
	return payload, true
}

// TestPosition: positions are packed without loss.
func TestPosition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		number, offset int64
		length         int
	}{{1, 0, 1}, {slots + 5, maxSegment - unit, maxPayload}, {slots - 1, 64, 100}} {
		p := newPosition(tt.number, tt.offset, tt.length)
		if p.slot() != tt.number%slots || p.offset() != tt.offset || p.length() != tt.length || p&wasRead != 0 {
			t.Errorf("%+v: %d, %d, %d", tt, p.slot(), p.offset(), p.length())
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
		if s.has(id(100), 0) || s.has(id(0), 2) {
			t.Error("a record that was removed or has another size was found")
		}
		is(t, s.Close(), nil)
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
	foreign := filepath.Join(folder, "00000001.txt")
	is(t, os.WriteFile(foreign, nil, 0o600), nil)
	var done atomic.Bool
	var largest int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			largest = max(largest, size(t, folder))
		}
	})
	var written int64
	for i := 0; written < 10*limit; i++ {
		b := random(uint64(i), 1+i*7919%(2*mib))
		written += int64(len(b))
		s.put(id(i), b)
		if hot := max(0, i-5); i%2 == 0 {
			length := 1 + hot*7919%(2*mib)
			if got, ok := s.payload(id(hot), length); ok && !bytes.Equal(got, random(uint64(hot), length)) {
				t.Fatal("other bytes")
			}
		}
	}
	done.Store(true)
	wg.Wait()
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
	is(t, s.Close(), nil)
	s = open(t, folder, 3*mib)
	s.ready()
	if got := size(t, folder); got > 3*mib {
		t.Errorf("%d bytes after a start with 3 MiB", got)
	}
	is(t, s.Empty(), nil)
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

// TestHotRecords: records that are read survive the eviction of their segment.
func TestHotRecords(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 16*mib)
	for i := range 400 {
		s.put(id(i), random(uint64(i), 256*kib))
		for hot := range min(i, 5) {
			if got, ok := s.payload(id(hot), 256*kib); !ok || !bytes.Equal(got, random(uint64(hot), 256*kib)) {
				t.Fatalf("record %d is lost after %d others", hot, i)
			}
		}
	}
	if s.has(id(10), 0) {
		t.Error("a record that is not read is still there")
	}
	for i := range 400 { // all of them are hot
		s.payload(id(i), 256*kib)
		if !s.put(id(1000+i), random(1, 256*kib)) {
			t.Fatal("there is no room beside hot records")
		}
		s.payload(id(1000+i), 256*kib)
	}
}

// TestDamage: a wrong bit anywhere loses at most its record, and never changes bytes.
func TestDamage(t *testing.T) {
	t.Parallel()
	content := random(1, 200*kib) // of four blocks and a record of its Info
	type file func(t *testing.T, folder string) string
	data := file(func(t *testing.T, folder string) string { return segments(t, folder)[0] })
	journal := file(func(t *testing.T, folder string) string {
		return strings.TrimSuffix(segments(t, folder)[0], ".data") + ".log"
	})
	for name, tt := range map[string]struct {
		file   file
		offset int64
	}{
		"first byte":         {data, -1}, // of the first block
		"middle of a chunk":  {data, 30_000},
		"last byte":          {data, chunkSize - 1},
		"checksum":           {data, chunkSize + 1},
		"second block":       {data, aligned(frameSize) + 70},
		"journal, identity":  {journal, 3},
		"journal, offset":    {journal, entrySize + 17},
		"journal, length":    {journal, 2*entrySize + 25},
		"journal, checksum":  {journal, 3*entrySize + 30},
		"journal, last info": {journal, 4*entrySize + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, b := t.TempDir(), newBackend()
			s := open(t, folder, 0)
			d := behind(t, b, s, Policy{Block: 64 * kib, Immutable: true, FillOnUpload: true, Revalidate: time.Hour})
			put(t, d, "object", content)
			is(t, s.Close(), nil)
			path := tt.file(t, folder)
			f, err := os.ReadFile(path)
			is(t, err, nil)
			f[max(tt.offset, 0)] ^= 1 << (len(name) % 8)
			is(t, os.WriteFile(path, f, 0o600), nil)
			s = open(t, folder, 0)
			d = behind(t, b, s, Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Hour})
			b.calls()
			has(t, d, "object", all, content)
			opens, _, _ := b.calls()
			if stats := s.Stats(); stats.Damaged != 1 || opens == 0 && !strings.Contains(name, "info") {
				t.Errorf("%+v, %d opens", stats, opens)
			}
			has(t, d, "object", all, content)
			b.did(t, "again", 0, 0, 0)
		})
	}
}

// TestTornTails: files that end early lose only the records at their ends.
func TestTornTails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ data, journal int64 }{
		{0, 0},
		{0, 1},
		{0, entrySize - 1},
		{0, entrySize + 5},
		{1, 0},
		{100, 0},
		{70 * kib, 0},
		{70 * kib, 20},
		{1 << 40, 0},
		{0, 1 << 40},
		{-1000, 0},
		{0, -7},
		{0, -70},
		{-100_000, -100},
	} {
		folder := t.TempDir()
		s := open(t, folder, 0)
		for i := range 5 {
			s.put(id(i), random(uint64(i), 70*kib))
		}
		is(t, s.Close(), nil)
		path := segments(t, folder)[0]
		for file, cut := range map[string]int64{path: tt.data, strings.TrimSuffix(path, ".data") + ".log": tt.journal} {
			stat, err := os.Stat(file)
			is(t, err, nil)
			is(t, os.Truncate(file, max(stat.Size()-cut, 0)), nil)
		}
		for range 3 {
			s = open(t, folder, 0)
			found := 0
			for i := range 5 {
				if got, ok := s.payload(id(i), 70*kib); ok {
					found++
					if !bytes.Equal(got, random(uint64(i), 70*kib)) {
						t.Errorf("%+v: other bytes", tt)
					}
				}
			}
			if whole := max(tt.data, tt.journal); whole <= 0 && found != 5 || whole > 0 && whole < 70*kib && found != 4 && found != 3 {
				t.Errorf("%+v: %d records", tt, found)
			}
			s.put(id(9), random(9, 100*kib))
			if got, ok := s.payload(id(9), 100*kib); !ok || !bytes.Equal(got, random(9, 100*kib)) {
				t.Errorf("%+v: nothing can be added", tt)
			}
			is(t, s.Close(), nil)
		}
	}
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
	is(t, first.Close(), nil)
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
	is(t, os.WriteFile(file, nil, 0o600), nil)
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
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	is(t, os.Remove(file), nil)
	has(t, d, "object", all, content)
	b.calls()
	has(t, d, "object", all, content)
	b.did(t, "with a folder", 0, 1, 0)
	is(t, s.Close(), nil)
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
	path := segments(t, folder)[0]
	s.writing.Lock()
	broken := s.active()
	is(t, broken.data.Close(), nil) // every write fails from now on, and every read
	s.writing.Unlock()
	for range 3 {
		has(t, d, "object", all, content)
	}
	s.writing.Lock()
	var err error
	broken.data, err = os.OpenFile(path, os.O_RDWR, 0)
	s.writing.Unlock()
	is(t, err, nil)
	has(t, d, "object", all, content)
	b.calls()
	has(t, d, "object", all, content)
	b.did(t, "the disk is back", 0, 1, 0)

	is(t, os.RemoveAll(folder), nil)
	s.SetMaxSize(mib) // so that a new segment is needed
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
					is(t, s.Empty(), nil)
				case round == 20 && i == 1:
					s.SetMaxSize(mib)
				}
				s.Stats()
			}
		})
	}
	wg.Wait()
}

// TestMillion: a million records need little memory and are there soon after a start.
func TestMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	measureMillion(t, func(float64, string) {})
}

func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		measureMillion(b, b.ReportMetric)
	}
}

func measureMillion(t testing.TB, report func(float64, string)) {
	const n = 1_000_000
	folder := t.TempDir()
	s := open(t, folder, 4<<30)
	of := func(i int) identity {
		var id identity
		binary.LittleEndian.PutUint64(id[:], uint64(i)*0x9e3779b97f4a7c15)
		return id
	}
	payload := make([]byte, 100)
	before := time.Now()
	for i := range n {
		if !s.put(of(i), payload) {
			t.Fatal("not stored")
		}
	}
	write := time.Since(before)
	is(t, s.Close(), nil)
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	base := heap()
	s = open(t, folder, 4<<30)
	before = time.Now()
	s.ready()
	start := time.Since(before)
	used := heap() - base
	if entries := s.Stats().Entries; entries != n || used > 64*mib || start > 10*time.Second {
		t.Errorf("%d entries, %d bytes of heap, %v", entries, used, start)
	}
	for i := 0; i < n; i += 9973 {
		if got, ok := s.payload(of(i), len(payload)); !ok || !slices.Equal(got, payload) {
			t.Fatal("a record is missing")
		}
	}
	t.Logf("written in %v, started in %v, %d bytes of heap", write, start, used)
	report(start.Seconds(), "s/start")
	report(float64(used), "heap-bytes")
}

// FuzzStart: files with any content never lead to wrong bytes.
func FuzzStart(f *testing.F) {
	folder := f.TempDir()
	s := open(f, folder, 0)
	want := map[identity][]byte{}
	for i := range 3 {
		want[id(i)] = random(uint64(i), 100+i*70*kib)
		s.put(id(i), want[id(i)])
	}
	s.remove(id(0))
	is(f, s.Close(), nil)
	data, err := os.ReadFile(filepath.Join(folder, dataName(1)))
	is(f, err, nil)
	journal, err := os.ReadFile(filepath.Join(folder, journalName(1)))
	is(f, err, nil)
	f.Add(journal, 0, byte(0))
	f.Add(journal[:70], 1000, byte(1))
	f.Add(append(slices.Clone(journal), journal...), 150_000, byte(8))
	f.Fuzz(func(t *testing.T, journal []byte, at int, flip byte) {
		folder := t.TempDir()
		content := slices.Clone(data)
		content[uint(at)%uint(len(content))] ^= flip
		is(t, os.WriteFile(filepath.Join(folder, dataName(1)), content, 0o600), nil)
		is(t, os.WriteFile(filepath.Join(folder, journalName(1)), journal, 0o600), nil)
		s := open(t, folder, 0)
		for id, want := range want {
			if got, ok := s.payload(id, len(want)); ok && !bytes.Equal(got, want) {
				t.Error("other bytes")
			}
			if s.put(id, want) {
				if got, ok := s.payload(id, len(want)); !ok || !bytes.Equal(got, want) {
					t.Error("a stored record is not found")
				}
			}
		}
		is(t, s.Empty(), nil)
	})
}
