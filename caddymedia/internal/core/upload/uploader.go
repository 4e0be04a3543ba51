// Package upload stores the files of requests: all files of a request, or none. It reads no
// credentials and answers no request, which its callers do: HTTP endpoints, the panel, Go code and
// commands all use this package, so that none bypasses a check. Begin with [Uploader.Upload] and
// its argument [Source].
//
// An upload takes four steps, each in the file of its name:
//
//   - receive stages every file on its storage, without a public name.
//   - check verifies names and contents. It decodes images, stages their variants and makes their
//     eager renditions (image.go).
//   - commit names all staged data by one call. If a name is taken, the item gets another one.
//   - report reports the outcome to the observer, and returns items or failures.
package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"path"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Uploader stores, deletes and maintains items.
type Uploader struct {
	// Aliases by kind and name.
	Aliases map[item.Kind]map[string]*item.Alias
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
func (u *Uploader) Upload(ctx context.Context, req Upload, src Source) ([]Item, item.Failures) {
	return u.newUpload(req).run(ctx, src)
}

// Replace replaces an item by the only file of src, with all checks of an upload.
func (u *Uploader) Replace(ctx context.Context, req Replacement, src Source) ([]Item, item.Failures) {
	return u.newBatch(req.Request, req.kind()).run(ctx, src)
}

// run carries out the request with the files of src, and reports it.
func (b *batch) run(ctx context.Context, src Source) (items []Item, failures item.Failures) {
	ctx = storagedrivers.WithOwner(ctx, b.req.Actor.Owner())
	ended := b.uploader.Observer.Began(b.operation)
	defer func() { ended(items != nil) }()
	defer b.close()
	if err := b.store(ctx, src); err != nil {
		return nil, b.reportRefused(ctx, err)
	}
	return b.reportStored(ctx, nil), nil
}

// store stores the files of src.
func (b *batch) store(ctx context.Context, src Source) error {
	err := b.setHold()
	if err == nil {
		err = b.receive(ctx, src)
	}
	if err == nil {
		err = b.check(ctx)
	}
	if err == nil && b.hold != nil {
		return b.hold(ctx, b.checked())
	}
	if err == nil {
		err = b.commit(ctx) // and variants and renditions
	}
	return err
}

// Refuse reports an upload whose file is not available to the observer, as Upload reports a refused
// one.
func (u *Uploader) Refuse(ctx context.Context, req Upload, failure *item.Failure) item.Failures {
	ended := u.Observer.Began(req.Operation())
	defer ended(false)
	b := u.newUpload(req)
	return b.reportRefused(ctx, item.Traced(ctx, "media.receive", b.attributes, func(context.Context) error { return failure }))
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
	// Info is what the storage says about its object; zero for a deleted item.
	Info storagedrivers.Info
	// Facts are those of an image whose alias wants them; otherwise nil.
	Facts *derived.Facts
	// Trash is the ID of the entry in the trash that keeps the item that was replaced or deleted;
	// empty if there is none.
	Trash string
	// Unchecked are the names of the checks by other programs that it was stored without.
	Unchecked []string
}

// batch is the state of one request.
type batch struct {
	kind
	uploader *Uploader
	req      Request
	form     Upload      // what an upload says about its files; zero for other requests
	party    queue.Party // of the actor
	id       string      // begins the IDs of the items
	now      time.Time   // that of the first attempt if the request is repeatable

	fields   map[string]string // alias and sub_folder of the form
	uploads  []*received
	reserved reservation
	doomed   atomic.Bool // an upload has failed, so none will be committed
	alias    *item.Alias // set by check
	objects  []*object   // the committed uploads, set by commit
	mayStay  bool        // an item of a failed commit may stay stored

	hold       Holder      // takes the files in place of the commit; nil if they are stored
	unanswered atomic.Bool // a check by another program has no answer
}

// received is a received file.
type received struct {
	submitted string // its name in failures
	name      string // the name that the filename is made of; empty for the decoded submitted one
	subFolder string // of a file that has its own; empty for that of the request
	imported  bool   // submitted is the address of its content
	storage   *storagedrivers.Storage
	buffer    []byte                // all bytes of a small file, until its request is checked
	head      *[headSize]byte       // whose bytes the buffer has; nil if it has its own
	staged    storagedrivers.Staged // nil if the file is in the buffer, or has failed
	size      int64
	failure   *item.Failure // the reason not to store it

	// Set by check.
	plain       string                  // filename without the time, relative to the alias
	image       imaging.Info            // zero if it is no image
	variant     storagedrivers.Staged   // staged beside it; nil if there is none
	variantTook time.Duration           // to make the variant, or to fail
	renditions  []derived.MadeRendition // the eager ones
	impossible  []string                // names of renditions that it cannot have
	hash        []byte                  // its ThumbHash; nil if it has none
	unchecked   []string                // names of checks that it is stored without

	// Set by check, and changed by commit under Append Time.
	filename string
	tries    int // of other filenames

	// Set by commit, if an earlier attempt has stored it.
	own       storagedrivers.Info // the object under its filename; zero if it is to be stored
	overtaken bool                // others have replaced it since
}

// object is an upload that is being committed under its filename.
type object struct {
	*received
	change           int                       // the index of the change that stores it; that of its variant follows
	options          storagedrivers.PutOptions // of that change
	info             storagedrivers.Info
	replaced         bool                 // another item of the name
	old              storagedrivers.Info  // that item, if the trash keeps it
	trash            string               // the ID of its entry, whose change is the one before; empty for none
	uncovered        bool                 // the variant of that item was removed before
	committedVariant *storagedrivers.Info // nil if there is none
	hasVariant       bool                 // a variant of the image is stored beside it
}

func (u *Uploader) newUpload(req Upload) *batch {
	b := u.newBatch(req.Request, req.kind())
	b.form = req
	return b
}

func (u *Uploader) newBatch(req Request, k kind) *batch {
	b := &batch{kind: k, uploader: u, req: req, party: req.Actor.Party(), id: rand.Text(), now: u.Now(), fields: map[string]string{}}
	if r := req.Repetition; r != nil {
		b.id, b.now = r.ID, r.Began
	}
	return b
}

// isRepeated reports whether an earlier attempt may have stored items of the request.
func (b *batch) isRepeated() bool { return b.req.Repetition != nil && b.req.Repetition.Again }

// close discards staged data that is not committed, and releases the memory and files of the
// request.
func (b *batch) close() {
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
func (up *received) mayHaveVariant() bool { return up.image.Format.HasVariant() }

// aliasName returns the alias of the request, from the fields received so far.
func (b *batch) aliasName() string {
	return cmp.Or(b.fields["alias"], b.req.Alias, b.req.Forced.Alias, item.DefaultAlias)
}

// subFolder returns the sub folder of the request, from the fields received so far.
func (b *batch) subFolder() string {
	return cmp.Or(b.fields["sub_folder"], b.form.SubFolder, b.req.Forced.SubFolder, b.req.Forced.Below)
}

// folderOf returns the sub folder of an upload.
func (b *batch) folderOf(up *received) string { return cmp.Or(up.subFolder, b.subFolder()) }

// givenName returns the name that the filename of an upload is made of.
func (b *batch) givenName(up *received) string {
	return b.req.Forced.filename(cmp.Or(up.name, naming.Decode(up.submitted)))
}

// storedName returns the filename of an upload in an alias.
func (b *batch) storedName(alias *item.Alias, up *received, subFolder string) (string, error) {
	if b.exact != "" && b.asItWas {
		return b.exact, nil
	}
	if b.exact != "" {
		name, err := alias.StoredName(path.Base(b.exact), subFolder, b.now, b.req.Actor.Origin)
		if err == nil {
			err = b.checkExact(alias, name)
		}
		return name, err
	}
	if b.filename == "" {
		return alias.StoredName(b.givenName(up), subFolder, b.now, b.req.Actor.Origin)
	}
	if !alias.Overwrite {
		return "", item.Failf(item.Conflict, "the items of this alias are never replaced: upload another one")
	}
	return b.filename, alias.CheckFilename(b.filename, b.req.Actor.Origin)
}

// checkExact returns an error if the item must have another filename.
func (b *batch) checkExact(alias *item.Alias, filename string) error {
	if b.exact == "" || filename == b.exact {
		return nil
	}
	return alias.RenamedFailure(filename)
}

// target returns the alias of the request, if the request may use it with its sub folder.
func (b *batch) target() (*item.Alias, error) {
	alias, err := b.findAlias(b.aliasName())
	switch {
	case err != nil:
		return nil, err
	case b.req.Purge && alias.Overwrite && alias.TrashLocked:
		return nil, errLocked
	}
	return alias, b.req.Forced.checkSubFolder(b.subFolder())
}

// findAlias returns the alias of a name if the request may use it.
func (b *batch) findAlias(name string) (*item.Alias, error) {
	if only := b.req.Forced.Alias; only != "" && name != only {
		return nil, item.Failf(item.Forbidden, "the ticket is for the alias %q only", only)
	}
	if !b.req.allows(name) { // the account must not learn which aliases exist
		return nil, item.Failf(item.Forbidden, "the account may not use the alias %.64q", name)
	}
	a := b.uploader.Aliases[b.req.Kind][name]
	if a == nil {
		return nil, item.Failf(item.BadRequest, "unknown alias %.64q", name)
	}
	if b.overwrites {
		replacing := *a
		replacing.Overwrite, a = true, &replacing
	}
	if b.asItWas {
		a = a.WithoutRules()
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
