package storagecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers"
)

// rounds is the number of attempts for an item that changes meanwhile, or whose storage is
// unavailable for a moment.
const rounds = 3

// Failures of single items.
var (
	errDiffers  = errors.New("the destination has another one under this key")
	errChanging = errors.New("it was replaced again and again while it was copied")
	errCorrupt  = errors.New("the destination returned other bytes than were sent; the copy was removed")
	errReplaced = errors.New("it was replaced by others in the destination")
	errPicture  = errors.New("its picture could not be copied")
	errStale    = errors.New("it is older than its picture, so of an earlier one; `caddy media variants` makes it anew")
)

// transfer copies one item.
type transfer struct {
	*copier
	*job

	own     storagedrivers.Info // what this transfer has put there, if anything
	counted int64               // bytes that Progress knows of
}

func (t *transfer) stored() bool { return t.own.Key != "" }

// ofPicture returns an error if a variant does not belong to the present picture, or if the picture
// could not be copied.
func (t *transfer) ofPicture(ctx context.Context) error {
	if t.picture == nil {
		return nil
	}
	if t.picture.failed {
		return errPicture
	}
	picture, err := t.From.Stat(ctx, t.picture.item.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	variant, err := t.From.Stat(ctx, t.item.Key)
	if err == nil && variant.ModTime.Before(picture.ModTime) {
		return errStale
	}
	return err
}

// run copies the item until the source has not changed during the copy.
func (t *transfer) run(ctx context.Context) (record, error) {
	var err error
	for range rounds {
		t.restart()
		var source storagedrivers.Info
		var sum string
		if err = t.ofPicture(ctx); err == nil {
			source, sum, err = t.once(ctx)
		}
		if err == nil {
			err = t.unchanged(ctx, source)
		}
		switch {
		case err == nil:
			return recordOf(t.item, source, sum), nil
		case errors.Is(err, errChanging), errors.Is(err, storagedrivers.ErrChanged):
		case errors.Is(err, fs.ErrNotExist):
			if t.gone(ctx) {
				return record{}, errGone
			}
			t.present = false // any more
		case ctx.Err() != nil || !t.glitch(ctx, err):
			return record{}, err
		}
	}
	return record{}, err
}

// once compares the item with the destination, or stores it there. It returns the info and the
// checksum of the data read from the source.
func (t *transfer) once(ctx context.Context) (storagedrivers.Info, string, error) {
	if !t.present {
		source, sum, err := t.put(ctx, storagedrivers.CreateOnly)
		if !errors.Is(err, fs.ErrExist) {
			return source, sum, err
		}
		t.present = true
		t.restart()
	}
	there, err := t.To.Stat(ctx, t.item.Key)
	if err != nil {
		return storagedrivers.Info{}, "", err
	}
	source, sum, err := t.compare(ctx, there)
	mayReplace := t.Overwrite || t.stored() && there.Same(t.own)
	tooOld := err == nil && t.behind() && !t.stored()
	if !tooOld && (!errors.Is(err, errDiffers) || !mayReplace) {
		return source, sum, err
	}
	t.restart()
	return t.put(ctx, storagedrivers.Overwrite)
}

// compare compares the item with the one in the destination. It returns errDiffers if they differ.
func (t *transfer) compare(ctx context.Context, there storagedrivers.Info) (storagedrivers.Info, string, error) {
	source, err := t.From.Stat(ctx, t.item.Key)
	if err != nil {
		return storagedrivers.Info{}, "", err
	}
	if there.Size != source.Size {
		return storagedrivers.Info{}, "", errDiffers
	}
	source, sum, err := sumOf(ctx, t.From, t.item.Key, t.count)
	if err != nil {
		return storagedrivers.Info{}, "", err
	}
	_, other, err := sumOf(ctx, t.To, t.item.Key, func(int64) {})
	if err == nil && sum != other {
		err = errDiffers
	}
	return source, sum, err
}

// put copies the item and verifies the copy.
func (t *transfer) put(ctx context.Context, mode storagedrivers.Mode) (storagedrivers.Info, string, error) {
	key := t.item.Key
	object, err := t.From.OpenSeeker(ctx, key)
	if err != nil {
		return storagedrivers.Info{}, "", err
	}
	source := newHashing(object, t.count)
	var sum string
	stored, err := t.To.Put(ctx, key, source, storagedrivers.PutOptions{Mode: mode, CacheControl: t.CacheControl(key)})
	if err == nil {
		t.present, t.own = true, stored
		sum, err = source.sum()
	}
	if err = errors.Join(err, object.Close()); err != nil {
		return storagedrivers.Info{}, "", err
	}
	return object.Info, sum, t.verify(ctx, sum)
}

// verify verifies the copy. It deletes a copy that differs from the sent data.
func (t *transfer) verify(ctx context.Context, sum string) error {
	var there storagedrivers.Info
	var err error
	key, got := t.own.Key, sum
	if t.Verify == Checksum {
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

// gone reports whether the source no longer has the item.
func (t *transfer) gone(ctx context.Context) bool {
	_, err := t.From.Stat(ctx, t.item.Key)
	return errors.Is(err, fs.ErrNotExist)
}

// glitch reports whether to try an item again, because its storage was unavailable and is back. A
// storage that is still unavailable or is full ends the run.
func (t *transfer) glitch(ctx context.Context, err error) bool {
	if errors.Is(err, storagedrivers.ErrNoSpace) {
		t.stop(fmt.Errorf("storage %q is full: %w", t.To.Name(), err))
		return false
	}
	if !errors.Is(err, storagedrivers.ErrUnavailable) {
		return false
	}
	for _, s := range []*storagedrivers.Storage{t.From, t.To} {
		if err := s.Check(ctx); err != nil {
			t.stop(fmt.Errorf("storage %q cannot be reached any more: %w", s.Name(), err))
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
