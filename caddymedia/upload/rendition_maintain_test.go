package upload

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

func TestRenewRenditions(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/a.png", picture(red))
	for _, c := range []struct {
		all           bool
		missing, made int
	}{{false, 1, 1}, {false, 0, 0}, {true, 1, 1}, {true, 0, 0}} {
		missing, err := derived.MissingRenditions(t.Context(), alias, "a.png", c.all)
		if len(missing) != c.missing || err != nil {
			t.Errorf("missing %v, %v, want %d", missing, err, c.missing)
		}
		made, err := u.Derived.RenewRenditions(t.Context(), alias, "a.png", c.all)
		if made != c.made || err != nil {
			t.Errorf("made %d, %v, want %d", made, err, c.made)
		}
	}
	wantRenditions(t, alias, "pics@renditions/1/a.png/later.webp", "pics@renditions/1/a.png/soon.webp")
	put(t, alias.Storage, "pics/b.png", picture(unloved))
	if made, err := u.Derived.RenewRenditions(t.Context(), alias, "b.png", true); made != 0 || !errors.Is(err, render.ErrNone) {
		t.Errorf("of a picture that cannot be rendered: %d, %v", made, err)
	}
	for _, filename := range []string{"a.svg", "a.txt"} {
		if made, err := u.Derived.RenewRenditions(t.Context(), alias, filename, true); made != 0 || err != nil {
			t.Errorf("of %s: %d, %v", filename, made, err)
		}
	}
}

func TestOutdatedRenditions(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	for _, filename := range []string{"a.png", "b.png", "in/c.png"} {
		put(t, alias.Storage, "pics/"+filename, picture(red))
		if _, err := u.Derived.RenewRenditions(t.Context(), alias, filename, true); err != nil {
			t.Fatal(err)
		}
	}
	put(t, alias.Storage, "pics@renditions/foreign", "x")
	outdated := func() []string {
		var keys []string
		for info, err := range derived.OutdatedRenditions(t.Context(), alias, later()) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, hashes.ReplaceAllString(info.Key, "."))
		}
		return keys
	}
	if got := outdated(); got != nil {
		t.Errorf("outdated %q", got)
	}
	if err := alias.Storage.Delete(t.Context(), "pics/a.png"); err != nil { // in the backend itself
		t.Fatal(err)
	}
	if _, err := alias.Storage.Put(t.Context(), "pics/b.png", strings.NewReader(picture(green)), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}); err != nil {
		t.Fatal(err)
	}
	alias.Renditions[0].Quality = 1
	want := []string{
		"pics@renditions/1/a.png/later.webp", "pics@renditions/1/a.png/soon.webp",
		"pics@renditions/1/b.png/later.webp", "pics@renditions/1/b.png/soon.webp",
		"pics@renditions/2/in/c.png/later.webp",
	}
	if got := outdated(); !slices.Equal(got, want) {
		t.Errorf("outdated %q, want %q", got, want)
	}
	for info, err := range derived.OutdatedRenditions(t.Context(), alias, noon.AddDate(-100, 0, 0)) {
		t.Errorf("%s is outdated and old, %v", info.Key, err)
	}
	for info := range derived.OutdatedRenditions(t.Context(), alias, later()) {
		if err := aliases.Remove(t.Context(), alias.Storage, info.Key); err != nil {
			t.Error(err)
		}
	}
	if got := outdated(); got != nil {
		t.Errorf("still outdated %q", got)
	}
	wantRenditions(t, alias, "pics@renditions/2/in/c.png/soon.webp", "pics@renditions/foreign")
}
