package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// TrashQuery selects a page of what the trash of an alias keeps, and has not ended.
type TrashQuery struct {
	Alias *item.Alias
	// Folder of the items, relative to the alias, and all below; empty for all.
	Folder string
	// Filename of the only item whose generations are listed; empty for all items.
	Filename string
	// Search is a part of the filenames, see [ItemFilter]. Unlike a list, the trash has no folders to
	// find: a name is found by its folders too.
	Search string
	// All includes the entries that are doubles of others, or of present items.
	All bool
	// OldestFirst lists what was removed first before the rest. Otherwise it comes last.
	OldestFirst bool
	// Limit is the maximum number of entries of a page.
	Limit int
	// Cursor is the Next of the previous page; empty for the first page.
	Cursor string
	// MaxExamined and MaxTime bound a page, which ends early then.
	MaxExamined int
	MaxTime     time.Duration
}

// InTrash is an entry in the trash.
type InTrash struct {
	item.Kept
	Size int64
}

// TrashPage is a page of entries.
type TrashPage struct {
	Entries []InTrash
	// Next is the cursor of the next page; empty on the last.
	Next string
	// Incomplete means that the bounds of the query ended the page.
	Incomplete bool
}

// trashWorkers is how many items are compared with entries, or entries removed, side by side.
const trashWorkers = 8

// ListTrash returns a page of entries in the order of removal. A generation that is kept twice,
// because two deletions of it were under way, is listed once. One that is still the present item,
// because its deletion was cut, is not listed. The error is ErrCursor or that of the storage.
func (s *Service) ListTrash(ctx context.Context, q TrashQuery) (TrashPage, error) {
	return s.listTrash(ctx, q, sliceLength)
}

// sliceLength is the number of entries that are put into the order of a query at once.
const sliceLength = 10_000

func (s *Service) listTrash(ctx context.Context, q TrashQuery, slice int) (TrashPage, error) {
	isItem, matches := ItemFilter(q.Alias, ""), nameFilter(q.Search)
	wants := func(filename string) bool { return isItem(filename) && matches(filename) }
	w := &trashWalk{TrashQuery: q, now: s.now(), most: slice, wants: wants, seen: map[string]bool{}}
	if q.Cursor != "" {
		after, ok := item.KeptOf(q.Cursor + "/x") // it has no filename, which may be that of another user
		if !ok {
			return TrashPage{}, ErrCursor
		}
		w.after = &after
		w.seen[generationOf(after)] = true // its double may be the next entry
	}
	bounded := ctx
	if q.MaxTime > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, q.MaxTime)
		defer cancel()
	}
	err := w.walk(ctx, bounded)
	if errors.Is(err, errPageEnds) || w.last != "" && bounded.Err() != nil && ctx.Err() == nil {
		w.page.Next, err = w.last, nil
	}
	w.page.Incomplete = w.page.Next != "" && len(w.page.Entries) < w.Limit
	if err == nil && w.hidesDoubles() {
		err = w.dropPresent(ctx)
	}
	return w.page, err
}

// errPageEnds ends a walk.
var errPageEnds = errors.New("the page is full")

// trashWalk collects a page of entries.
type trashWalk struct {
	TrashQuery
	now      time.Time
	most     int // entries of a slice
	wants    func(filename string) bool
	after    *item.Kept // the last entry before the page; nil for none
	seen     map[string]bool
	examined int
	last     string // the head of the last entry that was examined
	page     TrashPage
}

// walk visits the hours in the order of the query. bounded ends with the time of the query; the
// first listing may take longer.
func (w *trashWalk) walk(ctx, bounded context.Context) error {
	hours, err := w.hours(ctx)
	if err != nil {
		return err
	}
	for _, hour := range hours {
		if !w.isBefore(hour, hour.Add(time.Hour)) {
			if err := w.hour(ctx, bounded, hour); err != nil {
				return err
			}
		}
	}
	return nil
}

// hours returns the hours of the trash, in the order of the query.
func (w *trashWalk) hours(ctx context.Context) (hours []time.Time, err error) {
	err = eachHour(ctx, w.Alias, func(hour time.Time, isObject bool) error {
		if !isObject {
			hours = append(hours, hour)
		}
		return nil
	})
	if !w.OldestFirst {
		slices.Reverse(hours)
	}
	return hours, err
}

