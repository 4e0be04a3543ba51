package cache_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/cache"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// A storage whose objects are never replaced. Only the first reader fetches an object.
func ExampleNew() {
	folder, err := os.MkdirTemp("", "cache")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	store := cache.NewStore(cache.Options{Folder: folder, MaxSize: 1 << 30})
	defer store.Close()
	driver := cache.New(memory.New(), store, "example", cache.Policy{Immutable: true, Revalidate: time.Minute})
	s := storagedrivers.New("example", driver, storagedrivers.Options{})
	defer s.Close()

	ctx := context.Background()
	if _, err := s.Put(ctx, "hello.txt", strings.NewReader("hello"), storagedrivers.PutOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		body, info, err := s.Open(ctx, "hello.txt", storagedrivers.Range{})
		if err != nil {
			fmt.Println(err)
			return
		}
		b, err := io.ReadAll(body)
		body.Close()
		fmt.Println(string(b), info.Size, err)
	}
	fmt.Println(store.Stats().Hits)
	// Output:
	// hello 5 <nil>
	// hello 5 <nil>
	// 1
}
