// Package lostreply determines whether an object was stored when the reply to its request is lost.
// It is not for backends that keep no metadata of an object: each upload marks its object with an
// ID, and after a doubtful error checks whether the object under its key has that ID. Begin with
// [New].
package lostreply

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Key is the name of the metadata with the ID of the upload. All services accept such a name.
const Key = "mediaupload"

// Grace is how long a request that makes an object appear may continue after the end of its
// caller's context. Without its reply the driver does not know the outcome.
const Grace = 5 * time.Second

// Upload is an upload to a service.
type Upload struct {
	storagedrivers.PutOptions
	// Timeout is how long the service may stay silent.
	Timeout time.Duration
	// Look returns the object under the key and the ID in its metadata. Its errors are those of the
	// contract.
	Look func(ctx context.Context) (info storagedrivers.Info, id string, err error)
	// Doubtful reports whether the service may have carried out a request that failed with err.
	Doubtful func(err error) bool
}

// New returns an upload with an ID.
func New(
	opts storagedrivers.PutOptions, timeout time.Duration,
	look func(context.Context) (storagedrivers.Info, string, error), doubtful func(error) bool,
) *Upload {
	opts.ID = cmp.Or(opts.ID, rand.Text())
	return &Upload{opts, timeout, look, doubtful}
}

// Find returns the object of the upload if an earlier attempt has stored it. Otherwise the error is
// fs.ErrNotExist for a free key, and fs.ErrExist for an existing one.
func (u *Upload) Find(ctx context.Context) (storagedrivers.Info, error) {
	info, id, err := u.Look(ctx)
	if err == nil && id != u.ID {
		err = fs.ErrExist
	}
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return info, nil
}

// Commit calls send, which makes the object appear under the key. The context of send lasts a
// little longer than ctx. An Info without ModTime is completed if the object still exists.
//
// After a doubtful error of send, Commit succeeds if the key has the object of the upload. With
// CreateOnly any other object is fs.ErrExist. Other errors are those of send.
func (u *Upload) Commit(
	ctx context.Context, send func(ctx context.Context) (storagedrivers.Info, error),
) (storagedrivers.Info, error) {
	if err := ctx.Err(); err != nil {
		return storagedrivers.Info{}, err
	}
	longer, cancel := Outlive(ctx, min(u.Timeout, Grace))
	defer cancel()
	info, err := send(longer)
	if err == nil && !info.ModTime.IsZero() {
		return info, nil
	}
	if err != nil && !u.Doubtful(err) {
		return storagedrivers.Info{}, err
	}
	found, id, missed := u.lookAgain(ctx, err)
	switch {
	case missed == nil && (id == u.ID || err == nil && found.ETag == info.ETag):
		return found, nil
	case err == nil: // replaced or deleted since
		return info, nil
	case missed == nil && u.Mode == storagedrivers.CreateOnly && ctx.Err() == nil:
		return storagedrivers.Info{}, fmt.Errorf("%w: %s", fs.ErrExist, err.Error())
	}
	return storagedrivers.Info{}, err
}

const (
	lookAttempts = 3
	firstPause   = 100 * time.Millisecond
)

// lookAgain looks for the object after a failed request. It retries while the service is
// unavailable.
func (u *Upload) lookAgain(ctx context.Context, failed error) (info storagedrivers.Info, id string, err error) {
	ctx, cancel := Afterwards(ctx, u.Timeout, failed)
	defer cancel()
	for i := 1; ; i++ {
		info, id, err = u.Look(ctx)
		if i == lookAttempts || !errors.Is(err, storagedrivers.ErrUnavailable) || network.Silent(err) {
			return info, id, err
		}
		select {
		case <-time.After(firstPause * time.Duration(i)):
		case <-ctx.Done():
			return info, id, err
		}
	}
}

// Outlive returns a context that ends a given time after ctx. cancel must be called.
func Outlive(ctx context.Context, by time.Duration) (longer context.Context, cancel context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, end) })
	return longer, func() {
		stop()
		end()
	}
}

// maxAfterwards bounds the context of [Afterwards].
const maxAfterwards = 10 * time.Second

// Afterwards returns a context for looking or cleaning up after a request that ended with failed,
// even if ctx has ended. If the service was silent for the whole time-out, the context is short.
func Afterwards(ctx context.Context, timeout time.Duration, failed error) (context.Context, context.CancelFunc) {
	patience := min(timeout, maxAfterwards)
	if network.Silent(failed) {
		patience = timeout / 8
	}
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}
