package storagecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// rounds is the number of attempts for an item that changes meanwhile, or whose storage is
// unavailable for a moment.
const rounds = 3

// Failures of single items.
var (
	errDiffers  = errors.New("the destination has a different object under this key")
	errChanging = errors.New("it was replaced repeatedly while it was copied")
	errCorrupt  = errors.New("the destination returned other bytes than were sent; the copy was removed")
	errReplaced = errors.New("it was replaced in the destination while it was verified")
	errImage    = errors.New("its image could not be copied")
	errStale    = errors.New("the variant is older than its image: `caddy media variants` makes it again")
)

// errGone means that the item was deleted before it was read.
var errGone = errors.New("the item is gone")

// job is an item to copy.
type job struct {
	item    storagedrivers.Info // in the source's list
	there   storagedrivers.Info // in the destination's list, if present
	present bool                // in the destination
	image   *job                // whose variant the item is, or nil
	done    bool                // according to the lists

	ended  chan struct{} // closed at the end; then failed is valid
	failed bool
}

const (
	// margin is the precision of times: many backends count whole seconds.
	margin = time.Second
	// listMargin is the precision of times in lists. FTP servers without MLSD list minutes, or even
	// days, in a time zone that they do not name.
	listMargin = 48 * time.Hour
)

// isDone reports whether an object in the destination counts as the copy of a source: it has the
// same size, and was stored later than the source, in the given precision. A backend without times
// has zero times, which prove nothing.
func isDone(source, there storagedrivers.Info, precision time.Duration) bool {
	return source.Size == there.Size && !source.ModTime.IsZero() && !there.ModTime.Before(source.ModTime.Add(precision))
}

// isListedAsDone reports whether the item is done according to the lists alone. If its times are
// too close for that, a worker asks for the exact ones.
func (j *job) isListedAsDone() bool {
	if !j.present || !isDone(j.item, j.there, listMargin) {
		return false
	}
	return j.image == nil || j.image.done && !j.there.ModTime.Before(j.image.there.ModTime)
}

