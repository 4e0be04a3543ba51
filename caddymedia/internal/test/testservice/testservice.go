// Package testservice is the harness of HTTP tests that need a running service: a [Site] is a
// service on one storage in memory, behind its HTTP handler, with requests and expected answers as
// data. It starts no Caddy. Begin with [New] and [Case].
package testservice

import (
	"context"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/media"
)

// Observer does nothing. A test embeds it in an observer of its own, which a [media.Config] takes,
// and which receives all calls of a [service.Observer].
type Observer struct{ service.NopObserver }

// Observe implements [media.Observer].
func (Observer) Observe(context.Context, media.Event) {}
