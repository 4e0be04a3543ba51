package listing

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
)

const (
	// KeepFrom is the number of entries from which a folder is kept. Smaller ones are read again.
	KeepFrom = 1000
	// KeepTime is how long entries are kept after their last use.
	KeepTime = 30 * time.Second
	// KeepFolders is the largest number of folders that are kept.
	KeepFolders = 16
	// keepCursors is the largest number of cursors that are kept.
	keepCursors = 1000
	// keepChanges is the largest number of changes of a folder that are kept. Each may be a request
	// for an object, and reading the folder again costs less than many of them.
	keepChanges = 200
)

// Folder has the entries of a folder in the order of the keys, from one name on. The names of
// folders end with a slash, so that "a-b" sorts before "a/". State is for the driver.
type Folder[E, S any] struct {
	Prefix string // of the keys
	From   string // the least possible name
	To     string // the greatest possible name; empty if there is no limit
	Sorted []E
	State  S

	changed map[string]bool // names that this process has changed since
	useless bool            // because of too many changes
}

// has reports whether f has the entries of a folder from one name on.
func (f *Folder[E, S]) has(prefix, from string) bool {
	return !f.useless && f.Prefix == prefix && f.From <= from && (f.To == "" || from <= f.To)
}

// Kept keeps the entries of the large folders that were listed last.
type Kept[E, S any] struct {
	Least, Most int                             // entries of a kept folder, and of all; tests have others
	Name        func(prefix string, e E) string // of an entry
	Same        func(a, b S) bool               // of two parts of a folder that has not changed between; may be nil
	Reading     locks.Names                     // of a folder, by prefix

	mu      sync.Mutex
	folders []*Folder[E, S] // the last used first
	read    []*Folder[E, S] // that are being read
	cursors map[string]bool // at which listings go on
	timer   *time.Timer
}

// TakeCursor reports whether a listing goes on at a cursor. Each cursor is good for one call, so
// that a page that is listed again has the latest names.
func (k *Kept[E, S]) TakeCursor(cursor string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	goesOn := k.cursors[cursor]
	delete(k.cursors, cursor)
	return goesOn
}

// AddCursor records where a listing goes on that has read the folders of the cursor.
func (k *Kept[E, S]) AddCursor(cursor string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if cursor == "" || len(k.folders) == 0 {
		return
	}
	if len(k.cursors) >= keepCursors || k.cursors == nil {
		k.cursors = map[string]bool{}
	}
	k.cursors[cursor] = true
}

// Find returns the entries of a folder from one name on; nil if they are not kept.
func (k *Kept[E, S]) Find(prefix, from string) *Folder[E, S] {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.folders, func(f *Folder[E, S]) bool { return f.has(prefix, from) })
	if i < 0 {
		return nil
	}
	found := k.folders[i]
	k.insert(slices.Delete(k.folders, i, i+1), found)
	return found
}

// Add keeps entries in place of earlier ones of their folder, unless these are another part of the
// same state of it.
func (k *Kept[E, S]) Add(f *Folder[E, S]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	others := slices.DeleteFunc(k.folders, func(o *Folder[E, S]) bool {
		overlap := (f.To == "" || o.From <= f.To) && (o.To == "" || f.From <= o.To)
		return o.Prefix == f.Prefix && (overlap || k.Same == nil || !k.Same(o.State, f.State))
	})
	if k.folders = others; len(f.Sorted) >= k.Least {
		k.insert(others, f)
	}
}

// insert keeps f before others, and as many of these as the limits allow. k.mu must be held.
func (k *Kept[E, S]) insert(others []*Folder[E, S], f *Folder[E, S]) {
	k.folders = slices.Insert(others, 0, f)
	total := 0
	for i, kept := range k.folders {
		if total += len(kept.Sorted); i == KeepFolders || i > 0 && total > k.Most {
			k.folders = slices.Delete(k.folders, i, len(k.folders))
			break
		}
	}
	if k.timer == nil {
		k.timer = time.AfterFunc(KeepTime, k.Clear)
	}
	k.timer.Reset(KeepTime)
}

// Clear releases all entries.
func (k *Kept[E, S]) Clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.folders, k.cursors = nil, nil
}

// Close releases all entries for good.
func (k *Kept[E, S]) Close() {
	if k.Clear(); k.timer != nil {
		k.timer.Stop()
	}
}

// Folders returns the folders that are kept.
func (k *Kept[E, S]) Folders() []*Folder[E, S] {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.folders)
}

// Change is called after this process has changed an object, or has tried to.
func (k *Kept[E, S]) Change(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for end := len(key); end > 0; { // the object and the folders above it
		begin := strings.LastIndexByte(key[:end-1], '/') + 1
		for _, f := range slices.Concat(k.folders, k.read) {
			if f.useless || f.Prefix != key[:begin] {
				continue
			}
			if f.changed == nil {
				f.changed = map[string]bool{}
			}
			f.changed[key[begin:end]] = true // a listing that has found f before needs the names still
			f.useless = len(f.changed) > keepChanges
		}
		end = begin
	}
}

