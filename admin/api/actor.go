package api

import (
	"context"
	"net"

	"github.com/caddymedia/media/caddymedia/ingest"
)

type actorKey struct{}

// WithActor returns a context for the requests of a known actor.
func WithActor(ctx context.Context, actor ingest.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// actor returns the actor of a request. Caddy's admin endpoint knows only the addresses of its
// clients.
func (c *call) actor() ingest.Actor {
	if actor, ok := c.r.Context().Value(actorKey{}).(ingest.Actor); ok {
		return actor
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		host = "" // a client of a unix socket has no address
	}
	return ingest.Actor{Origin: ingest.OriginAdmin, Client: host}
}
