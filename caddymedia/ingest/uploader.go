// Package ingest stores the files of requests: all files of a request, or none.
//
// An upload takes six steps, each in the file of its name:
//
//   - receive stages every file on its storage, without a public name.
//   - check verifies names and contents.
//   - render decodes images, stages their variants and makes their eager renditions. It stores the
//     renditions after the commit. The files rendition*.go make the others, on request.
//   - commit names all staged data. If one commit fails, the others are rolled back.
//   - variant ensures, before a commit ends, that each variant belongs to its image.
//   - report reports the outcome to the observer, and returns items or failures.
//
// Uploads over HTTP, from the panel, by Go code and by the commands all use this package, so that
// none bypasses a check.
package ingest

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// Uploader stores, deletes and maintains items.
type Uploader struct {
	// Aliases by kind and name.
	Aliases map[Kind]map[string]*Alias
	// Limits of one request.
	Limits Limits
	// Staging bounds the memory and files of requests that are being received.
	Staging *Staging
	// Pictures decodes pictures and makes their variants.
	Pictures *render.Maker
	// Now is the clock for folders with a date and for names with the time.
	Now func() time.Time
	// Observer records events; [NopObserver] records nothing.
	Observer Observer
	// Log receives details that are not for callers.
	Log *slog.Logger

	seconds seconds
	making  singleflight.Group // of renditions
}

// Upload stores the files of src: all of them, in their order, or none. Failures are nil if they
// are stored; otherwise they name each file that failed, or the request as a whole.
func (u *Uploader) Upload(ctx context.Context, req Request, src Source) (items []Item, failures Failures) {
	ctx = storagedrivers.WithOwner(ctx, req.Actor.Owner())
	ended := u.Observer.Began(req)
	defer func() { ended(items != nil) }()
	b := u.newBatch(req)
	defer b.close()
	err := b.receive(ctx, src)
	if err == nil {
		err = b.check(ctx)
	}
	if err == nil {
		err = b.commit(ctx) // and variants and renditions
	}
	return b.report(ctx, err)
}

// Refuse reports a request whose item is not available to the observer, as Upload reports a refused
// request.
func (u *Uploader) Refuse(ctx context.Context, req Request, failure *Failure) Failures {
	ended := u.Observer.Began(req)
	defer ended(false)
	b := u.newBatch(req)
	err := traced(ctx, "media.receive", b.attributes, func(context.Context) error { return failure })
	_, failures := b.report(ctx, err)
	return failures
}
