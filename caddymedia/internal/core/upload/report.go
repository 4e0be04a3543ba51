package upload

import (
	"context"
	"errors"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Observer receives the events of requests and items. Its methods may be called concurrently.
type Observer interface {
	// Began is called when a request starts. The function that it returns is called when the
	// request ends, also after a panic; stored reports whether its items are stored.
	Began(op Operation) (ended func(stored bool))
	// Changed is called for every item that is stored, replaced or deleted, for every failed deletion,
	// and for every item that is moved or copied onto itself.
	Changed(ctx context.Context, change Change)
	// Refused is called for every request that fails.
	Refused(ctx context.Context, op Operation, failures item.Failures)
	// Variant is called for every image that is stored in an alias with variants. took is the
	// time to make the variant, or to find that none can be made.
	Variant(alias *item.Alias, result item.VariantResult, took time.Duration)
	// Checked is called for every file that another program is asked about. took is the time to get
	// its answer, with the wait for a turn.
	Checked(alias *item.Alias, name string, result check.Result, took time.Duration)
	derived.RenditionObserver
}

// NopObserver is an [Observer] that does nothing.
type NopObserver struct{}

// Began implements [Observer].
func (NopObserver) Began(Operation) (ended func(stored bool)) { return func(bool) {} }

// Changed implements [Observer].
func (NopObserver) Changed(context.Context, Change) {}

// Refused implements [Observer].
func (NopObserver) Refused(context.Context, Operation, item.Failures) {}

// Variant implements [Observer].
func (NopObserver) Variant(*item.Alias, item.VariantResult, time.Duration) {}

// Checked implements [Observer].
func (NopObserver) Checked(*item.Alias, string, check.Result, time.Duration) {}

// Rendered implements [Observer].
func (NopObserver) Rendered(*item.Alias, *item.Rendition, derived.RenditionResult, time.Duration) {
}

// Action is the kind of a change.
type Action string

// The actions.
const (
	Stored   Action = "stored"
	Replaced Action = "replaced" // stored instead of another item of its name
	Deleted  Action = "deleted"
	// Purged is an entry that is removed from the trash, with the Filename of its item.
	Purged Action = "purged"
	// Unchanged is an item that a request moves or copies onto itself.
	Unchanged Action = "unchanged"
)

// Change is an item that was stored, replaced or deleted, or is [Unchanged].
type Change struct {
	Action Action
	Alias  *item.Alias
	// Item as stored. A deleted item has its name and, if known, its size.
	Item  Item
	Actor item.Actor
	// InSet means that the item is one of a set that is deleted.
	InSet bool
	// Transfer is the move or copy that caused the change; nil if there is none. A move is two
	// changes: the new item is stored, and the old one deleted.
	Transfer *Transfer
	// Err is the error of a failed deletion; nil otherwise.
	Err error
}

// variantResult returns the outcome of making the variant of a stored image.
func (o *object) variantResult() item.VariantResult {
	switch {
	case !o.hasVariant:
		return item.VariantNone
	case o.committedVariant.Size > o.size:
		return item.VariantLarger
	default:
		return item.VariantMade
	}
}

// reportRefused reports a refused request to the observer, and returns its failures.
func (b *batch) reportRefused(ctx context.Context, err error) item.Failures {
	failures := asFailures(err)
	op := b.operation
	op.Alias = b.aliasName()
	b.uploader.Observer.Refused(ctx, op, b.observed(failures))
	return failures
}

// reportStored reports the stored items to the observer, and returns them. transfer is the move or
// copy that has stored them, if there is one.
func (b *batch) reportStored(ctx context.Context, transfer *Transfer) []Item {
	observer := b.uploader.Observer
	items := make([]Item, len(b.objects))
	for i, o := range b.objects {
		items[i] = Item{
			FullPath: b.alias.URL(b.req.BaseURL, o.filename), Filename: o.filename, Size: o.size, Info: o.info, Trash: o.trash, Unchecked: o.unchecked,
		}
		if o.hasVariant {
			items[i].WebP = items[i].FullPath + render.Suffix
		}
		items[i].Renditions = b.alias.RenditionURLs(b.req.BaseURL, o.filename, o.impossible...)
		if b.alias.Facts != item.NoFacts {
			items[i].Facts = b.uploader.Derived.FactsOf(b.alias, b.req.BaseURL, o.filename, o.image, o.hash)
			b.uploader.Derived.Remember(b.alias, o.filename, o.info, o.image, o.hash)
		}
		if b.alias.WebP != nil && o.mayHaveVariant() {
			observer.Variant(b.alias, o.variantResult(), o.variantTook)
		}
		change := Change{Action: Stored, Alias: b.alias, Item: items[i], Actor: b.req.Actor, Transfer: transfer}
		if o.replaced {
			change.Action = Replaced
		}
		if b.same && o.own.Key != "" {
			change.Action = Unchanged
		}
		observer.Changed(ctx, change)
		if b.req.Actor.Ticket != "" {
			items[i].Trash = "" // it must not learn what was there
		}
	}
	return items
}

// failed returns the failures of the uploads as an error; nil if none has failed.
func (b *batch) failed() error {
	var failures item.Failures
	for _, up := range b.uploads {
		if up.failure != nil {
			up.failure.Filename = up.submitted
			failures = append(failures, up.failure)
		}
	}
	if failures == nil {
		return nil
	}
	return failures
}

// asFailures returns the failures in err. An error without any becomes an Internal failure.
func asFailures(err error) item.Failures {
	var (
		many item.Failures
		one  *item.Failure
	)
	switch {
	case errors.As(err, &many):
		return many
	case errors.As(err, &one):
		return item.Failures{one}
	default:
		return item.Failures{{Reason: item.Internal, Message: "internal error", Err: err}}
	}
}

func asFailure(err error) *item.Failure { return asFailures(err)[0] }
