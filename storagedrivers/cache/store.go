// Package cache keeps blocks of objects in a local folder, in front of a driver whose backend is
// far away.
//
// A [Store] is the folder. It is a log of segments: records are appended, and the oldest segment is
// deleted as a whole. [New] returns a driver behind a store. The package is stable.
package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/storagedrivers/queue"
)

// Options of a [Store]. Zero values are defaults.
type Options struct {
	// Folder of the cached data. It is created if it is missing. It is required.
	Folder string
	// MaxSize is the largest size of all files of the store in bytes; 0 is 10 GiB. Nothing larger
	// than a quarter of it is stored, so it should be many times [Policy.Block].
	MaxSize int64
	// Log gets warnings about the folder. Nil: none.
	Log *slog.Logger
}

// Stats describe a [Store].
type Stats struct {
	// Entries is the number of cached records, Bytes the size of the files, and MaxSize its limit.
	Entries        int
	Bytes, MaxSize int64
	// Hits and Misses count reads of blocks, Evicted the records that were removed to make room,
	// and Damaged those that had a wrong checksum, since the start.
	Hits, Misses, Evicted, Damaged int64
	// Owned reports whether this process uses the folder.
	Owned bool
}

const (
	defaultSize   = 10 << 30
	minSegment    = 4 << 20
	lockName      = "lock"
	retryInterval = time.Second // between attempts to use the folder
	warnInterval  = time.Minute
)

var (
	errInUse    = errors.New("another process uses the folder")
	errTooLarge = errors.New("the record is too large for the cache")
)

// Store is a folder of cached records. It is safe for concurrent use, and several drivers may share
// it. It belongs to the process that has locked it. For other processes every read is a miss.
type Store struct {
	folder  string
	log     *slog.Logger
	now     func() time.Time
	maxSize atomic.Int64
	largest atomic.Int64 // record that is expected
	owned   atomic.Bool
	total   atomic.Int64 // of all files
	run     atomic.Uint64

	fetching *queue.Queue // memory of blocks on their way; see [Store.acquire]

	hits, misses, evicted, damaged atomic.Int64

	versions [1024]version // by identity

	writing     sync.Mutex // held while files are created, written and removed
	file        *os.File   // the lock; nil unless owned
	closed      bool
	lastAttempt time.Time
	warned      time.Time
	inUseLogged bool // that another process uses the folder
	scratch     []byte

	mu       sync.Mutex // of the index; held only for moments
	index    map[uint64]position
	segments map[int64]*segment // by slot
	order    []*segment         // oldest first; changed with both locks
}

// version counts the changes of the objects that share it.
type version struct {
	mu sync.Mutex
	n  uint64
}

// NewStore returns a store. It opens the folder when it is first used.
func NewStore(o Options) *Store {
	s := &Store{
		folder: o.Folder, log: o.Log, scratch: make([]byte, frameSize),
		now:      time.Now, //nolint:forbidigo // the clock's one default
		fetching: newFetching(maxFetching),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.largest.Store(defaultBlock)
	s.SetMaxSize(o.MaxSize)
	return s
}

// SetMaxSize sets the largest size of all files in bytes; 0 is 10 GiB. It evicts the oldest records
// beyond it.
func (s *Store) SetMaxSize(bytes int64) {
	if bytes <= 0 {
		bytes = defaultSize
	}
	s.maxSize.Store(bytes)
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.owned.Load() {
		s.warn(s.makeRoom(0))
	}
}

// Stats returns the present figures.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	entries := len(s.index)
	s.mu.Unlock()
	return Stats{
		Entries: entries, Bytes: s.total.Load(), MaxSize: s.maxSize.Load(),
		Hits: s.hits.Load(), Misses: s.misses.Load(), Evicted: s.evicted.Load(), Damaged: s.damaged.Load(),
		Owned: s.owned.Load(),
	}
}

