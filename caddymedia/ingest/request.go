package ingest

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/storagedrivers"
)

// Request describes an upload, without its items.
type Request struct {
	Kind Kind
	// Alias and SubFolder of the request's address. Fields of the form take precedence.
	Alias, SubFolder string
	// Allows reports whether the account may use an alias; nil allows all.
	Allows func(alias string) bool
	// Forced is what the caller's credential forces.
	Forced Forced
	// Confirm, if set, is called with the alias and the number of items right before the commit. An
	// upload may last for hours, and the account may lose its rights meanwhile. A failure refuses
	// the request. Otherwise settle, if set, is called with the outcome of the commit.
	Confirm func(ctx context.Context, alias string, items int) (settle func(stored bool), failure *Failure)
	// ID and Claim, if set, make a request with one item repeatable. However often it is repeated, also
	// by several processes at the same time or after a crash, the item is stored once. ID identifies
	// the item, in letters and digits. Claim returns the n-th claim of the item, from 0: that of the
	// first attempt that claimed a filename, or else proposed.
	ID    string
	Claim func(ctx context.Context, n int, proposed Claim) (Claim, error)
	// BaseURL is the start of public addresses if the alias has none.
	BaseURL string
	// Actor is the caller.
	Actor Actor
}

// Actor uploads or deletes an item.
type Actor struct {
	Origin Origin
	// Account is the API key, or the user of the panel; empty if there is none.
	Account string
	// Client is the address of the client; empty if there is none.
	Client string
}

// Owner returns the key by which the requests of an actor share bounded resources.
func (a Actor) Owner() string { return string(a.Origin) + " " + a.Account }

// Origin is where a request comes from.
type Origin string

// The origins.
const (
	OriginHTTP  Origin = "http"  // the endpoints
	OriginPanel Origin = "panel" // the administrators' panel
	OriginAdmin Origin = "admin" // Caddy's admin endpoint
	OriginGo    Origin = "go"    // code in the same process
)

// Item is a stored item.
type Item struct {
	// FullPath is the public address.
	FullPath string
	// Filename is the stored name, relative to the alias, sub folder included.
	Filename string
	// Size in bytes.
	Size int64
	// WebP is the public address of the variant; empty if there is none.
	WebP string
	// Renditions are the public addresses of the renditions by their names; nil if there are none.
	Renditions map[string]string
}

// batch is the state of one request.
type batch struct {
	uploader *Uploader
	req      Request
	now      time.Time

	fields   map[string]string // alias and sub_folder of the form
	uploads  []*upload
	reserved reservation
	doomed   atomic.Bool // an upload has failed, so none will be committed
	alias    *Alias      // set by check
	objects  []*object   // the committed uploads, set by commit
}

// upload is a received file.
type upload struct {
	submitted string // its name
	storage   *storagedrivers.Storage
	buffer    []byte                // all bytes of a small file, until its request is complete
	staged    storagedrivers.Staged // nil if the file is in the buffer, or has failed
	size      int64
	failure   *Failure // the reason not to store it

	// Set by check.
	filename    string                // relative to the alias; under Append Time it may change
	plain       string                // filename without the time
	tries       int                   // of other filenames
	claim       Claim                 // of the filename, with Request.Claim
	claimedTry  int                   // for which tries it is
	unclaim     func()                // nil before the claim
	picture     imaging.Info          // zero if it is no picture
	variant     storagedrivers.Staged // staged beside it; nil if there is none
	variantTook time.Duration         // to make the variant, or to fail
	renditions  []madeRendition       // the eager ones
	impossible  []string              // names of renditions that it cannot have
}

// object is an upload that is being committed under its filename.
type object struct {
	*upload
	change           int // the index of the change that stores it; that of its variant follows
	info             storagedrivers.Info
	replaced         bool                 // another item of the name
	uncovered        bool                 // the variant of that item was removed before
	committedVariant *storagedrivers.Info // nil if there is none
	hasVariant       bool                 // a variant of the picture is stored beside it
}

func (u *Uploader) newBatch(req Request) *batch {
	return &batch{uploader: u, req: req, now: u.Now(), fields: map[string]string{}}
}

// close discards staged data that is not committed.
func (b *batch) close() {
	for _, up := range b.uploads {
		up.releaseClaim()
		if err := up.discard(); err != nil {
			b.uploader.Log.Warn("closing staged data", "error", err)
		}
	}
	b.releaseAll()
}

// isRaster reports whether the upload is a picture of pixels that can be decoded.
func (up *upload) isRaster() bool { return up.picture.Format.Decodable() }

// mayHaveVariant reports whether the upload is a picture that may have a variant.
func (up *upload) mayHaveVariant() bool { return up.picture.Format.HasVariant() }

// aliasName returns the alias of the request, from the fields received so far.
func (b *batch) aliasName() string {
	return cmp.Or(b.fields["alias"], b.req.Alias, b.req.Forced.Alias, DefaultAlias)
}

// subFolder returns the sub folder of the request, from the fields received so far.
func (b *batch) subFolder() string {
	return cmp.Or(b.fields["sub_folder"], b.req.SubFolder, b.req.Forced.SubFolder)
}

func (r Request) allows(alias string) bool { return r.Allows == nil || r.Allows(alias) }

// findAlias returns the alias of a name if the request may use it.
func (b *batch) findAlias(name string) (*Alias, error) {
	if err := b.req.Forced.checkAlias(name); err != nil {
		return nil, err
	}
	a := b.uploader.Aliases[b.req.Kind][name]
	if a == nil {
		return nil, failf(BadRequest, "unknown alias %.64q", name)
	}
	if !b.req.allows(name) {
		return nil, failf(Forbidden, "the account may not use the alias %.64q", name)
	}
	return a, nil
}
