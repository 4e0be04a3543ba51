// Package moment finds out what was stored under a name at a moment, and what brings that back. It
// knows only when the generations of an item were stored and removed. Begin with [Moment.Step].
package moment

import (
	"slices"
	"time"
)

// Life is how long a generation of an item was there.
type Life struct {
	// Generation is the same for all entries of one generation, and for no other: it may be in the
	// trash twice, or in the trash and still there, after a crash or two deletions at the same time.
	Generation string
	// Stored is zero if the storage has no times, and Removed for the generation that is there.
	Stored, Removed time.Time
}

// Action is what has to be done with a name.
type Action int

// The actions.
const (
	// Nothing has to be done.
	Nothing Action = iota
	// BringBack stores the generation that was there; nothing is there.
	BringBack
	// TakeAway removes what is there; nothing was.
	TakeAway
	// Exchange replaces what is there by the generation that was.
	Exchange
	// Doubt leaves what is there, because the clocks do not tell what was.
	Doubt
)

// Step is what has to be done with a name. Then and Now are indexes of lives: of the generation
// that was there, and of that which is there; -1 for none.
type Step struct {
	Action    Action
	Then, Now int
	// IsRecent means that what is there may have been stored since bringing back began. Unless it has
	// the bytes of Then, an Exchange is a Doubt.
	IsRecent bool
}

// Moment is a time to which items are brought back. All times are those of the storage.
type Moment struct {
	// At is the time, and Began when bringing back began: what was stored since stays.
	At, Began time.Time
	// Expires is how long generations are to be had; 0 for ever.
	Expires time.Duration
}

// Resolution is the time around a moment within which a change is in doubt, for a storage whose
// times are whole seconds. They lack the rest of the second, and the clock of the storage may
// differ from that of the service by as much.
const Resolution = 2 * time.Second

// fine is [Resolution] for other storages. The times of files lag behind by a tick of the kernel.
const fine = 20 * time.Millisecond

// ResolutionOf returns the resolution of a time of a storage.
func ResolutionOf(stored time.Time) time.Duration {
	if stored.Nanosecond() == 0 {
		return Resolution
	}
	return fine
}

// Step returns what brings a name back to the moment. The lives are those of the name which were
// there at the moment or later, and those which ended less than [Before] before it, in any order.
func (m Moment) Step(lives []Life) Step {
	step := Step{Then: -1, Now: slices.IndexFunc(lives, func(l Life) bool { return l.Removed.IsZero() })}
	if step.Now >= 0 {
		stored := lives[step.Now].Stored
		if stored.After(m.Began.Add(ResolutionOf(stored))) {
			return step // it was stored since
		}
		step.IsRecent = stored.After(m.Began.Add(-ResolutionOf(stored)))
	}
	then, sure := m.then(lives)
	isThen := then >= 0 && step.Now >= 0 && lives[then].Generation == lives[step.Now].Generation
	switch {
	case !sure:
		step.Action = Doubt
	case isThen && m.hasEnded(lives[then], m.Began):
		step.Action = Doubt // it is there, but not to be had
	case then < 0 && step.Now < 0, isThen:
	case step.Now < 0:
		step.Action = BringBack
	case then >= 0:
		step.Action = Exchange
	case step.IsRecent:
		step.Action = Doubt
	default:
		step.Action = TakeAway
	}
	step.Then = then
	return step
}

// then returns the index of the generation that was there at the moment, -1 for none, and whether
// that is sure.
//
// Only one generation is there at a time. So the one that was removed first of those that were
// removed after the moment is the only one that may have been there, whatever the time of the
// storage says.
func (m Moment) then(lives []Life) (index int, sure bool) {
	index, before := -1, -1 // the last one that was removed before the moment
	for i, life := range lives {
		switch {
		case m.isLater(life) && (index < 0 || endsBefore(life, lives[index])):
			index = i
		case !m.isLater(life) && (before < 0 || endsBefore(lives[before], life)):
			before = i
		}
	}
	if index < 0 {
		return -1, true
	}
	life := lives[index]
	resolution := ResolutionOf(life.Stored)
	switch {
	case life.Stored.Unix() <= 0: // it is not known
		return index, false
	case life.Stored.After(m.At.Add(-resolution)) && !life.Stored.After(m.At.Add(resolution)):
		return index, false
	case !life.Stored.After(m.At) && m.hasEnded(life, m.At):
		return -1, true
	case !life.Stored.After(m.At):
		return index, true
	case !life.Removed.IsZero() && life.Stored.After(life.Removed), before >= 0 && isMoved(life, lives[before]):
		return index, false
	}
	return -1, true
}

// Before is how long before a moment generations may have been removed that tell whether the time
// of the next one is right.
const Before = time.Minute

// isMoved reports whether the time of a generation may be later than it was stored: a storage with
// times in whole seconds may give it the second that follows that of the one before it.
func isMoved(life, before Life) bool {
	return ResolutionOf(life.Stored) == Resolution && !life.Stored.After(before.Stored.Add(time.Second))
}

// endsBefore reports whether a generation was removed before another one, which may be there.
func endsBefore(life, other Life) bool {
	return !life.Removed.IsZero() && (other.Removed.IsZero() || life.Removed.Before(other.Removed))
}

// isLater reports whether a generation was removed after the moment.
func (m Moment) isLater(life Life) bool { return life.Removed.IsZero() || life.Removed.After(m.At) }

// hasEnded reports whether a generation was not to be had any more at a time.
func (m Moment) hasEnded(life Life, at time.Time) bool {
	return m.Expires > 0 && !at.Before(life.Stored.Add(m.Expires))
}

// Tally counts the items of steps by their actions.
type Tally struct {
	// Restored are brought back, Removed taken away, Replaced exchanged, and Doubtful in doubt.
	Restored Items `json:"restored"`
	Removed  Items `json:"removed"`
	Replaced Items `json:"replaced"`
	Doubtful Items `json:"doubtful"`
}

// Items are those of one action.
type Items struct {
	Items int `json:"items"`
	// Bytes of the items that come back, or go.
	Bytes int64 `json:"bytes"`
	// Filenames of the first of them.
	Filenames []string `json:"filenames,omitempty"`
}

// Add counts an item, and keeps its filename if there are less than most. It returns the action in
// words.
func (t *Tally) Add(action Action, filename string, size int64, most int) string {
	of := map[Action]struct {
		items *Items
		words string
	}{
		BringBack: {&t.Restored, "restored"}, TakeAway: {&t.Removed, "removed"}, Exchange: {&t.Replaced, "replaced"}, Doubt: {&t.Doubtful, "doubtful"},
	}[action]
	of.items.Items++
	of.items.Bytes += size
	if len(of.items.Filenames) < most {
		of.items.Filenames = append(of.items.Filenames, filename)
	}
	return of.words
}