// changes returns the changed names of a folder from one name on, in their order.
func (k *Kept[E, S]) changes(f *Folder[E, S], from string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	names := slices.Sorted(maps.Keys(f.changed))
	i, _ := slices.BinarySearch(names, from)
	return names[i:]
}

// Walk passes to take the entries of a folder that a listing may want, in their order. read returns
// those from a name on, or nil for a missing folder. An entry is nil if this process may have
// changed it since it was read.
func (k *Kept[E, S]) Walk(
	opts storagedrivers.ListOptions, prefix string,
	read func(from string) (*Folder[E, S], error), take func(name string, e *E) error,
) error {
	begin := firstName(opts.Prefix, prefix) // of the wanted names
	from := max(begin, firstName(opts.Cursor, prefix))
	for {
		f, err := read(from)
		if f == nil || err != nil {
			return err
		}
		i, _ := slices.BinarySearchFunc(f.Sorted, from, func(e E, from string) int { return strings.Compare(k.Name(prefix, e), from) })
		for name, e := range merged(k, f, i, k.changes(f, from)) {
			if !strings.HasPrefix(name, begin) {
				return nil
			}
			if err := take(name, e); err != nil {
				return err
			}
		}
		if f.To == "" {
			return nil
		}
		from = f.To + "\x00"
	}
}

// merged returns the entries from an index on, with the changed names among them.
func merged[E, S any](k *Kept[E, S], f *Folder[E, S], i int, changed []string) iter.Seq2[string, *E] {
	return func(yield func(string, *E) bool) {
		for i < len(f.Sorted) || len(changed) > 0 {
			var name string
			var e *E
			if i < len(f.Sorted) {
				name, e = k.Name(f.Prefix, f.Sorted[i]), &f.Sorted[i]
			}
			if len(changed) > 0 && (e == nil || changed[0] <= name) {
				if changed[0] != name {
					name, e = changed[0], nil
				} else if i++; !strings.HasSuffix(name, "/") {
					e = nil
				}
				changed = changed[1:]
			} else {
				i++
			}
			if f.To != "" && name > f.To || !yield(name, e) {
				return
			}
		}
	}
}

// firstName returns the part of a key that is a name in a folder, with the slash of a folder. It is
// empty if the key is not below the folder.
func firstName(key, folder string) string {
	name, below := strings.CutPrefix(key, folder)
	if !below {
		return ""
	}
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name = name[:i+1]
	}
	return name
}

// Remote keeps the entries of folders on another host, which has no sure sign of a change. State is
// until when they are good.
type Remote[E any] struct {
	Kept[E, time.Time]
	Now func() time.Time
}

// KeepRemote is the largest number of entries in memory, about 50 MiB. A larger folder is listed in
// parts of half as many.
const KeepRemote = 1 << 18

// Folder returns the entries of a folder from one name on, which read returns in any order. A
// listing that goes on in the folder may use those that were read in the last 30 seconds, or ten
// times as long as reading took.
func (r *Remote[E]) Folder(
	ctx context.Context, opts storagedrivers.ListOptions, prefix, from string, read func() ([]E, error),
) (*Folder[E, time.Time], error) {
	unlock, err := r.Reading.Lock(ctx, prefix)
	if err != nil {
		return nil, err
	}
	defer unlock()
	begin := r.Now()
	if len(opts.Cursor) > len(prefix) && strings.HasPrefix(opts.Cursor, prefix) {
		if kept := r.Find(prefix, from); kept != nil && begin.Before(kept.State) {
			return kept, nil
		}
	}
	f := &Folder[E, time.Time]{Prefix: prefix, From: from}
	r.mu.Lock()
	r.read = append(r.read, f) // so that it knows the changes from now on
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.read = slices.DeleteFunc(r.read, func(o *Folder[E, time.Time]) bool { return o == f })
	}()
	entries, err := read()
	if err != nil {
		return nil, err
	}
	compare := func(a, b E) int { return strings.Compare(r.Name(prefix, a), r.Name(prefix, b)) }
	slices.SortFunc(entries, compare)
	i, _ := slices.BinarySearchFunc(entries, from, func(e E, from string) int { return strings.Compare(r.Name(prefix, e), from) })
	if f.Sorted = entries[i:]; len(f.Sorted) > r.Most {
		f.Sorted = slices.Clone(f.Sorted[:r.Most/2])
		f.To = r.Name(prefix, f.Sorted[len(f.Sorted)-1])
	} else if i > 0 { // so that the whole folder is not held
		f.Sorted = slices.Clone(f.Sorted)
	}
	end := r.Now()
	f.State = end.Add(max(KeepTime, 10*end.Sub(begin)))
	r.Add(f)
	return f, nil
}