// eachHour calls f for the hours in which something was removed, the first one first, and for
// objects of their names.
func eachHour(ctx context.Context, alias *item.Alias, f func(hour time.Time, isObject bool) error) error {
	opts := storagedrivers.ListOptions{Prefix: alias.TrashRoot() + "/", Shallow: true}
	for {
		page, err := alias.Storage.List(ctx, opts)
		if err != nil {
			return err
		}
		for _, entry := range entriesOf(page) {
			if hour, ok := alias.HourOf(entry.Key); ok {
				if err := f(hour, !isFolder(entry)); err != nil {
					return err
				}
			}
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			return nil
		}
	}
}

// isBefore reports whether all entries from one time to another are of earlier pages.
func (w *trashWalk) isBefore(from, to time.Time) bool {
	switch {
	case w.after == nil:
		return false
	case w.OldestFirst:
		return !to.After(w.after.Removed)
	default:
		return from.After(w.after.Removed)
	}
}

// hour visits the entries of an hour. All their IDs begin with the digits that the first and the
// last microsecond of the hour share.
func (w *trashWalk) hour(ctx, bounded context.Context, hour time.Time) error {
	first, last := fmt.Sprintf("%016d", hour.UnixMicro()), fmt.Sprintf("%016d", hour.Add(time.Hour).UnixMicro()-1)
	shared := 0
	for first[shared] == last[shared] {
		shared++
	}
	return w.slice(ctx, bounded, w.Alias.TrashHour(hour)+"/", first[:shared])
}

// digits is the number of digits of a time in an ID.
const digits = 16

// slice visits the entries whose IDs begin with some digits of the time. If there are many, it
// visits them in ten slices by the next digit. Until an entry is examined, bounded does not end it,
// so that each page makes progress.
func (w *trashWalk) slice(ctx, bounded context.Context, folder, start string) error {
	if w.last != "" {
		ctx = bounded
	}
	from, to := bounds(start)
	if w.isBefore(from, to) {
		return nil
	}
	var found []storagedrivers.Info
	for info, err := range w.Alias.Storage.All(ctx, folder+start) {
		if err != nil {
			return err
		}
		found = append(found, info)
		if len(found) > w.most && len(start) < digits {
			return w.tenths(ctx, bounded, folder, start)
		}
	}
	if !w.OldestFirst {
		slices.Reverse(found)
	}
	for _, info := range found {
		if err := w.visit(info); err != nil {
			return err
		}
	}
	return nil
}

func (w *trashWalk) tenths(ctx, bounded context.Context, folder, start string) error {
	for n := range 10 {
		if !w.OldestFirst {
			n = 9 - n
		}
		if err := w.slice(ctx, bounded, folder, fmt.Sprint(start, n)); err != nil {
			return err
		}
	}
	return nil
}

// bounds returns the first time whose digits begin with start, and the first one after all of them.
func bounds(start string) (from, to time.Time) {
	var number, width int64 = 0, 1
	for i := range digits {
		number *= 10
		if i < len(start) {
			number += int64(start[i] - '0')
		} else {
			width *= 10
		}
	}
	return time.UnixMicro(number), time.UnixMicro(number + width)
}

// visit adds an entry to the page, if it belongs there.
func (w *trashWalk) visit(info storagedrivers.Info) error {
	kept, ok := w.Alias.KeptAt(info.Key)
	if !ok || w.isEarlier(kept) {
		return nil
	}
	if len(w.page.Entries) == w.Limit || w.MaxExamined > 0 && w.examined == w.MaxExamined {
		return errPageEnds
	}
	w.examined++
	w.last = kept.Head()
	generation := generationOf(kept)
	if w.selects(kept) && (!w.seen[generation] || !w.hidesDoubles()) {
		w.seen[generation] = true
		w.page.Entries = append(w.page.Entries, InTrash{Kept: kept, Size: info.Size})
	}
	return nil
}

// generationOf identifies the generation of an entry.
func generationOf(kept item.Kept) string { return fmt.Sprint(kept.Generation, kept.Stored.UnixMicro()) }

