// Package cache keeps blocks of objects in a local folder, in front of a driver whose backend is
// far away. It is no driver of its own, and keeps nothing that the backend has not stored.
//
// Begin with [Store], which is the folder: it has a file for each block, and one for the
// description of each object. [New] returns a driver behind a store. The package is stable.
package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/caddymedia/media/storagedrivers/queue"
)

// Options of a [Store]. Zero values are defaults.
type Options struct {
	// Folder of the cached data. It is created if it is missing. It is required.
	Folder string
	// MaxSize is the largest size of all files of the store in bytes, as the file system allocates
	// them; 0 is 10 GiB.
	MaxSize int64
	// Log gets warnings about the folder. Nil: none.
	Log *slog.Logger
}

// Stats describe a [Store].
type Stats struct {
	// Entries is the number of files, Bytes their size as the file system allocates it, and MaxSize
	// its limit.
	Entries        int
	Bytes, MaxSize int64
	// Hits and Misses count reads of blocks, Evicted the files that were removed to make room, and
	// Damaged those that had a wrong checksum, since the start.
	Hits, Misses, Evicted, Damaged int64
	// Owned reports whether this process uses the folder.
	Owned bool
}

const (
	defaultSize   = 10 << 30
	lockName      = "lock"
	retryInterval = time.Second // between attempts to use the folder
	warnInterval  = time.Minute

	// samples is how many files the least recently used one is chosen from. An order of all files
	// would take more memory than the index.
	samples = 16
)

var (
	errInUse  = errors.New("another process uses the folder")
	errNoRoom = errors.New("there is no room in the cache")
)

// Store is a folder of cached blocks. It is safe for concurrent use, and several drivers may share
// it. It belongs to the process that has locked it. For other processes every read is a miss.
type Store struct {
	folder  string
	log     *slog.Logger
	now     func() time.Time
	maxSize atomic.Int64
	owned   atomic.Bool
	total   atomic.Int64 // of all files, as sizeOnDisk returns it
	run     atomic.Uint64

	fetching *queue.Queue // memory of blocks on their way; see [Store.acquire]

	hits, misses, evicted, damaged atomic.Int64

	versions [1 << 14]version // by identity

	writing     sync.Mutex // held while files are written and removed
	lockFile    *os.File   // nil unless owned
	closed      bool
	lastAttempt time.Time
	warned      time.Time
	scratch     []byte

	mu    sync.Mutex // of the following; held only for moments
	index map[identity]entry
	clock uint32 // counts the files that were written; it may wrap around
}

// entry is a file of the index.
type entry struct {
	length uint32 // of the payload
	used   uint32 // the clock at the last use; 0: before the start
}

// version counts the changes of the objects that share it, and keeps the record of one of them.
type version struct {
	mu     sync.Mutex
	n      uint64
	id     identity
	record *record // nil: none
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
	s.SetMaxSize(o.MaxSize)
	return s
}

// SetMaxSize sets the largest size of all files in bytes; 0 is 10 GiB. It evicts files beyond it.
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

// Empty removes all files of the store. The error is that of removing the files, or of a folder
// that cannot be used.
func (s *Store) Empty() error {
	ready := s.ready()
	s.writing.Lock()
	defer s.writing.Unlock()
	if !ready || !s.owned.Load() {
		return fmt.Errorf("emptying the cache %s: the folder cannot be used", s.folder)
	}
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.index))
	s.mu.Unlock()
	var err error
	for _, id := range ids {
		err = errors.Join(err, s.drop(id))
	}
	return err
}

// Close releases the folder. Later reads are misses. Further calls do nothing.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.closed = true
	return s.release()
}

// release unlocks the folder, which another process may then use. The caller holds writing.
func (s *Store) release() error {
	s.owned.Store(false)
	s.mu.Lock()
	s.index = nil
	s.mu.Unlock()
	s.total.Store(0)
	if s.lockFile == nil {
		return nil
	}
	err := errors.Join(unlock(s.lockFile), s.lockFile.Close())
	s.lockFile = nil
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
	if err := s.start(); err != nil {
		s.warn(errors.Join(err, s.release()))
		return false
	}
	s.owned.Store(true)
	return true
}

