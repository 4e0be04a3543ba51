package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// Claim is a filename under which the item of a repeatable request may be stored.
type Claim struct {
	Filename string `json:"filename"`
	// Before is the object that had the filename before it was claimed; zero for none.
	Before storagedrivers.Info `json:"before"`
	// Earlier reports that an earlier or concurrent attempt has claimed it, and may have stored the
	// item.
	Earlier bool `json:"-"`
}

// claiming are locks of the filenames that are being claimed in this process. Two items of the same
// bytes and name must not take each other for an earlier attempt.
var claiming locks.Names

// claim sets the filename of an upload to its claim. Without [Request.Claim] it does nothing.
func (b *batch) claim(ctx context.Context, up *upload) error {
	if b.req.Claim == nil || up.unclaim != nil && up.claimedTry == up.tries {
		return nil
	}
	if err := b.lockClaim(ctx, up); err != nil {
		return err
	}
	up.claimedTry = up.tries
	before, err := aliases.Stat(ctx, b.alias.Storage, b.alias.Key(up.filename))
	if err != nil {
		return err
	}
	up.claim, err = b.req.Claim(ctx, up.tries, Claim{Filename: up.filename, Before: before})
	if err != nil {
		return err
	}
	b.recoverDead(ctx, up)
	if up.claim.Filename == up.filename {
		return nil
	}
	up.filename = up.claim.Filename
	return b.lockClaim(ctx, up)
}

// lockClaim locks the filename of an upload, and no other one.
func (b *batch) lockClaim(ctx context.Context, up *upload) (err error) {
	up.releaseClaim()
	up.unclaim, err = claiming.Lock(ctx, b.alias.LockName(up.filename))
	return err
}

// recoverDead undoes or completes the commit of a dead process, if it may have been an earlier
// attempt. Otherwise that would be undone after this attempt has taken it for complete.
func (b *batch) recoverDead(ctx context.Context, up *upload) {
	if !up.claim.Earlier || b.alias.Storage.Features().Together != storagedrivers.Atomic {
		return
	}
	if _, err := b.alias.Storage.Sweep(ctx, storagedrivers.SweepOptions{OlderThan: time.Nanosecond}); err != nil {
		b.uploader.Log.Warn("recovering aborted uploads", "storage", b.alias.Storage.Name(), "error", err)
	}
}

func (up *upload) releaseClaim() {
	if up.unclaim != nil {
		up.unclaim()
		up.unclaim = nil
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
	if b.alias.Overwrite && !up.claim.Earlier {
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
	if err == nil && same {
		err = errStored
	}
	return err
}

// putOptions returns the options of an item.
func (b *batch) putOptions() storagedrivers.PutOptions {
	opts := b.alias.PutOptions()
	if b.req.Claim != nil {
		opts.ID = b.req.ID
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

// resume takes the item that an earlier attempt has stored, and stores its variant.
func (b *batch) resume(ctx context.Context) error {
	up := b.uploads[0]
	info, err := b.alias.Storage.Stat(ctx, b.alias.Key(up.filename))
	if err != nil {
		return up.storageFailure(err)
	}
	o := &object{upload: up, info: info}
	b.objects = append(b.objects, o)
	if same, err := b.sameBytes(ctx, up, info); err != nil || !same || up.variant == nil {
		return err // replaced since
	}
	infos, err := b.alias.Storage.Commit(ctx, b.variantChange(o))
	if err == nil {
		o.committedVariant, o.hasVariant = &infos[0], true
	}
	return err
}
