package ingest

import "context"

// Via is the way in which something is asked for.
type Via string

// The ways in.
const (
	ViaHTTP  Via = "http"  // the endpoints
	ViaPanel Via = "panel" // the administrators' panel
	ViaAdmin Via = "admin" // Caddy's admin endpoint
	ViaGo    Via = "go"    // code in the same process
)

// By says on whose behalf something is done.
type By struct {
	Via Via
	// Account is the API key, or the user of the panel; empty where there is none.
	Account string
	// Client is the address of the client; empty where there is none.
	Client string
}

// Owner returns whose share of bounded work a request takes.
func (b By) Owner() string { return string(b.Via) + " " + b.Account }

// Action is what was done with an item.
type Action string

// What can be done with an item.
const (
	Stored   Action = "stored"
	Replaced Action = "replaced" // stored in the place of another one of its name
	Deleted  Action = "deleted"
)

// Change is an item that was stored, replaced or deleted.
type Change struct {
	Action Action
	Alias  *Alias
	// Item is what was stored. Of one that was deleted it has the name, and the size if that
	// is known.
	Item Item
	By   By
	// Err is why an item was not deleted; nil where the change was made.
	Err error
}

// began tells that a request is taken in. What it gives must be told how that ended.
func (g *Gate) began(req Request) (ended func(error)) {
	if g.Began == nil {
		return func(error) {}
	}
	return g.Began(req)
}

func (g *Gate) changed(ctx context.Context, change Change) {
	if g.Changed != nil {
		g.Changed(ctx, change)
	}
}

// refused tells that nothing of the request was stored, and why.
func (b *batch) refused(ctx context.Context, err error) Failures {
	failures := asFailures(err)
	if b.gate.Refused != nil {
		req := b.req
		req.Alias, req.SubFolder = b.aliasName(), b.subFolder()
		b.gate.Refused(ctx, req, failures)
	}
	return failures
}
