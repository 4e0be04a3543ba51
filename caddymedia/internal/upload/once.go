package upload

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// Claim is a filename under which the item of a repeatable request may be stored.
type Claim struct {
	// Item is the index of the item, and Try the number of its claims before this one.
	Item     int    `json:"-"`
	Try      int    `json:"-"`
	Filename string `json:"filename"`
	// ID identifies the item under this claim, in letters and digits; empty for [Request.ID].
	ID string `json:"id,omitempty"`
	// Before is the object that had the filename before it was claimed; zero for none.
	Before storagedrivers.Info `json:"before"`
	// Earlier reports that an earlier or concurrent attempt has claimed it, and may have stored the
	// item.
	Earlier bool `json:"-"`
	// Final reports that no other item may be stored in place of that of an earlier attempt.
	Final bool `json:"-"`
}

// claiming are locks of the filenames that are being claimed in this process. Two items of the same
// bytes and name must not take each other for an earlier attempt.
var claiming locks.Names

// pending returns the uploads that no attempt has stored.
func (b *batch) pending() []*upload {
	return slices.DeleteFunc(slices.Clone(b.uploads), func(up *upload) bool { return up.stored })
}

// claim sets the filenames of the pending uploads to their claims, and locks them. Without
// [Request.Claim] it does nothing.
func (b *batch) claim(ctx context.Context) error {
	if b.req.Claim == nil {
		return nil
	}
	pending := b.pending()
	if !slices.ContainsFunc(pending, func(up *upload) bool { return !up.isClaimed() }) {
		return nil
	}
	if err := b.lockClaims(ctx, pending); err != nil {
		return pending[0].storageFailure(err)
	}
	if err := b.claimNames(ctx, pending); err != nil {
		return err
	}
	isOther, isRepeated := false, false
	for _, up := range pending {
		isOther = isOther || up.filename != up.claim.Filename
		isRepeated = isRepeated || up.claim.Earlier
		up.filename = up.claim.Filename
		if err := b.req.Forced.checkPath(up.filename); err != nil { // the user may have another folder by now
			return up.storageFailure(err)
		}
	}
	if isRepeated {
		b.recoverDead(ctx)
	}
	if isOther {
		if err := b.lockClaims(ctx, pending); err != nil {
			return pending[0].storageFailure(err)
		}
	}
	return nil
}

func (up *upload) isClaimed() bool { return up.claimed && up.claimedTry == up.tries }

// claimNames claims the filenames of the pending uploads. A name that this attempt has claimed
// before was not locked meanwhile, so it is looked up again.
func (b *batch) claimNames(ctx context.Context, pending []*upload) error {
	before := make([]storagedrivers.Info, len(pending))
	for i, err := range abreast(len(pending), requests, func(i int) (err error) {
		if up := pending[i]; !up.isClaimed() || !up.claim.Earlier {
			before[i], err = aliases.Stat(ctx, b.alias.Storage, b.alias.Key(up.filename))
		}
		return err
	}) {
		if err != nil {
			return pending[i].storageFailure(err)
		}
	}
	var claims []Claim
	for i, up := range pending {
		switch {
		case !up.isClaimed():
			claims = append(claims, Claim{Item: slices.Index(b.uploads, up), Try: up.tries, Filename: up.filename, Before: before[i]})
		case !up.claim.Earlier:
			up.claim.Before = before[i]
		}
	}
	if err := b.req.Claim(ctx, claims); err != nil {
		return pending[0].storageFailure(err)
	}
	for _, claim := range claims {
		up := b.uploads[claim.Item]
		up.claim, up.claimed, up.claimedTry = claim, true, up.tries
	}
	return nil
}

// lockClaims locks the filenames of the pending uploads, and no others, always in the same order.
func (b *batch) lockClaims(ctx context.Context, pending []*upload) error {
	b.releaseClaims()
	names := make([]string, len(pending))
	for i, up := range pending {
		names[i] = b.alias.LockName(up.filename)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		unlock, err := claiming.Lock(ctx, name)
		if err != nil {
			return err
		}
		b.unclaim = append(b.unclaim, unlock)
	}
	return nil
}

func (b *batch) releaseClaims() {
	for _, unlock := range b.unclaim {
		unlock()
	}
	b.unclaim = nil
}

// recoverDead undoes or completes the commit of a dead process, if it may have been an earlier
// attempt. Otherwise that would be undone after this attempt has taken it for complete.
func (b *batch) recoverDead(ctx context.Context) {
	if b.recovered || b.alias.Storage.Features().Together != storagedrivers.Atomic {
		return
	}
	b.recovered = true
	if _, err := b.alias.Storage.Sweep(ctx, storagedrivers.SweepOptions{OlderThan: time.Nanosecond}); err != nil {
		b.uploader.Log.Warn("recovering aborted uploads", "storage", b.alias.Storage.Name(), "error", err)
	}
}

