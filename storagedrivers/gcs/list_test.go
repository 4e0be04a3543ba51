package gcs

import (
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestLevelOfForeignNames: a folder that no key may begin with does not show, and what is
// no key does not end a listing.
func TestLevelOfForeignNames(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: server.Endpoint, Prefix: "in"})
	for _, name := range []string{
		"in/", "in//x", "in/.hidden/x", "in/a", "in/b/c", "in/b/d", "in/e./f", "in/g/", "in/z", "ink/x", "out/x",
	} {
		store(t, d, name, []byte(name), nil)
	}
	for _, limit := range []int{1, 2, 10} {
		var objects, folders []string
		opts := storagedrivers.ListOptions{Limit: limit, Shallow: true}
		for {
			page, err := d.List(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, info := range page.Objects {
				objects = append(objects, info.Key)
			}
			folders = append(folders, page.Folders...)
			if opts.Cursor = page.Next; opts.Cursor == "" {
				break
			}
		}
		if !slices.Equal(objects, []string{"a", "z"}) || !slices.Equal(folders, []string{"b/", "g/"}) {
			t.Errorf("by %d: listed %q and the folders %q", limit, objects, folders)
		}
	}
}