// warn logs a failure, at most once a minute. The caller holds writing.
func (s *Store) warn(err error) {
	if err == nil || errors.Is(err, errNoRoom) {
		return
	}
	if now := s.now(); s.warned.IsZero() || now.Sub(s.warned) >= warnInterval {
		s.warned = now
		s.log.Warn("the cache folder cannot be used; objects come from the backend", slog.String("folder", s.folder), slog.Any("error", err))
	}
}

// start locks the folder and reads the names in it.
func (s *Store) start() error {
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
	s.lockFile = file
	s.run.Store(rand.Uint64()) //nolint:gosec // only different from other runs
	if err = os.Remove(filepath.Join(s.folder, unfinishedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	s.index, s.clock = map[identity]entry{}, 1
	s.mu.Unlock()
	for i := range subfolders {
		if err = s.load(subfolders[i : i+1]); err != nil {
			return err
		}
	}
	return s.makeRoom(0)
}

// load adds the files of a subfolder to the index. It opens none of them. Other files are left
// alone.
func (s *Store) load(subfolder string) error {
	path := filepath.Join(s.folder, subfolder)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		id, length, ok := parseName(name)
		if _, twice := s.index[id]; !ok || twice || name[:1] != subfolder {
			continue
		}
		s.index[id] = entry{length: uint32(length)}
		s.total.Add(sizeOnDisk(length))
	}
	return nil
}

// makeRoom evicts files until need bytes can be added. The caller holds writing.
func (s *Store) makeRoom(need int64) error {
	limit := s.maxSize.Load() - int64(len(subfolders)+1)*allocation
	if need > limit {
		return errNoRoom
	}
	for s.total.Load()+need > limit {
		if err := s.evict(); err != nil {
			return err
		}
	}
	return nil
}

// evict removes the least recently used one of some files. The caller holds writing.
func (s *Store) evict() error {
	some := make(map[identity]entry, samples)
	s.mu.Lock()
	for id, e := range s.index { // it begins anywhere
		if some[id] = e; len(some) == samples {
			break
		}
	}
	s.mu.Unlock()
	var oldest identity
	oldestAge := int64(-1)
	for id, e := range some {
		if age := s.age(id, e); age > oldestAge {
			oldest, oldestAge = id, age
		}
	}
	if oldestAge < 0 {
		return errNoRoom // other files could not be removed
	}
	s.evicted.Add(1)
	return s.drop(oldest)
}

// age orders files by their last use. For those that were not used since the start, that is when
// they were written.
func (s *Store) age(id identity, e entry) int64 {
	if e.used != 0 {
		return int64(s.clock - e.used) // only put changes the clock, and holds writing
	}
	info, err := os.Lstat(s.path(id, int(e.length)))
	if err != nil {
		return math.MaxInt64
	}
	return math.MaxInt64 - max(info.ModTime().UnixNano(), 0)/2
}

// drop removes a file, if it is in the index. The caller holds writing.
func (s *Store) drop(id identity) error {
	s.mu.Lock()
	e, ok := s.index[id]
	delete(s.index, id)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	path := s.path(id, int(e.length))
	_ = os.Truncate(path, 0) // otherwise the disk keeps it while a reader has it open
	err := os.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		s.total.Add(-sizeOnDisk(int(e.length)))
		return nil
	}
	return err
}

// put stores a payload in place of an earlier one. It reports whether it is stored.
func (s *Store) put(id identity, payload []byte) bool {
	if len(payload) == 0 || len(payload) > maxPayload || !s.ready() {
		return false
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.owned.Load() {
		return false
	}
	err := s.write(id, payload)
	s.warn(err)
	switch {
	case errors.Is(err, fs.ErrNotExist): // someone has deleted the folder
		s.warn(s.release())
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT): // make room for the next one
		s.warn(s.evict())
	}
	return err == nil
}