// errStored means that an earlier attempt has stored the item.
var errStored = errors.New("the item is stored already")

// ifStored returns errStored if an earlier or concurrent attempt has stored the item under its
// claim: another object has the filename than before. Under Overwrite it may have replaced the item
// since.
func (b *batch) ifStored(ctx context.Context, up *upload) error {
	storage := b.alias.Storage
	if b.req.Claim == nil || !b.alias.Overwrite && storage.Features().Repeat {
		return nil // the commit has recognised its own object
	}
	if b.alias.Overwrite && !up.claim.Earlier || b.isFirst(up) {
		return nil
	}
	info, err := aliases.Stat(ctx, storage, b.alias.Key(up.filename))
	if err != nil || info.Key == "" || info.Key == up.claim.Before.Key && info.Same(up.claim.Before) {
		return err
	}
	if b.alias.Overwrite {
		return errStored
	}
	same, err := b.sameBytes(ctx, up, info)
	switch {
	case err == nil && same:
		return errStored
	case err == nil && up.claim.Final:
		return aliases.Failf(aliases.OtherRequest, "an earlier request with this Idempotency-Key had other bytes: send another key")
	}
	return err
}

// isUnclaimed reports whether the claims are of no use after a failed commit. A backend that knows an item
// by its ID may store it late, and recognises it then.
func (b *batch) isUnclaimed() bool {
	return !b.mayStay && !b.alias.Storage.Features().Repeat &&
		!slices.ContainsFunc(b.uploads, func(up *upload) bool { return up.claim.Earlier })
}

// isFirst reports whether no attempt can have stored an upload under its name: it is the first one, alone,
// and commits are not repeated.
func (b *batch) isFirst(up *upload) bool {
	return b.req.Leased && !up.claim.Earlier && b.alias.Storage.Features().Together == storagedrivers.Atomic
}

// separate changes the filename of each claimed upload that has the one of an upload before it, and
// reports whether there was one. The storage does it too, but then it calls names taken that have items
// of an earlier attempt.
func (b *batch) separate(ctx context.Context) (isChanged bool, err error) {
	if b.req.Claim == nil || b.alias.Overwrite {
		return false, nil
	}
	named := map[string]bool{}
	for _, up := range b.uploads {
		name := b.alias.LockName(up.filename)
		if named[name] && !up.stored {
			if err := b.anotherName(ctx, up, nil); err != nil {
				return false, err
			}
			isChanged = true
		}
		named[name] = true
	}
	return isChanged, nil
}

// putOptions returns the options of an item.
func (b *batch) putOptions(up *upload) storagedrivers.PutOptions {
	opts := b.alias.PutOptions(up.filename)
	if b.req.Claim != nil {
		opts.ID = cmp.Or(up.claim.ID, b.req.ID)
	}
	return opts
}

// sameBytes reports whether a stored object has the bytes of an upload.
func (b *batch) sameBytes(ctx context.Context, up *upload, info storagedrivers.Info) (same bool, err error) {
	if info.Size != up.size {
		return false, nil
	}
	if _, err := up.staged.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	object, err := b.alias.Storage.OpenSeeker(ctx, info.Key)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	return equalReaders(up.staged, object)
}

// equalReaders reports whether two readers yield the same bytes.
func equalReaders(a, b io.Reader) (bool, error) {
	var pieces [2][64 << 10]byte
	for {
		n, errA := io.ReadFull(a, pieces[0][:])
		m, errB := io.ReadFull(b, pieces[1][:])
		if !bytes.Equal(pieces[0][:n], pieces[1][:m]) {
			return false, nil
		}
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, fmt.Errorf("comparing an item: %w", err)
			}
		}
		if errA != nil || errB != nil {
			return errA != nil && errB != nil, nil
		}
	}
}

// resume returns the item that an earlier attempt has stored, and stores its variant. An item with other
// bytes is one that others have stored before that attempt or since.
func (b *batch) resume(ctx context.Context, up *upload) (*object, error) {
	info, err := b.alias.Storage.Stat(ctx, b.alias.Key(up.filename))
	if err != nil {
		return nil, err
	}
	o := &object{upload: up, info: info}
	same, err := b.sameBytes(ctx, up, info)
	switch t := b.req.Transfer; {
	case err != nil:
		return nil, err
	case !same && b.req.Filename != "":
		return nil, &aliases.Failure{Reason: aliases.Changed, Message: ErrOtherItem.Error(), Err: ErrOtherItem}
	case !same && t != nil && !t.Copy: // the bytes may be those of the source alone
		return nil, aliases.Failf(aliases.Conflict, "another request has stored another item under the new name; the old one stays")
	case !same || up.variant == nil:
		return o, nil
	}
	infos, err := b.alias.Storage.Commit(ctx, b.variantChange(o))
	if err == nil {
		o.committedVariant, o.hasVariant = &infos[0], true
	}
	return o, err
}
