package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
)

// Uploader stores the items of requests.
type Uploader struct {
	// Aliases by kind and name.
	Aliases map[Kind]map[string]*Alias
	// Limits of one request.
	Limits Limits
	// Staging bounds the memory and files of requests that are being received; nil sets no bound.
	Staging *Staging
	// Pictures decodes pictures and makes their variants.
	Pictures *variant.Maker
	// Now is the clock for folders with a date and names with the time.
	Now func() time.Time
	// Observer records what happens. It is required; [NopObserver] records nothing.
	Observer Observer
	// Log receives details that callers need not know.
	Log *slog.Logger

	seconds seconds
}

// Request describes an upload, without its items.
type Request struct {
	Kind Kind
	// Alias and SubFolder of the request's address. Fields of the form take precedence.
	Alias, SubFolder string
	// Allows reports whether the account may use an alias; nil allows every one.
	Allows func(alias string) bool
	// Confirm, if set, is called right before the commit, with the alias. An upload may last for
	// hours, and the account may lose its rights meanwhile. An error, a *Failure, refuses the
	// request.
	Confirm func(ctx context.Context, alias string) error
	// BaseURL is the start of public addresses if the alias has none.
	BaseURL string
	// Actor is the caller.
	Actor Actor
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

// Upload stores the files of src: all of them, in their order, or none. Failures are nil if they are
// stored; otherwise they name each file that failed, or the request as a whole.
func (u *Uploader) Upload(ctx context.Context, req Request, src Source) (items []Item, failures Failures) {
	ended := u.Observer.Began(req)
	defer func() { ended(items != nil) }()
	b := u.newBatch(req)
	defer func() {
		if err := b.close(); err != nil {
			u.Log.Warn("closing staged data", "error", err)
		}
	}()
	err := traced(ctx, "media.receive", b.attributes, func(ctx context.Context) error {
		if err := src.receive(ctx, b); err != nil {
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

// Refuse reports a request whose item is not available, as Upload reports one that it refuses.
func (u *Uploader) Refuse(ctx context.Context, req Request, failure *Failure) Failures {
	ended := u.Observer.Began(req)
	defer ended(false)
	b := u.newBatch(req)
	err := traced(ctx, "media.receive", b.attributes, func(context.Context) error { return failure })
	return b.refused(ctx, err)
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
func (u *Uploader) alias(req Request, name string) (*Alias, error) {
	a := u.Aliases[req.Kind][name]
	if a == nil {
		return nil, failf(BadRequest, "unknown alias %.64q", name)
	}
	if !req.allows(name) {
		return nil, failf(Forbidden, "the account may not use the alias %.64q", name)
	}
	return a, nil
}
