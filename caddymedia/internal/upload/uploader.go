// Package upload stores the files of requests: all files of a request, or none.
//
// An upload takes four steps, each in the file of its name:
//
//   - receive stages every file on its storage, without a public name.
//   - check verifies names and contents. It decodes images, stages their variants and makes their
//     eager renditions (image.go).
//   - commit names all staged data by one call. If a name is taken, the item gets another one.
//   - report reports the outcome to the observer, and returns items or failures.
//
// Uploads over HTTP, from the panel, by Go code and by the commands all use this package, so that
// none bypasses a check. Begin with [Uploader.Upload] and its argument [Source].
package upload

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Uploader stores, deletes and maintains items.
type Uploader struct {
	// Aliases by kind and name.
	Aliases map[aliases.Kind]map[string]*aliases.Alias
	// Limits of one request.
	Limits Limits
	// Staging bounds the memory and files of requests that are being received.
	Staging *Staging
	// Derived makes variants and renditions.
	Derived *derived.Maker
	// Now is the clock for folders with a date and for names with the time.
	Now func() time.Time
	// Observer records events; [NopObserver] records nothing.
	Observer Observer
	// Log receives details that are not for callers.
	Log *slog.Logger

	seconds seconds
}

// Upload stores the files of src: all of them, in their order, or none. Failures are nil if they
// are stored; otherwise they name each file that failed, or the request as a whole.
func (u *Uploader) Upload(ctx context.Context, req Request, src Source) (items []Item, failures aliases.Failures) {
	ctx = storagedrivers.WithOwner(ctx, req.Actor.Owner())
	ended := u.Observer.Began(req)
	defer func() { ended(items != nil) }()
	b := u.newBatch(req)
	defer b.close()
	return b.report(ctx, b.store(ctx, src))
}

// store stores the files of src.
func (b *batch) store(ctx context.Context, src Source) error {
	err := b.receive(ctx, src)
	if err == nil {
		err = b.check(ctx)
	}
	if err == nil {
		err = b.commit(ctx) // and variants and renditions
	}
	return err
}

// Refuse reports a request whose item is not available to the observer, as Upload reports a refused
// request.
func (u *Uploader) Refuse(ctx context.Context, req Request, failure *aliases.Failure) aliases.Failures {
	ended := u.Observer.Began(req)
	defer ended(false)
	b := u.newBatch(req)
	err := aliases.Traced(ctx, "media.receive", b.attributes, func(context.Context) error { return failure })
	_, failures := b.report(ctx, err)
	return failures
}

// Request describes an upload, without its items.
type Request struct {
	Kind aliases.Kind
	// Alias and SubFolder of the request's address. Fields of the form take precedence.
	Alias, SubFolder string
	// Allows reports whether the account may use an alias; nil allows all.
	Allows func(alias string) bool
	// Filename, if set, is that of the stored item which the only file of the request replaces,
	// whatever its name.
	Filename string
	// Matches, if set, is the condition of the request: it reports whether the stored item is the
	// one to replace. Without Filename it is called for the name of the only file, and with the
	// zero Info if there is no such item.
	Matches func(storagedrivers.Info) bool
	// Stored, if set, is the item of Filename before the request. A large file is sent to the storage
	// early on the assumption that it still is that one.
	Stored storagedrivers.Info
	// Transfer is the move or copy that the request is; nil for an upload. See [Uploader.Transfer].
	Transfer *Transfer
	// Import, if set, opens the addresses in fields called url. They are files of the request.
	Import Importer
	// ImportTime bounds all imports of the request together, and MaxImported the sum of their
	// bytes; 0 means no limit.
	ImportTime  time.Duration
	MaxImported int64
	// NoFiles and NoImports, if set, refuse requests with files and with addresses.
	NoFiles, NoImports *aliases.Failure
	// Forced is what the caller's credential forces.
	Forced Forced
	// Confirm, if set, is called with the alias and the number of items right before the commit. An
	// upload may last for hours, and the account may lose its rights meanwhile. A failure refuses
	// the request. Otherwise settle, if set, is called with the outcome of the commit.
	Confirm func(ctx context.Context, alias string, items int) (settle func(stored bool), failure *aliases.Failure)
	// Claim, if set, makes a request repeatable. However often it is repeated, also after a crash,
	// its items are stored once. Claim replaces each of claims by that of the first attempt that
	// made it, or else stores it, to which it may add an ID. An error of Claim that is an
	// *[aliases.Failure] refuses the request. ID identifies the item of a request whose claims have
	// none, in letters and digits.
	ID    string
	Claim func(ctx context.Context, claims []Claim) error
	// Leased means that no two attempts run at the same time. Without it, the request has one item.
	Leased bool
	// Unclaim, if set, is called if no item of a leased request is stored, nor ever will be, under
	// the claims of this and of all earlier attempts.
	Unclaim func()
	// BaseURL is the start of public addresses if the alias has none.
	BaseURL string
	// Actor is the caller.
	Actor aliases.Actor
}

