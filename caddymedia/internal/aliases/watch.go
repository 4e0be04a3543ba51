package aliases

import "sync"

// watches record which items are stored. Like the locks of items they outlast a reload.
var watches struct {
	mu  sync.Mutex
	all map[*Watch]bool
}

// Watch records the items of an alias that this process has stored since it began, whatever their
// ModTime is.
type Watch struct {
	alias  *Alias
	stored map[string]bool // by the names of their locks
}

// Watch begins a watch. Call End.
func (a *Alias) Watch() *Watch {
	watches.mu.Lock()
	defer watches.mu.Unlock()
	w := &Watch{a, map[string]bool{}}
	if watches.all == nil {
		watches.all = map[*Watch]bool{}
	}
	watches.all[w] = true
	return w
}

// End ends the watch.
func (w *Watch) End() {
	watches.mu.Lock()
	defer watches.mu.Unlock()
	delete(watches.all, w)
}

// Stored reports whether an item was stored since the watch began. The answer is exact for a caller
// that holds the lock of the item.
func (w *Watch) Stored(filename string) bool {
	watches.mu.Lock()
	defer watches.mu.Unlock()
	return w.stored[w.alias.LockName(filename)]
}

// Stored is called by a commit that has stored an item, while it holds the lock of the item.
func (a *Alias) Stored(filename string) {
	watches.mu.Lock()
	defer watches.mu.Unlock()
	item := a.Location().Join(filename)
	for w := range watches.all {
		if w.alias.Location().Overlaps(item) {
			w.stored[item.String()] = true
		}
	}
}
