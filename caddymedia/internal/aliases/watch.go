package aliases

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/caddymedia/media/storagedrivers"
)

// recent numbers the items that this process stores, for all watches. Like the locks of items it
// outlasts a reload.
var recent = newStoredItems(1 << 16)

// storedItems numbers items that are stored, and knows the numbers of the last ones. An item is
// known by the hash of the name of its lock.
type storedItems struct {
	seed maphash.Seed

	mu      sync.Mutex
	last    uint64                // number
	ring    []uint64              // hashes, at their numbers modulo its length
	numbers map[uint64]storedItem // by hashes
}

// storedItem is the last generation of an item that this process has stored.
type storedItem struct {
	number, generation uint64
}

func newStoredItems(most int) *storedItems {
	return &storedItems{seed: maphash.MakeSeed(), ring: make([]uint64, most), numbers: map[uint64]storedItem{}}
}

func (s *storedItems) add(name string, info storagedrivers.Info) {
	hash := maphash.String(s.seed, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	oldest := &s.ring[s.last%uint64(len(s.ring))]
	if s.numbers[*oldest].number+uint64(len(s.ring)) == s.last { // it was not stored again
		delete(s.numbers, *oldest)
	}
	*oldest, s.numbers[hash] = hash, storedItem{s.last, s.generation(info)}
}

// generation returns a hash of what sets an object apart from others of its name.
func (s *storedItems) generation(info storagedrivers.Info) uint64 {
	return maphash.String(s.seed, cmp.Or(info.ETag, fmt.Sprint(info.Size, " ", info.ModTime.UnixNano())))
}

// find reports whether an item was stored after the number began, or the object of info last before
// it. An item that is not known any more counts as stored after it.
func (s *storedItems) find(name string, info storagedrivers.Info, began uint64) (before, after bool) {
	hash := maphash.String(s.seed, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	item, known := s.numbers[hash]
	if !known {
		return false, s.last-began >= uint64(len(s.ring))
	}
	return item.number <= began && item.generation == s.generation(info), item.number > began
}

// Watch knows which items of an alias this process has stored before it began and since, whatever
// their ModTime is. It costs nothing while it lasts.
type Watch struct {
	alias *Alias
	began uint64 // the number of the last item before it
}

// Watch begins a watch.
func (a *Alias) Watch() Watch {
	recent.mu.Lock()
	defer recent.mu.Unlock()
	return Watch{a, recent.last}
}

// Stored reports whether an item was stored since the watch began, or its object of info last before
// it; neither if this process has not stored it. The answer is exact for a caller that holds the lock
// of the item. After 65,536 more items, any unknown one counts as stored since.
func (w Watch) Stored(filename string, info storagedrivers.Info) (before, since bool) {
	return recent.find(w.alias.LockName(filename), info, w.began)
}

// Stored is called by a commit that has stored an item, while it holds the lock of the item.
func (a *Alias) Stored(filename string, info storagedrivers.Info) {
	recent.add(a.LockName(filename), info)
}
