package ingest

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// maxUnrenderable is the number of renditions that cannot be made and are remembered, some 500
	// bytes each.
	maxUnrenderable = 1000
	// unrenderableTime is how long they are remembered. Some fail only on a busy machine.
	unrenderableTime = 5 * time.Minute
)

// unrenderable remembers the renditions that could not be made, by location, settings and generation.
// Without it, every request for one would fetch and decode its picture again.
var unrenderable = remembered[failure](maxUnrenderable)

// failure is an error that is returned again for a while.
type failure struct {
	err   error
	until time.Time
}

// remembered returns a function that returns a cache of the values used last, made by its first call.
func remembered[V any](size int) func() *lru.Cache[string, V] {
	return sync.OnceValue(func() *lru.Cache[string, V] {
		cache, err := lru.New[string, V](size)
		if err != nil {
			panic(err) // it fails only without a size
		}
		return cache
	})
}
