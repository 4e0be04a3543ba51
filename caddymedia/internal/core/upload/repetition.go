package upload

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// clockError is how far the clocks of nodes and of backends may differ: they are set by NTP, and
// some backends store times in whole seconds.
const clockError = 2 * time.Second

// findOwn finds the items that earlier attempts have stored, and sets their names. Each is that of
// one file: files with the same name have them in the order of their names.
func (b *batch) findOwn(ctx context.Context) error {
	b.recoverDead(ctx)
	byName := map[string][]*received{}
	for _, up := range b.uploads {
		byName[up.plain] = append(byName[up.plain], up)
	}
	names := slices.Collect(maps.Keys(byName))
	var taken sync.Map // names of locks
	return cmp.Or(guard.Each(len(names), requests, func(i int) error {
		for _, up := range byName[names[i]] {
			if err := b.findOwnOf(ctx, up, &taken); err != nil {
				return up.storageFailure(err)
			}
		}
		return nil
	})...)
}

// findOwnOf finds the item of an upload. It looks at all names: those that are free now may have
// been taken during the earlier attempt.
func (b *batch) findOwnOf(ctx context.Context, up *received, taken *sync.Map) error {
	for n := 0; n == 0 || n <= b.secondTries(up)+suffixTries && !b.alias.Overwrite && b.exact == ""; n++ {
		filename := b.nameOf(up, n)
		name := b.alias.LockName(filename)
		if _, isTaken := taken.Load(name); isTaken {
			continue
		}
		info, err := item.Stat(ctx, b.alias.Storage, b.alias.Key(filename))
		if err != nil {
			return err
		}
		if info.Key == "" {
			continue
		}
		isOwn, err := b.isOwn(ctx, up, filename, info)
		if err != nil {
			return err
		}
		if isOwn {
			if _, isTaken := taken.LoadOrStore(name, true); !isTaken {
				up.filename, up.tries, up.own = filename, n, info
				return nil
			}
		}
	}
	return nil
}

// isOwn reports whether an object is the item of an upload. Under Overwrite it may also be one that
// has replaced the item since.
func (b *batch) isOwn(ctx context.Context, up *received, filename string, info storagedrivers.Info) (bool, error) {
	if !b.alias.Overwrite && b.alias.Storage.Features().Repeat { // it knows the object by its ID
		if info.Size != up.size {
			return false, nil
		}
		_, err := b.alias.Storage.Commit(ctx, storagedrivers.Change{
			Staged: up.staged, Key: info.Key, Options: b.putOptions(b.alias, up, filename),
		})
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		return err == nil, err
	}
	// The backend may store whole seconds only, by another clock.
	since := cmp.Or(b.req.Repetition.Since, b.now.Truncate(time.Second).Add(-clockError))
	if !info.ModTime.Before(since) {
		if same, err := b.sameBytes(ctx, up, info); same || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return same, err
		}
	}
	// Others have stored another item since. It may be newer than the item of an earlier attempt, and
	// acknowledged, so it is not replaced. If no attempt has stored its item, then both requests were
	// under way together, and this order is as right. An object that may be older than the first
	// attempt, by the clock of another machine, is replaced: otherwise the item would be lost.
	up.overtaken = b.alias.Overwrite && b.alias.Storage.Features().Local && info.ModTime.After(b.now.Add(clockError)) &&
		(b.condition == nil || b.condition(info) == nil)
	return up.overtaken, nil
}

// recoverDead undoes or completes the commit of a dead process, which may have been an earlier
// attempt. Otherwise that would be undone after this attempt has taken it for complete.
func (b *batch) recoverDead(ctx context.Context) {
	if b.alias.Storage.Features().Together != storagedrivers.Atomic {
		return
	}
	if _, err := b.alias.Storage.Sweep(ctx, storagedrivers.SweepOptions{OlderThan: time.Nanosecond}); err != nil {
		b.uploader.Log.Warn("recovering aborted uploads", "storage", b.alias.Storage.Name(), "error", err)
	}
}

// storeVariant stores the missing variant of an image that an earlier attempt has stored. The
// caller holds the lock of the image.
func (b *batch) storeVariant(ctx context.Context, o *object) error {
	if o.variant == nil {
		return nil
	}
	now, err := item.Stat(ctx, b.alias.Storage, o.own.Key)
	if err != nil || !now.Same(o.own) {
		return err // others have removed or replaced the image meanwhile
	}
	infos, err := b.alias.Storage.Commit(ctx, b.variantChange(o))
	if err == nil {
		o.committedVariant, o.hasVariant = &infos[0], true
	}
	return err
}

// digest is [Commitment.Digest].
func (b *batch) digest() (string, error) {
	hash := sha256.New()
	for _, up := range b.uploads {
		sum, err := sumOf(up.staged)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%q %x ", up.plain, sum)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// sameBytes reports whether a stored object has the bytes of an upload.
func (b *batch) sameBytes(ctx context.Context, up *received, info storagedrivers.Info) (same bool, err error) {
	if info.Size != up.size {
		return false, nil
	}
	there, err := StoredSum(ctx, b.alias.Storage, info.Key)
	if err != nil {
		return false, err
	}
	sum, err := sumOf(up.staged)
	return sum == there, err
}

// StoredSum returns the SHA-256 of the bytes of a stored object.
func StoredSum(ctx context.Context, storage *storagedrivers.Storage, key string) (sum [sha256.Size]byte, err error) {
	object, err := storage.OpenSeeker(storagedrivers.WithoutCache(ctx), key)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	return sumOf(object)
}

// sumOf returns the SHA-256 of all bytes.
func sumOf(content io.ReadSeeker) (sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	if _, err = content.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(hash, content)
	}
	if err != nil {
		return sum, fmt.Errorf("reading an item: %w", err)
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}