// Mismatch returns the failure if a stored item is not the one to replace; nil if it is. The zero
// Info means that there is none.
func (r Request) Mismatch(stored storagedrivers.Info) *aliases.Failure {
	if r.Filename != "" {
		return mismatch(r.Filename, stored, r.Matches)
	}
	if r.Matches == nil || r.Matches(stored) {
		return nil
	}
	return aliases.Failf(aliases.Changed, "a condition in the header of the request does not hold for the item of this name")
}

// isConditional reports whether a stored item decides if the request is carried out.
func (r Request) isConditional() bool { return r.Filename != "" || r.Matches != nil }

// mismatch returns the failure if a stored item does not match.
func mismatch(filename string, stored storagedrivers.Info, matches func(storagedrivers.Info) bool) *aliases.Failure {
	switch {
	case stored.Key == "":
		return &aliases.Failure{Reason: aliases.Missing, Message: "there is no such item", Filename: filename}
	case matches != nil && !matches(stored):
		return &aliases.Failure{Reason: aliases.Changed, Message: ErrOtherItem.Error(), Filename: filename}
	}
	return nil
}

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
	party    queue.Party // of the actor
	now      time.Time

	fields    map[string]string // alias and sub_folder of the form
	uploads   []*upload
	reserved  reservation
	doomed    atomic.Bool    // an upload has failed, so none will be committed
	alias     *aliases.Alias // set by check
	objects   []*object      // the committed uploads, set by commit
	unclaim   []func()       // the locks of claimed filenames
	mayStay   bool           // an item of a failed commit may stay stored
	recovered bool           // the commits of dead processes

	source    storagedrivers.Info // of Request.Transfer, set by receive
	copies    bool                // its storage copies it, as far as is known
	removed   Item                // the moved item, set by commit
	unremoved error               // why the moved item is left
}

// upload is a received file.
type upload struct {
	submitted string // its name in failures
	name      string // the name that the filename is made of; empty for the decoded submitted one
	imported  bool   // submitted is the address of its content
	storage   *storagedrivers.Storage
	buffer    []byte                // all bytes of a small file, until its request is checked
	head      *[headSize]byte       // whose bytes the buffer has; nil if it has its own
	staged    storagedrivers.Staged // nil if the file is in the buffer, or has failed
	size      int64
	failure   *aliases.Failure // the reason not to store it

	// Set by check.
	filename    string                  // relative to the alias; under Append Time it may change
	plain       string                  // filename without the time
	tries       int                     // of other filenames
	claim       Claim                   // of the filename, with Request.Claim
	claimed     bool                    // once
	claimedTry  int                     // for which tries the claim is
	stored      bool                    // by an earlier attempt
	image       imaging.Info            // zero if it is no image
	variant     storagedrivers.Staged   // staged beside it; nil if there is none
	variantTook time.Duration           // to make the variant, or to fail
	renditions  []derived.MadeRendition // the eager ones
	impossible  []string                // names of renditions that it cannot have
}