// Empty removes all records. The error is that of removing the files, or of a folder that cannot be
// used.
func (s *Store) Empty() error {
	ready := s.ready()
	s.writing.Lock()
	defer s.writing.Unlock()
	if !ready || !s.owned.Load() {
		return fmt.Errorf("emptying the cache %s: the folder cannot be used", s.folder)
	}
	var err error
	for len(s.order) > 0 {
		err = errors.Join(err, s.drop(s.order[0]))
	}
	s.mu.Lock()
	s.index = map[uint64]position{}
	s.mu.Unlock()
	return err
}

// Close releases the folder. Later reads are misses. Further calls do nothing.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.closed = true
	return s.release()
}

// release closes all files. The caller holds writing.
func (s *Store) release() error {
	s.owned.Store(false)
	s.mu.Lock()
	open := s.order
	s.index, s.segments, s.order = nil, nil, nil
	s.mu.Unlock()
	var err error
	for _, seg := range open {
		err = errors.Join(err, seg.close())
	}
	s.total.Store(0)
	if s.file != nil {
		err = errors.Join(err, unlock(s.file), s.file.Close())
		s.file = nil
	}
	return err
}

// ready reports whether this process owns the folder. It tries to lock it, at most once a second.
func (s *Store) ready() bool {
	if s.owned.Load() {
		return true
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	now := s.now()
	if since := now.Sub(s.lastAttempt); s.closed || s.owned.Load() || since >= 0 && since < retryInterval {
		return s.owned.Load()
	}
	s.lastAttempt = now
	err := s.open()
	if err == nil {
		s.inUseLogged = false
		s.owned.Store(true)
		return true
	}
	err = errors.Join(err, s.release())
	if !errors.Is(err, errInUse) {
		s.warn(err)
	} else if !s.inUseLogged {
		s.inUseLogged = true
		s.log.Warn("another process uses the cache folder; reading from the backend", slog.String("folder", s.folder))
	}
	return false
}

// warn logs a failure, at most once a minute. The caller holds writing.
func (s *Store) warn(err error) {
	if err == nil || errors.Is(err, errTooLarge) {
		return
	}
	if now := s.now(); s.warned.IsZero() || now.Sub(s.warned) >= warnInterval {
		s.warned = now
		s.log.Warn("using the cache folder failed", slog.String("folder", s.folder), slog.Any("error", err))
	}
}

// open locks the folder and reads its journals.
func (s *Store) open() error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(s.folder, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err = lock(file); err != nil {
		return errors.Join(err, file.Close())
	}
	s.file = file
	s.run.Store(rand.Uint64()) //nolint:gosec // only different from other runs
	numbers, err := s.numbers()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.index, s.segments = map[uint64]position{}, map[int64]*segment{}
	s.mu.Unlock()
	for _, number := range numbers {
		seg, err := openSegment(s.folder, number)
		if err != nil {
			return err
		}
		s.append(seg)
		if err = s.load(seg); err != nil {
			return err
		}
	}
	return s.makeRoom(0)
}

// numbers returns the numbers of the segments in ascending order, and deletes those that have only
// one file, or share a slot with a later one.
func (s *Store) numbers() ([]int64, error) {
	files, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, err
	}
	halves := map[int64]int{}
	for _, file := range files {
		var number int64
		stem, _, _ := strings.Cut(file.Name(), ".")
		if _, err := fmt.Sscanf(stem, "%d", &number); err == nil && number > 0 && file.Type().IsRegular() &&
			(file.Name() == dataName(number) || file.Name() == journalName(number)) {
			halves[number]++
		}
	}
	var numbers []int64
	for number, n := range halves {
		if n == 2 {
			numbers = append(numbers, number)
			continue
		}
		_ = os.Remove(filepath.Join(s.folder, dataName(number)))    // one of them
		_ = os.Remove(filepath.Join(s.folder, journalName(number))) // is missing
	}
	slices.Sort(numbers)
	for len(numbers) > 0 && numbers[len(numbers)-1]-numbers[0] >= slots-1 {
		err = errors.Join(os.Remove(filepath.Join(s.folder, dataName(numbers[0]))),
			os.Remove(filepath.Join(s.folder, journalName(numbers[0]))))
		if err != nil {
			return nil, err
		}
		numbers = numbers[1:]
	}
	return numbers, nil
}

