package ingest

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// check verifies every upload and collects all failures. Decoding pictures is slow, so it comes
// last.
func (b *batch) check(ctx context.Context) (err error) {
	if b.alias, err = b.findAlias(b.aliasName()); err != nil {
		return err
	}
	return traced(ctx, "media.check", b.attributes, func(ctx context.Context) error {
		b.each(func(up *upload) error { return b.checkUpload(ctx, up) })
		if b.alias.Overwrite {
			b.checkDuplicates()
		}
		b.each(func(up *upload) error { return b.checkPixels(ctx, up) })
		return b.failed()
	})
}

// each calls f for every upload that has not failed, several at a time.
func (b *batch) each(f func(*upload) error) {
	var group errgroup.Group // each upload keeps its own failure
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, up := range b.uploads {
		if up.failure != nil {
			b.doomed.Store(true)
			continue
		}
		group.Go(func() error {
			defer func() {
				if value := recover(); value != nil { // outside of the request's goroutine it ends the process
					b.fail(up, fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
				}
			}()
			if err := f(up); err != nil {
				b.fail(up, err)
			}
			return nil
		})
	}
	_ = group.Wait() // nothing above fails
}

func (b *batch) fail(up *upload, err error) {
	up.failure = asFailure(err)
	b.doomed.Store(true)
}

// checkUpload verifies name, size and content.
func (b *batch) checkUpload(ctx context.Context, up *upload) (err error) {
	up.filename, err = b.alias.filename(up.submitted, b.subFolder(), b.now)
	if err != nil {
		return err
	}
	if up.size > b.alias.MaxSize {
		return tooLarge(b.alias.MaxSize)
	}
	if err := b.move(ctx, up); err != nil {
		return err
	}
	ext := naming.Extension(up.filename)
	if b.alias.Kind == Image {
		up.picture, err = imaging.CheckImage(up.staged, up.size, ext, b.alias.Imaging)
	} else {
		err = imaging.CheckFile(up.staged, ext, storagedrivers.ContentType(up.filename))
	}
	if err != nil {
		return contentFailure(err)
	}
	return nil
}

// move restages an upload if the form names an alias of another storage after the file.
func (b *batch) move(ctx context.Context, up *upload) error {
	if up.storage == b.alias.Storage {
		return nil
	}
	if _, err := up.staged.Seek(0, io.SeekStart); err != nil {
		return storageFailure(err)
	}
	return b.restage(ctx, up, b.alias.Storage, up.staged)
}

// checkDuplicates fails the uploads that would replace another upload of their request.
func (b *batch) checkDuplicates() {
	names := map[string]*upload{}
	for _, up := range b.uploads {
		if up.filename == "" {
			continue
		}
		other := names[up.filename]
		if other == nil {
			names[up.filename] = up
			continue
		}
		for _, both := range []*upload{other, up} {
			if both.failure == nil {
				both.failure = failf(Conflict, "another file of this request would have the same name")
			}
		}
	}
}

// checkPixels decodes a picture, makes its variant and, with StripMetadata, removes its metadata.
func (b *batch) checkPixels(ctx context.Context, up *upload) error {
	if !up.isRaster() {
		return nil
	}
	var err error
	if b.alias.WebP == nil || b.doomed.Load() { // then nothing will be committed
		err = b.pictures().Check(ctx, up.staged, up.picture)
	} else {
		err = b.makeVariant(ctx, up)
	}
	if err != nil {
		return contentFailure(err)
	}
	if b.alias.StripMetadata && up.picture.HasMetadata() {
		return b.restage(ctx, up, up.storage, up.picture.Stripped(up.staged))
	}
	return nil
}
