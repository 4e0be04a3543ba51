// Package redis registers the token store redis with Caddy.
package redis

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/caddymedia/tokens/redis"
)

func init() { modules.RegisterStore[redis.Config]("redis") }
