package api

import (
	"context"
	"net"

	"github.com/caddymedia/media/caddymedia/ingest"
)

type byKey struct{}

// OnBehalfOf gives a context for requests of somebody whom the caller knows. What they
// change is ascribed to him.
func OnBehalfOf(ctx context.Context, by ingest.Actor) context.Context {
	return context.WithValue(ctx, byKey{}, by)
}

// by is who asks. Caddy's admin endpoint knows its clients by their addresses only.
func (c *call) by() ingest.Actor {
	if by, ok := c.r.Context().Value(byKey{}).(ingest.Actor); ok {
		return by
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		host = "" // the other end of a unix socket has none
	}
	return ingest.Actor{Origin: ingest.OriginAdmin, Client: host}
}
