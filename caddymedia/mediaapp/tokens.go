package mediaapp

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/caddymedia/tokens/bolt"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/caddymedia/tokens/redis"
)

func init() {
	modules.RegisterStore[bolt.Config]("bolt")
	modules.RegisterStore[memory.Config]("memory")
	modules.RegisterStore[redis.Config]("redis")
}
