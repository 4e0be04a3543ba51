package ingest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
)

// Gate lets items in.
type Gate struct {
	// Aliases by kind and name.
	Aliases map[Kind]map[string]*Alias
	// Limits of one request.
	Limits Limits
	// Staging bounds what requests hold until they have arrived; nil does not.
	Staging *Staging
	// Pictures decodes pictures and makes their variants.
	Pictures *variant.Maker
	// Now is the clock: of folders with a date and of names with the time.
	Now func() time.Time
	// Began is told of every request that is taken in, and what it gives of the end of it,
	// if it is not nil.
	Began func(Request) (ended func(error))
	// Changed is told of every item that was stored, replaced or deleted, and of those that
	// could not be deleted, if it is not nil.
	Changed func(context.Context, Change)
	// Refused is told of every request of which nothing was stored, if it is not nil. The
	// alias and the sub folder are those that the form has named.
	Refused func(context.Context, Request, Failures)
	// Variant is told of the variant of every picture that was stored where variants are
	// wanted, and how long it took, if it is not nil.
	Variant func(alias *Alias, result VariantResult, took time.Duration)
	// Log takes what no caller has to know.
	Log *slog.Logger

	seconds seconds
}

// Request says what a caller wants besides the items.
type Request struct {
	Kind Kind
	// Alias and SubFolder as the request's address has them; what the form says wins.
	Alias, SubFolder string
	// Allows tells whether the account may use an alias.
	Allows func(alias string) bool
	// Confirm, if set, is called right before the commit, with the alias. An upload may last for
	// hours, and the account may have lost its rights meanwhile. An error, a *Failure, refuses the
	// request.
	Confirm func(ctx context.Context, alias string) error
	// BaseURL is what addresses begin with where the alias does not say.
	BaseURL string
	// By is whose request it is.
	By By
}

// Item is an item that was stored.
type Item struct {
	// FullPath is the public address.
	FullPath string
	// Filename is the stored name, relative to the alias, sub folder included.
	Filename string
	// Size in bytes.
	Size int64
	// WebP is the public address of the variant; empty where there is none.
	WebP string
}

// VariantResult is what became of a variant.
type VariantResult string

// What can become of a variant.
const (
	VariantMade   VariantResult = "made"
	VariantLarger VariantResult = "larger" // than its picture, and kept
	VariantNone   VariantResult = "none"   // cannot be made
)

// Form takes in the files of a multipart/form-data body: all of them, in the order sent,
// or none. The error is Failures.
func (g *Gate) Form(ctx context.Context, body io.Reader, boundary string, req Request) ([]Item, error) {
	f := newForm(body, boundary, g.Limits, g.largest(req))
	defer f.close()
	return g.takeIn(ctx, req, func(ctx context.Context, b *batch) error { return b.read(ctx, f) })
}

// takeIn stores what read stages: all of it, or nothing. The error is Failures.
func (g *Gate) takeIn(ctx context.Context, req Request, read func(context.Context, *batch) error) ([]Item, error) {
	ended, outcome := g.began(req), errPanic
	defer func() { ended(outcome) }()
	items, err := g.takeAll(ctx, req, read)
	outcome = err
	return items, err
}

// errPanic is the outcome of a request that did not come to another one.
var errPanic = errors.New("panic")

func (g *Gate) takeAll(ctx context.Context, req Request, read func(context.Context, *batch) error) (items []Item, err error) {
	b := g.newBatch(req)
	defer func() {
		if err := b.close(); err != nil {
			// What is stored is stored by now: this is about what was to be dropped.
			g.Log.Warn("dropping what was staged", "error", err)
		}
	}()
	err = traced(ctx, "media.receive", b.attributes, func(ctx context.Context) error {
		if err := read(ctx, b); err != nil {
			return err
		}
		return b.stageHeld(ctx)
	})
	if err == nil {
		items, err = b.store(ctx)
	}
	if err != nil {
		return nil, b.refused(ctx, err)
	}
	return items, nil
}

func asFailures(err error) Failures {
	var (
		many Failures
		one  *Failure
	)
	switch {
	case errors.As(err, &many):
		return many
	case errors.As(err, &one):
		return Failures{one}
	default:
		return Failures{{Reason: Internal, Message: "internal error", Err: err}}
	}
}

func (r Request) allows(alias string) bool { return r.Allows == nil || r.Allows(alias) }

// alias resolves a name for a request.
func (g *Gate) alias(req Request, name string) (*Alias, error) {
	a := g.Aliases[req.Kind][name]
	if a == nil {
		return nil, failf(BadRequest, "unknown alias %.64q", name)
	}
	if !req.allows(name) {
		return nil, failf(Forbidden, "the account may not use the alias %.64q", name)
	}
	return a, nil
}
