package adminapi

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/caddymedia/media/storagedrivers/cache"
)

// cacheAnswer describes the read cache of a storage.
type cacheAnswer struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	MaxSize int64 `json:"max_size"`
	Hits    int64 `json:"hits"`
	Misses  int64 `json:"misses"`
	Evicted int64 `json:"evicted"`
	Damaged int64 `json:"damaged"`
	// InUse is false while another process has the folder, or it cannot be used.
	InUse bool `json:"in_use"`
}

func describeCache(s cache.Stats) cacheAnswer {
	return cacheAnswer{s.Entries, s.Bytes, s.MaxSize, s.Hits, s.Misses, s.Evicted, s.Damaged, s.Owned}
}

// caches returns the read caches by the names of their storages.
func (c *call) caches() error {
	answer := map[string]cacheAnswer{}
	for name, blocks := range c.app.Caches() {
		answer[name] = describeCache(blocks.Stats())
	}
	return c.answer(answer)
}

// emptyCache removes what the read cache of a storage holds.
func (c *call) emptyCache() error {
	blocks := c.app.Caches()[c.args[0]]
	if blocks == nil {
		return failf(http.StatusNotFound, "There is no storage %.64q with a cache.", c.args[0])
	}
	if err := blocks.Empty(); err != nil {
		c.handler.log.Error("emptying a cache", zap.String("storage", c.args[0]), zap.Error(err))
		return failf(http.StatusConflict, "The folder of the cache cannot be used now. The log says why.")
	}
	return c.answer(describeCache(blocks.Stats()))
}
