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

// check looks at every item, as name and as content, and collects all failures.
func (b *batch) check(ctx context.Context, alias *Alias) error {
	var failures Failures
	var group errgroup.Group // each item keeps its own failure
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, it := range b.items {
		if it.failure == nil {
			group.Go(func() error {
				it.check(ctx, b, alias)
				return nil
			})
		}
	}
	_ = group.Wait() // nothing above fails
	if alias.Overwrite {
		b.findConflicts()
	}
	for _, it := range b.items {
		if it.failure != nil {
			it.failure.Filename = it.submitted
			failures = append(failures, it.failure)
		}
	}
	if failures != nil {
		return failures
	}
	return nil
}

func (it *item) check(ctx context.Context, b *batch, alias *Alias) {
	defer func() {
		if value := recover(); value != nil { // in no request's goroutine it would end the process
			it.failure = asFailure(fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
		}
	}()
	var err error
	it.filename, err = alias.filename(it.submitted, b.subFolder(), b.now)
	switch {
	case err != nil:
	case it.size > alias.MaxSize:
		err = tooLarge(alias.MaxSize)
	default:
		if err = it.move(ctx, alias.Storage); err == nil {
			err = it.checkContent(ctx, b.gate, alias)
		}
	}
	if err != nil {
		it.failure = asFailure(err)
	}
}

func (it *item) checkContent(ctx context.Context, g *Gate, alias *Alias) error {
	ext := naming.Extension(it.filename)
	if alias.Kind == Image {
		return it.checkPicture(ctx, g, alias, ext)
	}
	if err := imaging.CheckFile(it.staged, ext, storagedrivers.ContentType(it.filename)); err != nil {
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