// isEarlier reports whether an entry belongs to an earlier page.
func (w *trashWalk) isEarlier(kept item.Kept) bool {
	if w.after == nil {
		return false
	}
	order := strings.Compare(kept.Head(), w.after.Head())
	if w.OldestFirst {
		return order <= 0
	}
	return order >= 0
}

// hidesDoubles reports whether the list omits a second entry of a generation. Only a storage with
// entity tags, or with times of its own, tells two generations of one second apart.
func (w *trashWalk) hidesDoubles() bool {
	features := w.Alias.Storage.Features()
	return !w.All && (features.Copies || features.Dated || features.Compare == storagedrivers.Atomic)
}

// selects reports whether the query asks for an entry.
func (w *trashWalk) selects(kept item.Kept) bool {
	switch {
	case w.Alias.HasEnded(kept, w.now), naming.IsReserved(kept.Filename):
		return false
	case w.Filename != "":
		return kept.Filename == w.Filename
	}
	return strings.HasPrefix(w.Alias.Key(kept.Filename), w.Alias.Below(w.Folder)) && w.wants(kept.Filename)
}

// dropPresent drops the entries whose generations are present items: a crash may leave a copy of an
// item that is still there, where a commit is not one for several objects.
func (w *trashWalk) dropPresent(ctx context.Context) error {
	present := make([]bool, len(w.page.Entries))
	err := errors.Join(guard.Each(len(present), trashWorkers, func(i int) (err error) {
		present[i], err = isPresent(ctx, w.Alias, w.page.Entries[i].Kept)
		return err
	})...)
	entries := w.page.Entries[:0]
	for i, entry := range w.page.Entries {
		if !present[i] {
			entries = append(entries, entry)
		}
	}
	w.page.Entries = entries
	return err
}

// isPresent reports whether the generation of an entry is the present item of its name.
func isPresent(ctx context.Context, alias *item.Alias, kept item.Kept) (bool, error) {
	info, err := item.Stat(ctx, alias.Storage, alias.Key(kept.Filename))
	return err == nil && info.Key != "" && kept.IsOf(info), err
}

// Interval bounds of sweeping an alias.
const (
	minSweepInterval = time.Minute
	maxSweepInterval = time.Hour
)

