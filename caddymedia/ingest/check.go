package ingest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// check looks at every item, as name and as content, and collects all failures. What
// takes long comes last: the pixels of pictures.
func (b *batch) check(ctx context.Context, alias *Alias) error {
	b.each(func(it *item) error { return it.check(ctx, b, alias) })
	if alias.Overwrite {
		b.findConflicts()
	}
	b.each(func(it *item) error { return it.checkPixels(ctx, b, alias) })
	if failures := b.failures(); failures != nil {
		return failures
	}
	return nil
}

// failures returns those of the items, nil if none has failed.
func (b *batch) failures() Failures {
	var failures Failures
	for _, it := range b.items {
		if it.failure != nil {
			it.failure.Filename = it.submitted
			failures = append(failures, it.failure)
		}
	}
	return failures
}

// each calls f for every item that has not failed, several at a time.
func (b *batch) each(f func(*item) error) {
	var group errgroup.Group // each item keeps its own failure
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, it := range b.items {
		if it.failure != nil {
			b.doomed.Store(true)
			continue
		}
		group.Go(func() error {
			defer func() {
				if value := recover(); value != nil { // in no request's goroutine it would end the process
					it.fail(b, fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
				}
			}()
			if err := f(it); err != nil {
				it.fail(b, err)
			}
			return nil
		})
	}
	_ = group.Wait() // nothing above fails
}

func (it *item) fail(b *batch, err error) {
	it.failure = asFailure(err)
	b.doomed.Store(true)
}

func (it *item) check(ctx context.Context, b *batch, alias *Alias) (err error) {
	it.filename, err = alias.filename(it.submitted, b.subFolder(), b.now)
	if err != nil {
		return err
	}
	if it.size > alias.MaxSize {
		return tooLarge(alias.MaxSize)
	}
	if err := it.move(ctx, b, alias.Storage); err != nil {
		return err
	}
	ext := naming.Extension(it.filename)
	if alias.Kind == Image {
		it.picture, err = imaging.CheckImage(it.staged, it.size, ext, alias.Imaging)
	} else {
		err = imaging.CheckFile(it.staged, ext, storagedrivers.ContentType(it.filename))
	}
	if err != nil {
		return contentFailure(err)
	}
	return nil
}

// findConflicts marks the items that would replace another of the same request.
func (b *batch) findConflicts() {
	names := map[string]*item{}
	for _, it := range b.items {
		if it.filename == "" {
			continue
		}
		other := names[it.filename]
		if other == nil {
			names[it.filename] = it
			continue
		}
		for _, both := range []*item{other, it} {
			if both.failure == nil {
				both.failure = failf(Conflict, "another file of this request would have the same name")
			}
		}
	}
}
