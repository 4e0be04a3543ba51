package ingest

import (
	"context"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// check looks at every item, as name and as content, and collects all failures.
func (b *batch) check(ctx context.Context, alias *Alias) error {
	var failures Failures
	for _, it := range b.items {
		if it.failure == nil {
			it.check(ctx, b, alias)
		}
	}
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
	var err error
	it.filename, err = alias.filename(it.submitted, b.subFolder(), b.now)
	switch {
	case err != nil:
	case it.size > alias.MaxSize:
		err = tooLarge(alias.MaxSize)
	default:
		if err = it.move(ctx, alias.Storage); err == nil {
			err = it.checkContent(alias)
		}
	}
	if err != nil {
		it.failure = asFailure(err)
	}
}

func (it *item) checkContent(alias *Alias) error {
	ext := naming.Extension(it.filename)
	if alias.Kind == Image {
		if _, err := imaging.CheckImage(it.staged, it.size, ext, alias.Imaging); err != nil {
			return contentFailure(err)
		}
		return nil
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