// sweepAlias removes in the background what has ended of an alias, or of its trash, until ctx ends.
// kept is how long it is kept; 0 for ever.
func (s *Service) sweepAlias(ctx context.Context, alias *item.Alias, what string, kept time.Duration, sweep func(context.Context, *item.Alias) error) {
	if kept == 0 {
		return
	}
	interval := min(max(kept, minSweepInterval), maxSweepInterval)
	s.background(what, func() {
		for s.health.awaitReachable(ctx, alias.Storage.Name()) {
			err := guard.Call(func() error { return sweep(ctx, alias) })
			if errors.Is(err, storagedrivers.ErrClosed) {
				return
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, storagedrivers.ErrUnavailable) {
				s.log.Warn(what, "alias", alias.Name, "storage", alias.Storage.Name(), "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	})
}

// SweepTrash removes the ended entries from the trash of an alias, and reports the number and size
// of the others to the observer. It asks the storage once, and for each hour whose entries may have
// changed since the last time. An entry that cannot be removed does not stop the rest.
func (s *Service) SweepTrash(ctx context.Context, alias *item.Alias) error {
	var left error
	known, counts := s.process.usages.trashOf(alias), trashCounts{}
	err := eachHour(ctx, alias, func(hour time.Time, isObject bool) error {
		var err error
		switch {
		case isObject: // of removeFolders, which was cut
			err = item.Remove(ctx, alias.Storage, alias.TrashHour(hour))
		case s.isSettled(hour) && known[hour] != Count{} && s.now().Before(hour.Add(alias.Trash)):
			counts[hour] = known[hour]
		default:
			counts[hour], err = s.sweepHour(ctx, alias, hour)
		}
		if ctx.Err() != nil || errors.Is(err, storagedrivers.ErrUnavailable) || errors.Is(err, storagedrivers.ErrClosed) {
			return err
		}
		left = errors.Join(left, err)
		return nil
	})
	if err == nil {
		s.observer.TrashHeld(alias, counts.sum())
		s.process.usages.setTrash(alias, known, counts)
	}
	return errors.Join(err, left)
}

// sweepHour removes what has ended of an hour. It returns what is left.
func (s *Service) sweepHour(ctx context.Context, alias *item.Alias, hour time.Time) (left Count, err error) {
	work := guard.NewGroup(trashWorkers)
	for info, err := range alias.Storage.All(ctx, alias.TrashHour(hour)+"/") {
		if err != nil {
			return left, errors.Join(err, work.Wait())
		}
		if kept, ok := alias.KeptAt(info.Key); ok && alias.HasEnded(kept, s.now()) {
			work.Go(func() error { return item.Remove(ctx, alias.Storage, info.Key) })
		} else {
			left.add(info)
		}
	}
	err = work.Wait()
	if err == nil && left.Objects == 0 && s.isSettled(hour) {
		err = removeFolders(ctx, alias.Storage, alias.TrashHour(hour))
	}
	return left, err
}

// isSettled reports whether nothing more is kept in an hour.
func (s *Service) isSettled(hour time.Time) bool {
	return hour.Add(time.Hour + clockDifference).Before(s.now())
}

// trashCounts are what a trash holds, by the hour of the removal.
type trashCounts map[time.Time]Count

func (c trashCounts) sum() (all Count) {
	for _, of := range c {
		all.Objects += of.Objects
		all.Bytes += of.Bytes
	}
	return all
}

// trashOf returns what the trash of an alias held at its last sweep.
func (u *usages) trashOf(alias *item.Alias) trashCounts {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.trash[alias.TrashLocation()])
}

// setTrash sets what the trash of an alias holds. Of an hour that was known before the sweep, and
// is not any more, an entry was purged meanwhile.
func (u *usages) setTrash(alias *item.Alias, before, counts trashCounts) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for hour := range before {
		if _, known := u.trash[alias.TrashLocation()][hour]; !known {
			delete(counts, hour)
		}
	}
	u.trash[alias.TrashLocation()] = counts
}

// Purge removes an entry from the trash, see [upload.Uploader.Purge]. The next sweep counts its
// hour again.
func (s *Service) Purge(ctx context.Context, alias *item.Alias, kept item.Kept, actor item.Actor) error {
	u := s.process.usages
	u.mu.Lock()
	delete(u.trash[alias.TrashLocation()], kept.Removed.Truncate(time.Hour))
	u.mu.Unlock()
	return s.Uploader().Purge(ctx, alias, kept, actor)
}

// PurgeDoubles removes all other entries of the generations of purged ones, which no list shows: a
// crash may leave them where a commit is not one for several objects, and so may two processes that
// remove or replace an item at the same time. It looks through the whole trash.
func (s *Service) PurgeDoubles(ctx context.Context, alias *item.Alias, purged []item.Kept, actor item.Actor) error {
	if len(purged) == 0 {
		return nil
	}
	generations := map[string]bool{}
	for _, kept := range purged {
		generations[generationOf(kept)] = true
	}
	work := guard.NewGroup(trashWorkers)
	query := TrashQuery{Alias: alias, All: true, Limit: sliceLength}
	for {
		page, err := s.ListTrash(ctx, query)
		if err != nil {
			return errors.Join(err, work.Wait())
		}
		for _, entry := range page.Entries {
			if generations[generationOf(entry.Kept)] {
				work.Go(func() error { return ignoreMissing(s.Purge(ctx, alias, entry.Kept, actor)) })
			}
		}
		if query.Cursor = page.Next; query.Cursor == "" {
			return work.Wait()
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clockDifference is the most by which the clock of another process may differ that still removes
// items in an hour that is over.
const clockDifference = 10 * time.Minute

// removeFolders removes a folder without objects from a storage that has such folders: an object in
// its place takes it away.
func removeFolders(ctx context.Context, storage *storagedrivers.Storage, folder string) error {
	if !storage.Features().EmptyFolders {
		return nil
	}
	_, err := storage.Put(ctx, folder, strings.NewReader(""), storagedrivers.PutOptions{})
	if err != nil && !errors.Is(err, fs.ErrExist) { // another process does the same
		return err
	}
	return item.Remove(ctx, storage, folder)
}