// append makes seg the newest segment.
func (s *Store) append(seg *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, seg)
	s.segments[seg.number%slots] = seg
	s.total.Add(seg.size())
}

// load adds the records of a segment to the index.
func (s *Store) load(seg *segment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	damaged, err := seg.each(func(e entry) {
		if e.length == 0 || e.offset+framed(e.length) > seg.end {
			delete(s.index, e.id.short())
			return
		}
		s.index[e.id.short()] = newPosition(seg.number, e.offset, e.length)
	})
	s.damaged.Add(int64(damaged))
	return err
}

// segmentSize returns the size at which a segment is complete.
func (s *Store) segmentSize() int64 {
	size := s.maxSize.Load()
	return min(max(size/32, minSegment, 4*s.largest.Load()), maxSegment, size/4)
}

// active returns the segment that records are added to, or nil.
func (s *Store) active() *segment {
	if len(s.order) == 0 {
		return nil
	}
	return s.order[len(s.order)-1]
}

// rotate begins a new segment unless the active one has room for need bytes.
func (s *Store) rotate(need int64) error {
	number := int64(1)
	if seg := s.active(); seg != nil {
		if seg.size()+need <= s.segmentSize() {
			return nil
		}
		number = seg.number + 1
	}
	seg, err := openSegment(s.folder, number)
	if err == nil {
		s.append(seg)
	}
	return err
}

// makeRoom evicts the oldest segments until need bytes can be added, and later the records that are
// read from the next one evicted.
func (s *Store) makeRoom(need int64) error {
	limit := s.segmentSize()
	if need > limit {
		return errTooLarge
	}
	for len(s.order) > 0 && (s.total.Load()+need+limit/2 > s.maxSize.Load() ||
		s.active().number-s.order[0].number >= slots-1) {
		if err := s.evict(s.order[0], s.maxSize.Load()-s.total.Load()-need); err != nil {
			return err
		}
	}
	return nil
}

// evict removes the oldest segment. It copies the records that were read since they were written to
// the newest one, up to half of the bytes, so that there is always progress, and up to room.
func (s *Store) evict(seg *segment, room int64) error {
	if seg == s.active() {
		room = 0 // there is nowhere to copy to
	}
	room = min(room, seg.size()/2)
	damaged, err := seg.each(func(e entry) {
		if e.length == 0 {
			return
		}
		here := newPosition(seg.number, e.offset, e.length)
		s.mu.Lock()
		p, ok := s.index[e.id.short()]
		s.mu.Unlock()
		if !ok || !p.same(here) {
			return
		}
		need := aligned(framed(e.length)) + entrySize
		if p&wasRead != 0 && need <= room && s.rotate(need) == nil {
			moved, err := s.add(e.id, e.length, func(i int) ([]byte, error) { return seg.frame(e, i, s.scratch) })
			if err == nil {
				room -= need
				s.set(e.id, moved)
				return
			}
		}
		s.unset(e.id, p)
		s.evicted.Add(1)
	})
	if err != nil || damaged > 0 {
		s.forget(seg)
	}
	return s.drop(seg)
}

// forget removes the records of a segment with a damaged journal from the index.
func (s *Store) forget(seg *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for short, p := range s.index {
		if p.slot() == seg.number%slots {
			delete(s.index, short)
			s.evicted.Add(1)
		}
	}
}

// drop deletes a segment.
func (s *Store) drop(seg *segment) error {
	s.mu.Lock()
	delete(s.segments, seg.number%slots)
	s.order = slices.DeleteFunc(s.order, func(other *segment) bool { return other == seg })
	s.mu.Unlock()
	size := seg.size()
	err := seg.remove()
	s.total.Add(-size)
	return err
}

// add appends to the active segment, which has room.
func (s *Store) add(id identity, length int, frame func(number int) ([]byte, error)) (position, error) {
	seg := s.active()
	before := seg.size()
	p, err := seg.add(id, length, frame)
	s.total.Add(seg.size() - before)
	return p, err
}