// write makes room for a file and writes it. It gets its name when it is complete.
func (s *Store) write(id identity, payload []byte) error {
	size := sizeOnDisk(len(payload))
	if err := s.makeRoom(size); err != nil {
		return err
	}
	unfinished := filepath.Join(s.folder, unfinishedName)
	err := s.writeFile(unfinished, id, payload)
	if err == nil {
		err = s.drop(id) // before the rename, so that there are never two of them
	}
	if err == nil {
		err = os.Rename(unfinished, s.path(id, len(payload)))
	}
	if err != nil {
		_ = os.Remove(unfinished) // otherwise the next file replaces it
		return err
	}
	s.total.Add(size)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	s.index[id] = entry{uint32(len(payload)), s.clock}
	return nil
}

// has reports whether a payload with length bytes is stored.
func (s *Store) has(id identity, length int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.index[id]
	return ok && int(e.length) == length
}

// use returns the entry of a payload with length bytes, or any if length is 0.
func (s *Store) use(id identity, length int) (e entry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok = s.index[id]
	if !ok || length != 0 && length != int(e.length) {
		return e, false
	}
	if e.used != s.clock {
		e.used = s.clock
		s.index[id] = e
	}
	return e, true
}

// block is an open file of a payload, for one reader.
type block struct {
	store  *Store
	file   *os.File
	id     identity
	length int
}

// block opens the file of a payload with length bytes, or any if length is 0. It returns nil if
// there is none. A file that cannot be opened is removed.
func (s *Store) block(id identity, length int) *block {
	if !s.ready() {
		return nil
	}
	e, ok := s.use(id, length)
	if !ok {
		return nil
	}
	b := &block{store: s, id: id, length: int(e.length)}
	var err error
	if b.file, err = os.Open(s.path(id, b.length)); err != nil {
		b.damaged()
		return nil
	}
	return b
}

// chunk reads a chunk into buf, which has frameSize bytes. A file that cannot be read, or has
// another checksum, is removed.
func (b *block) chunk(number int, buf []byte) ([]byte, bool) {
	b.store.use(b.id, b.length) // a slow reader still uses it
	chunk, err := readChunk(b.file, b.id, b.length, number, buf)
	if err != nil {
		b.damaged()
	}
	return chunk, err == nil
}

// damaged removes the file, unless that is why it cannot be read.
func (b *block) damaged() {
	if b.store.has(b.id, b.length) {
		b.store.damaged.Add(1)
		b.store.remove(b.id)
	}
}

func (b *block) close() {
	if b != nil {
		_ = b.file.Close() // it was only read
	}
}

// remove removes a file.
func (s *Store) remove(id identity) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.warn(s.drop(id))
}

// versionOf returns the version of an object, which others share.
func (s *Store) versionOf(id identity) *version {
	return &s.versions[binary.LittleEndian.Uint16(id[:])%uint16(len(s.versions))]
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
	if s.ready() {
		s.remove(id)
	}
	return v.n
}

// putRecord stores a record unless it was invalidated since it had the version n.
func (s *Store) putRecord(id identity, n uint64, rec record) {
	v := s.versionOf(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := json.Marshal(rec)
	if err == nil && len(b) <= chunkSize && v.n == n && s.put(id, b) {
		v.id, v.record = id, &rec
	}
}

// record returns a stored record. It reads no file if it was the last one of its version.
func (s *Store) record(id identity) (rec record, ok bool) {
	v := s.versionOf(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.record != nil && v.id == id {
		if _, ok = s.use(id, 0); ok { // it was not removed
			return *v.record, true
		}
	}
	block := s.block(id, 0)
	if block == nil {
		return rec, false
	}
	defer block.close()
	buf := buffers.Get().(*[frameSize]byte) //nolint:forcetypeassert // of this type only
	defer buffers.Put(buf)
	b, ok := block.chunk(0, buf[:])
	if !ok || json.Unmarshal(b, &rec) != nil {
		return record{}, false
	}
	v.id, v.record = id, &rec
	return rec, true
}
