// Package testservice is for tests that need a running service, outside of package service. It starts no Caddy.
// Begin with [Observer].
package testservice

import (
	"context"

	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
)

// Observer does nothing. A test embeds it in an observer of its own, which a [media.Config] takes, and
// which receives all calls of a [service.Observer].
type Observer struct{ service.NopObserver }

// Observe implements [media.Observer].
func (Observer) Observe(context.Context, media.Event) {}