func (s *Store) set(id identity, p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index[id.short()] = p
}

// unset removes a record from the index, if it is still at p.
func (s *Store) unset(id identity, p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.index[id.short()]; ok && now.same(p) {
		delete(s.index, id.short())
	}
}

// put stores a record. It reports whether it is stored.
func (s *Store) put(id identity, payload []byte) bool {
	if len(payload) == 0 || len(payload) > maxPayload || !s.ready() {
		return false
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.owned.Load() {
		return false
	}
	p, err := s.write(id, len(payload), func(i int) ([]byte, error) {
		chunk := payload[i*chunkSize : min((i+1)*chunkSize, len(payload))]
		frame := append(s.scratch[:0], chunk...)
		return binary.LittleEndian.AppendUint32(frame, id.sum(len(payload), i, chunk)), nil
	})
	if err != nil {
		s.warn(err)
		if errors.Is(err, fs.ErrNotExist) { // someone has deleted the folder
			s.warn(s.release())
		}
		return false
	}
	s.set(id, p)
	return true
}

// write makes room for a record and appends it.
func (s *Store) write(id identity, length int, frame func(number int) ([]byte, error)) (position, error) {
	need := aligned(framed(length)) + entrySize
	if err := s.makeRoom(need); err != nil {
		return 0, err
	}
	if err := s.rotate(need); err != nil {
		return 0, err
	}
	return s.add(id, length, frame)
}

// find returns the position of a record with length bytes, or any if length is 0.
func (s *Store) find(id identity, length int) (position, bool) {
	p, ok := s.index[id.short()]
	return p, ok && (length == 0 || length == p.length())
}

// has reports whether a record is stored.
func (s *Store) has(id identity, length int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.find(id, length)
	return ok
}

// chunk reads a chunk of a record with length bytes, or any if length is 0, into buf, which has
// frameSize bytes. A damaged record is removed from the index.
func (s *Store) chunk(id identity, length, number int, buf []byte) ([]byte, bool) {
	if !s.ready() {
		return nil, false
	}
	s.mu.Lock()
	p, ok := s.find(id, length)
	seg := s.segments[p.slot()]
	if !ok || seg == nil {
		s.mu.Unlock()
		return nil, false
	}
	if p&wasRead == 0 {
		s.index[id.short()] = p | wasRead
	}
	seg.using.RLock()
	s.mu.Unlock()
	frame, err := seg.frame(entry{id, p.offset(), p.length()}, number, buf)
	seg.using.RUnlock()
	if err != nil {
		s.unset(id, p)
		s.damaged.Add(1)
		return nil, false
	}
	return frame[:len(frame)-4], true
}

// remove removes a record, also for the next start.
func (s *Store) remove(id identity) {
	if !s.ready() {
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	p, ok := s.find(id, 0)
	s.mu.Unlock()
	if !ok {
		return
	}
	s.unset(id, p)
	_, err := s.write(id, 0, nil)
	s.warn(err)
}

// versionOf returns the counter of a record, which others share.
func (s *Store) versionOf(id identity) *version {
	return &s.versions[id.short()%uint64(len(s.versions))]
}

// version returns a number that invalidate changes.
func (s *Store) version(id identity) uint64 {
	v := s.versionOf(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.n
}

// invalidate removes a record and changes its version, which it returns.
func (s *Store) invalidate(id identity) uint64 {
	v := s.versionOf(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n++
	s.remove(id)
	return v.n
}

// putVersion stores a record unless it was invalidated since it had the version n.
func (s *Store) putVersion(id identity, n uint64, payload []byte) {
	v := s.versionOf(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.n == n {
		s.put(id, payload)
	}
}

// expect sets the size of the records that a driver stores. Some of them fit in a segment.
func (s *Store) expect(size int64) {
	for {
		largest := s.largest.Load()
		if size <= largest || s.largest.CompareAndSwap(largest, size) {
			return
		}
	}
}