// awaitImage waits until the job of a variant's image has ended. It returns false if the run ends
// first. A worker already has the image, because its job was sent earlier.
func (j *job) awaitImage(ctx context.Context) bool {
	if j.image == nil {
		return true
	}
	select {
	case <-j.image.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// transfer copies one item.
type transfer struct {
	*copier
	*job

	own     storagedrivers.Info // the object that this transfer has stored, if any
	counted int64               // bytes reported to Progress
}

func (t *transfer) hasStored() bool { return t.own.Key != "" }

// run copies the item until the source has not changed during the copy. It returns the copied
// source.
func (t *transfer) run(ctx context.Context) (storagedrivers.Info, error) {
	var err error
	for range rounds {
		t.restart()
		var source storagedrivers.Info
		if err = t.checkImage(ctx); err == nil {
			source, err = t.once(ctx)
		}
		if err == nil {
			err = t.unchanged(ctx, source)
		}
		switch {
		case err == nil:
			return source, nil
		case errors.Is(err, errChanging), errors.Is(err, storagedrivers.ErrChanged):
		case errors.Is(err, fs.ErrNotExist):
			if t.missing(ctx) {
				return source, errGone
			}
			t.present = false // in the destination any more
		case ctx.Err() != nil || !t.retryable(ctx, err):
			return source, err
		}
	}
	return storagedrivers.Info{}, err
}

// checkImage returns an error if a variant does not belong to the present image, or if the image
// could not be copied.
func (t *transfer) checkImage(ctx context.Context) error {
	if t.image == nil {
		return nil
	}
	if t.image.failed {
		return errImage
	}
	stale, err := isOlderThanImage(ctx, t.From, t.job)
	if err == nil && stale {
		err = errStale
	}
	return err
}

// isOlderThanImage reports whether the variant in a storage is older than its image there. A
// variant without an image is not.
func isOlderThanImage(ctx context.Context, s *storagedrivers.Storage, j *job) (bool, error) {
	if j.image == nil {
		return false, nil
	}
	image, err := s.Stat(ctx, j.image.item.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	variant, err := s.Stat(ctx, j.item.Key)
	return err == nil && variant.ModTime.Before(image.ModTime), err
}

// once compares the item with the destination, or stores it there. It returns the source that was
// compared or copied.
func (t *transfer) once(ctx context.Context) (storagedrivers.Info, error) {
	if !t.present {
		source, err := t.put(ctx, storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly})
		if !errors.Is(err, fs.ErrExist) {
			return source, err
		}
		t.present = true
		t.restart()
	}
	there, err := t.To.Stat(ctx, t.item.Key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	source, err := t.compare(ctx, there)
	replace := errors.Is(err, errDiffers) && (t.Overwrite || t.hasStored() && there.Same(t.own))
	if err == nil {
		// An equal variant that is older than its image would not be served.
		replace, err = isOlderThanImage(ctx, t.To, t.job)
	}
	if !replace {
		return source, err
	}
	t.restart()
	opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	if t.Keep != nil && !there.Same(t.own) {
		if err := t.Keep(ctx, there); err != nil {
			return source, fmt.Errorf("keeping the item in the trash: %w", err)
		}
		opts.IfMatch = there.ETag
	}
	return t.put(ctx, opts)
}

// compare compares the item with the one in the destination: by size and time, and by their bytes
// if the times do not prove that it is the copy. It returns errDiffers if they differ.
func (t *transfer) compare(ctx context.Context, there storagedrivers.Info) (storagedrivers.Info, error) {
	source, err := t.From.Stat(ctx, t.item.Key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	if there.Size != source.Size {
		return storagedrivers.Info{}, errDiffers
	}
	if !t.Checksum && !t.hasStored() && isDone(source, there, margin) {
		return source, nil
	}
	source, sum, err := sumOf(ctx, t.From, t.item.Key, t.count)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	_, other, err := sumOf(ctx, t.To, t.item.Key, func(int64) {})
	if err == nil && sum != other {
		err = errDiffers
	}
	return source, err
}

// put copies the item and verifies the copy.
func (t *transfer) put(ctx context.Context, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	key := t.item.Key
	opts.CacheControl = t.CacheControl(key)
	object, err := t.From.OpenSeeker(ctx, key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	source := newHashing(object, t.count)
	var sum string
	stored, err := t.To.Put(ctx, key, source, opts)
	if err == nil {
		t.present, t.own = true, stored
		sum, err = source.sum()
	}
	if err = errors.Join(err, object.Close()); err != nil {
		return storagedrivers.Info{}, err
	}
	return object.Info, t.verify(ctx, sum)
}

// verify verifies the copy. It deletes a copy that differs from the sent data.
func (t *transfer) verify(ctx context.Context, sum string) error {
	var there storagedrivers.Info
	var err error
	key, got := t.own.Key, sum
	if t.ReadBack {
		there, got, err = sumOf(ctx, t.To, key, func(int64) {})
	} else {
		there, err = t.To.Stat(ctx, key)
	}
	switch {
	case err != nil:
		return fmt.Errorf("verifying the copy: %w", err)
	case got == sum && there.Size == t.own.Size:
		return nil
	case !there.Same(t.own):
		return errReplaced
	}
	t.present, t.own = false, storagedrivers.Info{}
	return errors.Join(errCorrupt, t.To.Delete(ctx, key))
}

// unchanged returns errChanging if the item in the source has been replaced since it was copied. A
// deleted item is no error.
func (t *transfer) unchanged(ctx context.Context, copied storagedrivers.Info) error {
	now, err := t.From.Stat(ctx, copied.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !now.Same(copied) {
		return errChanging
	}
	return err
}

// missing reports whether the source no longer has the item.
func (t *transfer) missing(ctx context.Context) bool {
	_, err := t.From.Stat(ctx, t.item.Key)
	return errors.Is(err, fs.ErrNotExist)
}

// retryable reports whether to try an item again, because its storage was unavailable and is back.
// A storage that is still unavailable or is full ends the run.
func (t *transfer) retryable(ctx context.Context, err error) bool {
	if errors.Is(err, storagedrivers.ErrNoSpace) {
		t.stop(fmt.Errorf("storage %q is full: %w", t.To.Name(), err))
		return false
	}
	if !errors.Is(err, storagedrivers.ErrUnavailable) {
		return false
	}
	for _, s := range []*storagedrivers.Storage{t.From, t.To} {
		if err := s.Check(ctx); err != nil {
			t.stop(fmt.Errorf("storage %q is unreachable: %w", s.Name(), err))
			return false
		}
	}
	return true
}

// count reports read bytes as progress.
func (t *transfer) count(n int64) {
	t.counted += n
	t.Progress(0, n)
}

// restart takes back the progress of the item.
func (t *transfer) restart() {
	t.Progress(0, -t.counted)
	t.counted = 0
}
