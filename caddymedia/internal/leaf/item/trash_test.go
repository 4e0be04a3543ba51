package item

import (
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// TestKept: an ID has all of an entry, and the key of the entry is that of its hour.
func TestKept(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 29, 12, 0, 0, 123456000, time.UTC)
	for name, locked := range map[string]bool{"plain": false, "locked": true} {
		alias := &Alias{Prefix: "img/a", Trash: time.Hour, TrashLocked: locked}
		for _, stored := range []time.Time{noon.Add(-time.Minute), {}} {
			kept := alias.NewKept(storagedrivers.Info{Key: "img/a/sub/b.jpg", ModTime: stored, ETag: "x"}, noon)
			got, ok := KeptOf(kept.ID())
			if !ok || got.ID() != kept.ID() || got.Filename != "sub/b.jpg" || !got.Removed.Equal(noon) || !got.LockedUntil.Equal(kept.LockedUntil) {
				t.Errorf("%s: %q is %+v, %t", name, kept.ID(), got, ok)
			}
			if locked != got.LockedUntil.Equal(noon.Add(time.Hour)) {
				t.Errorf("%s: locked until %s", name, got.LockedUntil)
			}
			if at, ok := alias.KeptAt(alias.TrashKey(kept)); !ok || at.ID() != kept.ID() || !strings.HasPrefix(alias.TrashKey(kept), "img/a@trash/2026-11-29T12/") {
				t.Errorf("%s: %q, %t", name, alias.TrashKey(kept), ok)
			}
		}
	}
}

// TestEndOf: an entry ends with the time of its alias, and no locked one does before the time that
// it was locked for.
func TestEndOf(t *testing.T) {
	t.Parallel()
	removed := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	plain, locked := Kept{Removed: removed}, Kept{Removed: removed, LockedUntil: removed.Add(3 * time.Hour)}
	for name, tt := range map[string]struct {
		alias  Alias
		kept   Kept
		end    time.Duration // after the removal
		isFree time.Duration // so long it is locked
	}{
		"plain":                {Alias{Trash: time.Hour}, plain, time.Hour, 0},
		"kept before the lock": {Alias{Trash: time.Hour, TrashLocked: true}, plain, time.Hour, time.Hour},
		"locked":               {Alias{Trash: 3 * time.Hour, TrashLocked: true}, locked, 3 * time.Hour, 3 * time.Hour},
		"shorter by now":       {Alias{Trash: time.Hour, TrashLocked: true}, locked, 3 * time.Hour, 3 * time.Hour},
		"longer by now":        {Alias{Trash: 5 * time.Hour, TrashLocked: true}, locked, 5 * time.Hour, 5 * time.Hour},
		"free by now":          {Alias{Trash: time.Hour}, locked, 3 * time.Hour, 3 * time.Hour},
		"without trash by now": {Alias{}, locked, 3 * time.Hour, 3 * time.Hour},
	} {
		if end := tt.alias.EndOf(tt.kept).Sub(removed); end != tt.end {
			t.Errorf("%s: ends after %s, want %s", name, end, tt.end)
		}
		for after := time.Duration(0); after < 6*time.Hour; after += 30 * time.Minute {
			now := removed.Add(after)
			if got, want := tt.alias.IsLocked(tt.kept, now), after < tt.isFree; got != want {
				t.Errorf("%s: locked after %s: %t", name, after, got)
			}
			if got, want := tt.alias.HasEnded(tt.kept, now), after >= tt.end; got != want {
				t.Errorf("%s: ended after %s: %t", name, after, got)
			}
		}
	}
}

// FuzzKeptOf: an ID of a stranger is refused, or is that of its entry.
func FuzzKeptOf(f *testing.F) {
	for _, id := range []string{
		"", "/", "1795176000000000-1795172400000000-9d1b0c7ef2k7qx4m/a.jpg", "1795176000000000-1795172400000000-9d1b0c7ef2k7qx4m-1795262400000000/a/b.jpg",
		"1795176000000000-1795172400000000-9d1b0c7ef2k7qx4m-/a.jpg", "9999999999999999-0000000000000000-00000000zzzzzzzz-0000000000000000/../a",
	} {
		f.Add(id)
	}
	alias := &Alias{Prefix: "img/a", Trash: time.Hour}
	f.Fuzz(func(t *testing.T, id string) {
		kept, ok := KeptOf(id)
		if !ok {
			return
		}
		if kept.ID() != id {
			t.Errorf("%q has the ID %q", id, kept.ID())
		}
		if at, ok := alias.KeptAt(alias.TrashKey(kept)); !ok || at != kept {
			t.Errorf("%q is at %q", id, alias.TrashKey(kept))
		}
	})
}
