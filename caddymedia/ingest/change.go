package ingest

import (
	"context"
	"time"
)

// Origin is where a request comes from.
type Origin string

// The origins.
const (
	OriginHTTP  Origin = "http"  // the endpoints
	OriginPanel Origin = "panel" // the administrators' panel
	OriginAdmin Origin = "admin" // Caddy's admin endpoint
	OriginGo    Origin = "go"    // code in the same process
)

// Actor is who uploads or deletes an item.
type Actor struct {
	Origin Origin
	// Account is the API key, or the user of the panel; empty if there is none.
	Account string
	// Client is the address of the client; empty if there is none.
	Client string
}

// Owner returns the name under which the actor's requests share bounded work.
func (a Actor) Owner() string { return string(a.Origin) + " " + a.Account }

// Observer is called about requests and items. Its methods may be called concurrently.
type Observer interface {
	// Began is called when a request starts. The function that it returns is called when the request
	// ends, also by a panic; stored reports whether its items are stored.
	Began(req Request) (ended func(stored bool))
	// Changed is called for every item that is stored, replaced or deleted, and for every failed
	// deletion.
	Changed(ctx context.Context, change Change)
	// Refused is called for every request that fails. The alias and the sub folder are those of the
	// form if it names any.
	Refused(ctx context.Context, req Request, failures Failures)
	// Variant is called for every picture that is stored in an alias with variants. Making the variant
	// took so long.
	Variant(alias *Alias, result VariantResult, took time.Duration)
}

// NopObserver is an [Observer] that does nothing.
type NopObserver struct{}

// Began implements [Observer].
func (NopObserver) Began(Request) (ended func(stored bool)) { return func(bool) {} }

// Changed implements [Observer].
func (NopObserver) Changed(context.Context, Change) {}

// Refused implements [Observer].
func (NopObserver) Refused(context.Context, Request, Failures) {}

// Variant implements [Observer].
func (NopObserver) Variant(*Alias, VariantResult, time.Duration) {}

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
	// Item as stored. A deleted one has its name, and its size if that is known.
	Item  Item
	Actor Actor
	// Err is the error of a failed deletion; nil otherwise.
	Err error
}

// refused reports the failure of the request and returns it as Failures.
func (b *batch) refused(ctx context.Context, err error) Failures {
	failures := asFailures(err)
	req := b.req
	req.Alias, req.SubFolder = b.aliasName(), b.subFolder()
	b.uploader.Observer.Refused(ctx, req, failures)
	return failures
}
