package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/moment"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// MomentQuery selects names of an alias whose items are compared with those of a moment.
type MomentQuery struct {
	Alias *item.Alias
	// Folder of the items, relative to the alias, and all below; empty for all.
	Folder string
	// At is the moment, and Began when bringing it back began.
	At, Began time.Time
	// After is the Last of the page before; empty for the first page.
	After string
	// Limit is the maximum number of names of a page that may have changed since the moment.
	Limit int
}

// MomentStep is what has to be done with a name so that it has the item of the moment.
type MomentStep struct {
	Filename string
	Action   moment.Action
	// Then is the entry in the trash of the item that was there, for BringBack and Exchange.
	Then InTrash
	// Now is the item that is there; zero for none.
	Now storagedrivers.Info
}

// Size returns the size of the item that comes back, or goes, in bytes.
func (s MomentStep) Size() int64 { return cmp.Or(s.Then.Size, s.Now.Size) }

// MomentPage is what has to be done with some names, in their order.
type MomentPage struct {
	Steps []MomentStep
	// Last is the last name of the page; empty if no more follow.
	Last string
}

// momentWorkers is how many names are looked at side by side. The storage may be far away.
const momentWorkers = 32

// Moment finds what brings a folder back to a moment. It reads the names of all its items, and the
// part of the trash since the moment. The error is that of the storage.
func (s *Service) Moment(ctx context.Context, q MomentQuery) (MomentPage, error) {
	ahead, err := s.clockAhead(ctx, q.Alias)
	if err != nil {
		return MomentPage{}, err
	}
	kept, until, err := s.keptSince(ctx, q)
	if err != nil {
		return MomentPage{}, err
	}
	look := momentLook{moment.Moment{At: q.At.Add(ahead), Began: q.Began.Add(ahead), Expires: q.Alias.Expires}, q.Alias, ahead}
	names, last, err := s.changedSince(ctx, q, look.Moment, kept, until)
	if err != nil {
		return MomentPage{}, err
	}
	page := MomentPage{Last: last}
	found := make([]MomentStep, len(names))
	err = errors.Join(guard.Each(len(names), momentWorkers, func(i int) error {
		now, err := item.Stat(ctx, q.Alias.Storage, q.Alias.Key(names[i]))
		if err != nil {
			return err
		}
		found[i], err = look.step(ctx, names[i], now, kept[names[i]])
		return err
	})...)
	for _, step := range found {
		if step.Action != moment.Nothing {
			page.Steps = append(page.Steps, step)
		}
	}
	return page, err
}

// longAgo is a Unix time, of the year 2000, before which nothing was removed.
const longAgo = 946_684_800

// clockAhead stores and removes an object, and returns by how much its time is ahead of the clock
// of the service; 0 if the storage has no times, or the difference is within their resolution. A
// crash in between leaves the object, in place of the folder of an hour long ago, to the sweep of
// the trash.
func (s *Service) clockAhead(ctx context.Context, alias *item.Alias) (time.Duration, error) {
	key, before := alias.TrashHour(time.Unix(rand.Int64N(longAgo), 0)), s.now() //nolint:gosec // it is no secret
	info, err := alias.Storage.Put(ctx, key, strings.NewReader(key), storagedrivers.PutOptions{})
	after := s.now()
	if err == nil {
		err = item.Remove(ctx, alias.Storage, key)
	}
	stored, doubt := info.ModTime, after.Sub(before)/2
	if moment.ResolutionOf(stored) == moment.Resolution { // it lacks the rest of the second
		stored, doubt = stored.Add(time.Second/2), doubt+time.Second/2
	}
	ahead := stored.Sub(before.Add(after.Sub(before) / 2))
	if err != nil || info.ModTime.IsZero() || ahead.Abs() <= doubt {
		return 0, err
	}
	return ahead, nil
}

// momentLook compares names with a moment, by the clock of the storage.
type momentLook struct {
	moment.Moment
	alias *item.Alias
	ahead time.Duration // see clockAhead
}

// step returns what has to be done with a name.
func (l momentLook) step(
	ctx context.Context, filename string, now storagedrivers.Info, kept []InTrash,
) (found MomentStep, err error) {
	lives := make([]moment.Life, len(kept), len(kept)+1)
	for i, entry := range kept {
		lives[i] = moment.Life{Generation: generationOf(entry.Kept), Stored: entry.Stored, Removed: entry.Removed.Add(l.ahead)}
	}
	if now.Key != "" {
		lives = append(lives, moment.Life{Generation: generationOf(l.alias.NewKept(now, time.Time{})), Stored: now.ModTime})
	}
	step := l.Step(lives)
	found = MomentStep{Filename: filename, Action: step.Action, Now: now}
	if step.Then >= 0 && step.Then < len(kept) {
		found.Then = kept[step.Then]
	}
	if step.Action != moment.Exchange {
		return found, nil
	}
	isBack := false // it was brought back before
	if found.Then.Size == now.Size && !l.alias.HasExpired(now, l.Began) {
		isBack, err = sameBytes(ctx, l.alias.Storage, now.Key, l.alias.TrashKey(found.Then.Kept))
	}
	switch {
	case isBack:
		found.Action = moment.Nothing
	case step.IsRecent:
		found.Action = moment.Doubt
	}
	return found, err
}

