package observe

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// TestNoteItemsAtOnce: the list has all items that are stored at once for one request.
func TestNoteItemsAtOnce(t *testing.T) {
	t.Parallel()
	const count, tries = 8, 2000
	for range tries {
		replacer := caddy.NewReplacer()
		ctx := context.WithValue(t.Context(), caddy.ReplacerCtxKey, replacer)
		var all sync.WaitGroup
		want := make([]string, 0, count)
		for i := range count {
			name := strconv.Itoa(i)
			want = append(want, name)
			all.Go(func() { noteItem(ctx, item.Image, "content", name) })
		}
		all.Wait()
		noted, _ := replacer.Get(placeholderFilenames)
		names, _ := noted.([]string)
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Fatalf("the list is %q", names)
		}
	}
}
