package derived_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/jpeg"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// readers is a driver that records what is read.
type readers struct {
	*memory.Driver
	mu    sync.Mutex
	reads []storagedrivers.Range
}

func (d *readers) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	d.mu.Lock()
	d.reads = append(d.reads, rng)
	d.mu.Unlock()
	return d.Driver.Open(ctx, key, rng)
}

// taken returns what was read since the last call.
func (d *readers) taken() []storagedrivers.Range {
	d.mu.Lock()
	defer d.mu.Unlock()
	reads := d.reads
	d.reads = nil
	return reads
}

// jpegWith returns a JPEG of 60 x 30 pixels behind a comment of some bytes.
func jpegWith(t *testing.T, comment int) string {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 60, 30)), nil); err != nil {
		t.Fatal(err)
	}
	var comments strings.Builder
	for ; comment > 0; comment -= 60_000 {
		n := min(comment, 60_000)
		comments.Write([]byte{0xFF, 0xFE, byte((n + 2) >> 8), byte(n + 2)})
		comments.WriteString(strings.Repeat("x", n))
	}
	return b.String()[:2] + comments.String() + b.String()[2:]
}

// TestFactsRead: of an image of a list the first 64 KiB are read, once. Alone, an image whose size
// is behind them has facts too. The image of an upload is remembered.
func TestFactsRead(t *testing.T) {
	t.Parallel()
	d := &readers{Driver: memory.New()}
	alias := imageAlias(t, derivedtest.Closed(t, "memory", d, storagedrivers.Options{}))
	alias.Facts = item.FactsOfHeader
	m := newMaker()
	stored := func(key string, inList bool) *derived.Facts {
		t.Helper()
		image, err := alias.Storage.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		facts, err := m.StoredFacts(t.Context(), alias, "", image, "me", inList)
		if err != nil {
			t.Fatal(err)
		}
		return facts
	}
	const head = 64 << 10
	put(t, alias.Storage, "near.jpg", jpegWith(t, 40_000)+strings.Repeat("x", 200_000))
	put(t, alias.Storage, "far.jpg", jpegWith(t, 140_000))
	put(t, alias.Storage, "new.jpg", jpegWith(t, 0))
	new, err := alias.Storage.Stat(t.Context(), "new.jpg")
	if err != nil {
		t.Fatal(err)
	}
	m.Remember(alias, "new.jpg", new, imaging.Info{Format: imaging.JPEG, Width: 60, Height: 30}, nil)
	d.taken()
	for _, c := range []struct {
		key    string
		inList bool
		known  bool
		reads  int
	}{
		{"near.jpg", true, true, 1},
		{"near.jpg", true, true, 0},
		{"near.jpg", false, true, 0},
		{"far.jpg", true, false, 1},
		{"far.jpg", false, true, 2},
		{"far.jpg", true, true, 0},
		{"new.jpg", true, true, 0},
	} {
		facts := stored(c.key, c.inList)
		if (facts != nil) != c.known || facts != nil && (facts.Width != 60 || facts.Height != 30) {
			t.Errorf("%+v: %+v", c, facts)
		}
		reads := d.taken()
		if len(reads) != c.reads {
			t.Errorf("%+v: read %v", c, reads)
		}
		if len(reads) > 0 && (reads[0].Offset != 0 || reads[0].Length != head) {
			t.Errorf("%+v: read %v first", c, reads[0])
		}
	}
}

// TestThumbHashOfStored: a stored image is decoded for its hash once, and one without a hash is not
// tried again soon. A list has none.
func TestThumbHashOfStored(t *testing.T) {
	t.Parallel()
	d := &readers{Driver: memory.New()}
	alias := imageAlias(t, derivedtest.Closed(t, "memory", d, storagedrivers.Options{}))
	alias.Facts = item.FactsWithHash
	m := newMaker()
	good := pngOf(red)
	put(t, alias.Storage, "good.png", good)
	put(t, alias.Storage, "bad.png", good[:len(good)-20]) // its header is whole
	for key, want := range map[string]bool{"good.png": true, "bad.png": false} {
		image, err := alias.Storage.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		d.taken()
		for i, inList := range []bool{true, false, false, true} {
			facts, err := m.StoredFacts(t.Context(), alias, "", image, "me", inList)
			if err != nil || facts == nil || facts.Width == 0 {
				t.Fatalf("%s: %+v, %v", key, facts, err)
			}
			hash, err := base64.StdEncoding.DecodeString(facts.ThumbHash)
			if err != nil || (len(hash) > 4) != (want && !inList) {
				t.Errorf("%s: hash %q, %v", key, facts.ThumbHash, err)
			}
			if reads := len(d.taken()); i < 2 && reads != 1 || i > 1 && reads != 0 {
				t.Errorf("%s: read %d times at %d", key, reads, i)
			}
		}
	}
}

// TestSrcset: renditions of another shape are no choice of a page, and those that differ by
// rounding are.
func TestSrcset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width, height int
		box           scale.Box
		listed        bool
	}{
		{1000, 667, scale.Box{Width: 640}, true},
		{1000, 667, scale.Box{Width: 333, Height: 333}, true},
		{1000, 667, scale.Box{Width: 320, Height: 320, Cover: true}, false},
		{1200, 800, scale.Box{Width: 300, Height: 200, Cover: true}, true},
		{1000, 667, scale.Box{Width: 300, Height: 200, Cover: true}, true},
		{1000, 667, scale.Box{Width: 300, Height: 190, Cover: true}, false},
		{400, 300, scale.Box{Width: 500, Height: 300, Cover: true}, true}, // no smaller, and not cropped
		{400, 300, scale.Box{Width: 320, Height: 800, Cover: true}, false},
		{9000, 3, scale.Box{Width: 320}, true},
		{3, 9000, scale.Box{Width: 320, Height: 320}, true},
		{1000, 667, scale.Box{Height: 300}, false}, // without a width: the table has no address for it
	} {
		size := c.box.View(c.width, c.height).Size
		sizes := []derived.Size{
			{URL: "image", Width: c.width, Height: c.height},
			{Rendition: &item.Rendition{Box: c.box}, URL: "rendition", Width: size.X, Height: size.Y},
		}
		isSame := size.X == c.width // a width occurs once
		if got := derived.Srcset(sizes); strings.Contains(got, "rendition") != (c.listed && !isSame) || !strings.Contains(got, "image") {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
