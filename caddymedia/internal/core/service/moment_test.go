package service

import (
	"testing"
	"time"
)

// TestKeptSince: of an item that is replaced again and again only the entries are in memory that
// tell what was there: the last one that was removed before the moment, and the first one after it.
func TestKeptSince(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	at := s.now().Add(-time.Hour)
	keep(t, alias, driver, "new.jpg", at.Add(time.Second))
	for i := range 100 {
		keep(t, alias, driver, "often.jpg", at.Add(time.Duration(i-50)*time.Second))
	}
	kept, until, err := s.keptSince(t.Context(), MomentQuery{Alias: alias, At: at, Limit: 10})
	if err != nil || until != "" || len(kept) != 2 || len(kept["new.jpg"]) != 1 {
		t.Fatalf("%v, %q, %v", kept, until, err)
	}
	often := kept["often.jpg"]
	if len(often) != 2 || often[0].Removed.Sub(at).Round(time.Second) != 0 || often[1].Removed.Sub(at).Round(time.Second) != time.Second {
		t.Errorf("%d entries: %v", len(often), often)
	}
}
