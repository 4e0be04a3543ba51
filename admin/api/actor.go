package api

import (
	"context"
	"net"

	"github.com/caddymedia/media/caddymedia/aliases"
)

type actorKey struct{}

// WithActor returns a context for the requests of a known actor.
func WithActor(ctx context.Context, actor aliases.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// actor returns the actor of a request. Caddy's admin endpoint knows only the addresses of its
// clients.
func (c *call) actor() aliases.Actor {
	if actor, ok := c.r.Context().Value(actorKey{}).(aliases.Actor); ok {
		return actor
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		host = "" // a client of a unix socket has no address
	}
	return aliases.Actor{Origin: aliases.OriginAdmin, Client: host}
}