// sameBytes reports whether two objects have the same bytes. A missing one differs.
func sameBytes(ctx context.Context, storage *storagedrivers.Storage, keys ...string) (same bool, err error) {
	var sums [2][sha256.Size]byte
	err = errors.Join(guard.Each(len(sums), len(sums), func(i int) (err error) {
		sums[i], err = upload.StoredSum(ctx, storage, keys[i])
		return err
	})...)
	return err == nil && sums[0] == sums[1], ignoreMissing(err)
}

// momentNames is the number of names whose entries are in memory.
const momentNames = 10_000

// keptSince returns the entries of names after that of the query which were removed since the
// moment, or shortly before. If there are many names, they are those up to a last one, which until
// is; otherwise it is empty.
func (s *Service) keptSince(ctx context.Context, q MomentQuery) (kept map[string][]InTrash, until string, err error) {
	kept = map[string][]InTrash{}
	since := q.At.Add(-moment.Before)
	w := &trashWalk{TrashQuery: TrashQuery{Alias: q.Alias, Folder: q.Folder}, now: s.now(), wants: ItemFilter(q.Alias, "")}
	err = eachHour(ctx, q.Alias, func(hour time.Time, isObject bool) error {
		if isObject || !hour.Add(time.Hour).After(since) {
			return nil
		}
		for info, err := range q.Alias.Storage.All(ctx, q.Alias.TrashHour(hour)+"/") {
			if err != nil {
				return err
			}
			entry, ok := q.Alias.KeptAt(info.Key)
			name := entry.Filename
			if ok && !entry.Removed.Before(since) && w.selects(entry) && name > q.After && (until == "" || name <= until) {
				kept[name] = around(q.At, kept[name], InTrash{Kept: entry, Size: info.Size})
			}
			if len(kept) > 2*momentNames {
				names := slices.Sorted(maps.Keys(kept))
				until = names[momentNames-1]
				maps.DeleteFunc(kept, func(name string, _ []InTrash) bool { return name > until })
			}
		}
		return nil
	})
	return kept, until, err
}

// around adds an entry, which was removed after the others, to those of its name that tell what was
// there at a moment: the last one that was removed before it, and the first one after it.
func around(at time.Time, entries []InTrash, entry InTrash) []InTrash {
	last := len(entries) - 1
	switch {
	case last >= 0 && entries[last].Removed.After(at):
		return entries
	case last >= 0 && !entry.Removed.After(at):
		entries[last] = entry
		return entries
	}
	return append(entries, entry)
}

// changedSince returns, in their order, the names that have entries, or an item that may have been
// stored or have expired since the moment. last is the last one if more may follow.
func (s *Service) changedSince(
	ctx context.Context, q MomentQuery, since moment.Moment, kept map[string][]InTrash, until string,
) (names []string, last string, err error) {
	gone := slices.Sorted(maps.Keys(kept)) // of which no item was listed yet
	isShown := ItemFilter(q.Alias, "")
	for info, err := range q.Alias.Storage.All(ctx, q.Alias.Below(q.Folder)) {
		if err != nil {
			return nil, "", err
		}
		name := q.Alias.Filename(info.Key)
		if until != "" && name > until || len(names) > q.Limit {
			break
		}
		before, isKept := slices.BinarySearch(gone, name)
		names, gone = append(names, gone[:before]...), gone[before:]
		if isKept {
			gone = gone[1:]
		}
		if isKept || name > q.After && isShown(info.Key) && mayBeSince(q.Alias, info, since) {
			names = append(names, name)
		}
	}
	names = append(names, gone...)
	if len(names) > q.Limit {
		return names[:q.Limit], names[q.Limit-1], nil
	}
	return names, until, nil
}

// mayBeSince reports whether a listed item may have been stored since a moment, or have expired.
// Lists of some FTP servers have days only, in a time zone of their own.
func mayBeSince(alias *item.Alias, listed storagedrivers.Info, since moment.Moment) bool {
	late := moment.Resolution
	if listed.ETag == "" && !alias.Storage.Features().ListTimes {
		late = 48 * time.Hour
	}
	return listed.ModTime.After(since.At.Add(-late)) ||
		alias.HasExpired(listed, since.Began.Add(late)) && !alias.HasExpired(listed, since.At.Add(-late))
}
