package api

import (
	"context"
	"net"

	"github.com/caddymedia/media/caddymedia/ingest"
)

type byKey struct{}

// OnBehalfOf gives a context for requests of somebody whom the caller knows. What they
// change is ascribed to him.
func OnBehalfOf(ctx context.Context, by ingest.By) context.Context {
	return context.WithValue(ctx, byKey{}, by)
}

// by is who asks. Caddy's admin endpoint knows its clients by their addresses only.
func (c *call) by() ingest.By {
	if by, ok := c.r.Context().Value(byKey{}).(ingest.By); ok {
		return by
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		host = "" // the other end of a unix socket has none
	}
	return ingest.By{Via: ingest.ViaAdmin, Client: host}
}
