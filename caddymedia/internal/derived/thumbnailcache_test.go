package derived

import (
	"fmt"
	"testing"
)

// TestThumbnailCache: the cache has the thumbnails used last, up to a number of bytes.
func TestThumbnailCache(t *testing.T) {
	t.Parallel()
	const most = 10 * (thumbnailCost + 100)
	c := newThumbnailCache(most)
	add := func(name string, size int) {
		c.add(name, &Thumbnail{File: make([]byte, size)})
		if c.bytes > most {
			t.Errorf("after %s it has %d bytes, at most %d are allowed", name, c.bytes, most)
		}
	}
	for i := range 10 {
		add(fmt.Sprint(i), 100)
	}
	c.get("0")
	add("9", 100) // again
	add("10", 100)
	for name, want := range map[string]bool{"0": true, "1": false, "2": true, "9": true, "10": true} {
		if _, ok := c.get(name); ok != want {
			t.Errorf("%s is there: %t", name, ok)
		}
	}
	add("large", 5000)
	add("too large", most)
	if c.used.Len() != 0 || c.bytes != 0 {
		t.Errorf("%d thumbnails of %d bytes are left", c.used.Len(), c.bytes)
	}
}
