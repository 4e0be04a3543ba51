package item

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// A generation of an item that was removed or replaced is kept in the trash of its alias, under a
// key that says when it was stored and removed, and what it was:
//
//	img/content@trash/2026-11-29T22/1764454543123456-1764450000000000-9d1b0c7ef2k7qx4m/26-11/photo.jpg
//
// The times are microseconds since 1970, in 16 digits. So the keys are in the order of removal, and
// nothing else need be stored. An entry that is locked has the time of its end as a fourth part.

// TrashRoot returns the folder of the trash, which is outside of the folder of the items.
func (a *Alias) TrashRoot() string { return a.Prefix + naming.TrashSuffix }

// HasTrashFolder reports whether [Alias.TrashRoot] is reserved for trash, also if the alias has
// none at present.
func (a *Alias) HasTrashFolder() bool { return a.Prefix != "" }

// TrashLocation returns the location of the trash.
func (a *Alias) TrashLocation() storagedrivers.Location {
	return a.Storage.Location().Join(a.TrashRoot())
}

// Kept is a generation of an item in the trash.
type Kept struct {
	Filename        string
	Removed, Stored time.Time
	// Generation is the same for all entries of one generation of one item.
	Generation string
	// LockedUntil is the time before which no configuration removes the entry; zero for none.
	LockedUntil time.Time

	random string
}

const (
	hourLayout       = "2006-01-02T15"
	generationLength = 8 // in hexadecimal digits
	randomLength     = 8
)

// NewKept returns a new entry for an item of the alias that is removed now.
func (a *Alias) NewKept(old storagedrivers.Info, now time.Time) Kept {
	kept := Kept{
		Filename: a.Filename(old.Key), Removed: now, Stored: old.ModTime, Generation: generationOf(old),
		random: strings.ToLower(rand.Text()[:randomLength]),
	}
	if a.TrashLocked {
		kept.LockedUntil = now.Add(a.Trash)
	}
	return kept
}

// generationOf identifies a generation of an item among those that were stored at one time.
func generationOf(info storagedrivers.Info) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", info.Key, info.ETag, info.Size))
	return hex.EncodeToString(sum[:generationLength/2])
}

// IsOf reports whether the entry is of the generation of an item.
func (k Kept) IsOf(info storagedrivers.Info) bool {
	return k.Generation == generationOf(info) && micros(k.Stored) == micros(info.ModTime)
}

// micros returns a time as in a key. A time that a backend does not know is 0.
func micros(t time.Time) string { return fmt.Sprintf("%016d", max(t.UnixMicro(), 0)) }

// ID identifies the entry in its alias.
func (k Kept) ID() string { return k.Head() + "/" + k.Filename }

// Head is the ID without the filename. Heads are in the order of removal.
func (k Kept) Head() string {
	head := micros(k.Removed) + "-" + micros(k.Stored) + "-" + k.Name()
	if !k.LockedUntil.IsZero() {
		head += "-" + micros(k.LockedUntil)
	}
	return head
}

// Name is a part of the ID in letters and digits, which no other entry has.
func (k Kept) Name() string { return k.Generation + k.random }

// idPattern matches the part of an ID before the filename.
var idPattern = regexp.MustCompile(fmt.Sprintf(`^(\d{16})-(\d{16})-([0-9a-f]{%d})([0-9a-z]{%d})(?:-(\d{16}))?$`, generationLength, randomLength))

// KeptOf returns the entry of an ID, and false if it is none.
func KeptOf(id string) (kept Kept, ok bool) {
	head, filename, _ := strings.Cut(id, "/")
	found := idPattern.FindStringSubmatch(head)
	if found == nil || storagedrivers.ValidKey(filename) != nil {
		return kept, false
	}
	return Kept{
		Filename: filename, Removed: timeOf(found[1]), Stored: timeOf(found[2]), LockedUntil: timeOf(found[5]),
		Generation: found[3], random: found[4],
	}, true
}

// timeOf is the inverse of micros; it returns the zero time for no digits.
func timeOf(digits string) (at time.Time) {
	if number, err := strconv.ParseInt(digits, 10, 64); err == nil {
		at = time.UnixMicro(number).UTC()
	}
	return at
}

// TrashKey returns the key of an entry.
func (a *Alias) TrashKey(kept Kept) string { return path.Join(a.TrashHour(kept.Removed), kept.ID()) }

// TrashHour returns the folder of the entries that are removed in the hour of a time.
func (a *Alias) TrashHour(at time.Time) string {
	return a.TrashRoot() + "/" + at.UTC().Format(hourLayout)
}

// HourOf is the inverse of [Alias.TrashHour]; it returns false for any other folder.
func (a *Alias) HourOf(folder string) (hour time.Time, ok bool) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(folder, "/"), a.TrashRoot()+"/")
	hour, err := time.Parse(hourLayout, name)
	return hour, ok && err == nil
}

// KeptAt returns the entry under a key, and false if it is none.
func (a *Alias) KeptAt(key string) (kept Kept, ok bool) {
	rest, ok := strings.CutPrefix(key, a.TrashRoot()+"/")
	_, id, _ := strings.Cut(rest, "/")
	if !ok {
		return kept, false
	}
	kept, ok = KeptOf(id)
	return kept, ok && a.TrashKey(kept) == key
}

// InTrash returns an alias whose item of the filename is the entry. It is for reading.
func (a *Alias) InTrash(kept Kept) (trash *Alias, filename string) {
	shown := *a
	shown.Kind, shown.Prefix, shown.CacheControl = File, a.TrashHour(kept.Removed), "no-store"
	shown.Trash, shown.Expires = 0, 0
	shown.Redirect, shown.Negotiate, shown.Renditions, shown.WebP, shown.Facts = nil, false, nil, nil, NoFacts
	return &shown, kept.ID()
}

// EndOf returns when an entry ends: from then on it is not to be had back, and is removed.
func (a *Alias) EndOf(kept Kept) time.Time {
	end := kept.Removed.Add(a.Trash)
	if kept.LockedUntil.After(end) {
		return kept.LockedUntil
	}
	return end
}

// HasEnded reports whether an entry is not to be had back any more.
func (a *Alias) HasEnded(kept Kept, now time.Time) bool { return !now.Before(a.EndOf(kept)) }

// IsLocked reports whether an entry may not be removed yet.
func (a *Alias) IsLocked(kept Kept, now time.Time) bool {
	return a.TrashLocked && !a.HasEnded(kept, now) || now.Before(kept.LockedUntil)
}