// object is an upload that is being committed under its filename.
type object struct {
	*upload
	change           int // the index of the change that stores it; that of its variant follows
	info             storagedrivers.Info
	replaced         bool                 // another item of the name
	match            string               // the entity tag of the only item that it may replace
	creates          bool                 // it may replace none, although its alias overwrites
	uncovered        bool                 // the variant of that item was removed before
	committedVariant *storagedrivers.Info // nil if there is none
	hasVariant       bool                 // a variant of the image is stored beside it
}

func (u *Uploader) newBatch(req Request) *batch {
	return &batch{uploader: u, req: req, party: req.Actor.Party(), now: u.Now(), fields: map[string]string{}}
}

// close discards staged data that is not committed, and releases the memory and files of the
// request.
func (b *batch) close() {
	b.releaseClaims()
	for _, up := range b.uploads {
		if err := up.discard(); err != nil {
			b.uploader.Log.Warn("closing staged data", "error", err)
		}
	}
	staging := b.uploader.Staging
	staging.memory.Release(b.party, b.reserved.memory.Swap(0))
	staging.files.Release(b.party, b.reserved.files.Swap(0))
}

// mayHaveVariant reports whether the upload is an image that may have a variant.
func (up *upload) mayHaveVariant() bool { return up.image.Format.HasVariant() }

// aliasName returns the alias of the request, from the fields received so far.
func (b *batch) aliasName() string {
	return cmp.Or(b.fields["alias"], b.req.Alias, b.req.Forced.Alias, aliases.DefaultAlias)
}

// subFolder returns the sub folder of the request, from the fields received so far.
func (b *batch) subFolder() string {
	return cmp.Or(b.fields["sub_folder"], b.req.SubFolder, b.req.Forced.SubFolder, b.req.Forced.Below)
}

// storedName returns the filename of an upload in an alias.
func (b *batch) storedName(alias *aliases.Alias, up *upload, subFolder string) (string, error) {
	if b.req.Filename == "" {
		return alias.StoredName(b.req.Forced.filename(cmp.Or(up.name, naming.Decode(up.submitted))), subFolder, b.now, b.req.Actor.Origin)
	}
	if !alias.Overwrite {
		return "", aliases.Failf(aliases.Conflict, "the items of this alias are never replaced: upload another one")
	}
	return b.req.Filename, alias.CheckFilename(b.req.Filename, b.req.Actor.Origin)
}

func (r Request) allows(alias string) bool { return r.Allows == nil || r.Allows(alias) }

// target returns the alias of the request, if the request may use it with its sub folder.
func (b *batch) target() (*aliases.Alias, error) {
	alias, err := b.findAlias(b.aliasName())
	if err != nil {
		return nil, err
	}
	return alias, b.req.Forced.checkSubFolder(b.subFolder())
}

// findAlias returns the alias of a name if the request may use it.
func (b *batch) findAlias(name string) (*aliases.Alias, error) {
	if only := b.req.Forced.Alias; only != "" && name != only {
		return nil, aliases.Failf(aliases.Forbidden, "the ticket is for the alias %q only", only)
	}
	a := b.uploader.Aliases[b.req.Kind][name]
	if a == nil {
		return nil, aliases.Failf(aliases.BadRequest, "unknown alias %.64q", name)
	}
	if !b.req.allows(name) {
		return nil, aliases.Failf(aliases.Forbidden, "the account may not use the alias %.64q", name)
	}
	return a, nil
}

// attributes returns the attributes of spans about a request. They do not name an unknown alias,
// which could be any text.
func (b *batch) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{attribute.String("media.alias.kind", string(b.req.Kind))}
	if alias := b.uploader.Aliases[b.req.Kind][b.aliasName()]; alias != nil {
		attributes = alias.Attributes()
	}
	var size int64
	for _, up := range b.uploads {
		size += up.size
	}
	return append(attributes, attribute.Int("media.files", len(b.uploads)), attribute.Int64("media.size", size))
}

// committedAttributes adds the filenames. They have passed the checks, so they can be shown.
func (b *batch) committedAttributes() []attribute.KeyValue {
	filenames := make([]string, len(b.uploads))
	for i, up := range b.uploads {
		filenames[i] = up.filename
	}
	return append(b.attributes(), attribute.StringSlice("media.filename", filenames))
}
