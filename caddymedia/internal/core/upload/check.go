package upload

import (
	"cmp"
	"context"
	"io"
	"path"
	"runtime"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// check verifies every upload and collects all failures. Decoding images is slow, so it comes
// last. Then small files are staged too.
func (b *batch) check(ctx context.Context) (err error) {
	if b.alias, err = b.target(); err != nil {
		return err
	}
	return item.Traced(ctx, "media.check", b.attributes, func(ctx context.Context) error {
		b.each(func(up *received) error { return b.checkUpload(ctx, up) })
		if b.alias.Overwrite {
			b.checkDuplicates()
		}
		b.each(func(up *received) error { return b.checkPixels(ctx, up) })
		if b.failed() == nil && b.asksOthers() {
			b.each(func(up *received) error { return b.askOthers(ctx, up) })
		}
		if err := b.failed(); err != nil {
			return err
		}
		return b.stageBuffered(ctx)
	})
}

// each calls f for every upload that has not failed, several at a time.
func (b *batch) each(f func(*received) error) {
	errs := guard.Each(len(b.uploads), runtime.GOMAXPROCS(0), func(i int) error {
		up := b.uploads[i]
		if up.failure != nil {
			b.doomed.Store(true)
			return nil //nolint:nilerr // the upload has its failure already
		}
		err := f(up)
		if err != nil {
			b.doomed.Store(true)
		}
		return err
	})
	for i, err := range errs {
		if err != nil {
			b.uploads[i].failure = asFailure(err)
		}
	}
}

// checkUpload verifies name, size and content.
func (b *batch) checkUpload(ctx context.Context, up *received) (err error) {
	up.filename, err = b.storedName(b.alias, up, b.folderOf(up))
	if err != nil {
		return err
	}
	if limit := b.req.Forced.Limit(b.alias.MaxSize); up.size > limit {
		return tooLarge(limit)
	}
	if err := b.move(ctx, up); err != nil {
		return err
	}
	if err := b.renameMismatched(up); err != nil {
		return err
	}
	if err := cmp.Or(b.req.Forced.checkPath(up.filename), b.checkExact(b.alias, up.filename)); err != nil { // however the names were made
		return err
	}
	up.plain = up.filename
	ext := naming.Extension(up.filename)
	switch {
	case b.alias.Kind == item.Image:
		up.image, err = imaging.CheckImage(up.content(), up.size, ext, b.alias.Imaging)
	case !b.alias.TakesAnything():
		err = imaging.CheckFile(up.content(), ext, b.alias.ContentType(ext))
	}
	return b.refused(err)
}

// refused returns the failure for an error of checking or decoding content; nil if there is none,
// or if the content is refused, and the item is stored as it was.
func (b *batch) refused(err error) error {
	if err == nil {
		return nil
	}
	failure := item.ContentFailure(err)
	if b.asItWas && (failure.Reason == item.BadContent || failure.Reason == item.TooLarge) {
		return nil
	}
	return failure
}

// renameMismatched replaces the extension of an image, or a missing one, with that of its content,
// if the alias renames and accepts that. All rules for names apply to the new one. The content is
// checked later.
func (b *batch) renameMismatched(up *received) error {
	if !b.alias.RenameMismatched || b.filename != "" {
		return nil
	}
	content := up.content()
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return item.ContentFailure(err)
	}
	found, _, err := imaging.Guess(content)
	if err != nil {
		return item.ContentFailure(err)
	}
	if !b.alias.Extensions[found] {
		return b.alias.CheckFilename(up.filename, b.req.Actor.Origin)
	}
	if imaging.FormatOf(found) == imaging.FormatOf(naming.Extension(up.filename)) {
		return nil
	}
	name := naming.WithExtension(path.Base(up.filename), found)
	up.filename, err = b.alias.StoredName(name, b.folderOf(up), b.now, b.req.Actor.Origin)
	return err
}

// move restages an upload if the form names an alias of another storage after the file.
func (b *batch) move(ctx context.Context, up *received) error {
	if up.storage == b.alias.Storage || up.staged == nil {
		up.storage = b.alias.Storage
		return nil
	}
	if _, err := up.staged.Seek(0, io.SeekStart); err != nil {
		return item.StorageFailure(err)
	}
	return b.restage(ctx, up, b.alias.Storage, up.staged)
}

// checkDuplicates fails the uploads that would replace another upload of their request.
func (b *batch) checkDuplicates() {
	uses := map[string]int{}
	for _, up := range b.uploads {
		uses[up.filename]++
	}
	for _, up := range b.uploads {
		if up.failure == nil && uses[up.filename] > 1 {
			up.failure = item.Failf(item.Conflict, "another file of this request would have the same name")
		}
	}
}

// checkPixels decodes an image, makes its variant and its eager renditions, and removes metadata
// that the alias does not store.
func (b *batch) checkPixels(ctx context.Context, up *received) error {
	if up.image.Format.Decodable() {
		if err := b.refused(b.renderImage(ctx, up)); err != nil {
			return err
		}
	}
	if up.image.HasMetadata() {
		return b.restage(ctx, up, up.storage, up.image.Stripped(up.content()))
	}
	return nil
}

// Precheck returns the failures with which an item of a name and size, in bytes, is sure to be
// refused, also for the condition of the request; nil if it may be accepted. It reports them to the
// observer like those of an upload. A size of 0 is not checked.
func (u *Uploader) Precheck(ctx context.Context, req Upload, name string, size int64) item.Failures {
	return u.newUpload(req).precheck(ctx, name, size)
}

// PrecheckReplacement is [Uploader.Precheck] for a replacement, according to req.Stored.
func (u *Uploader) PrecheckReplacement(ctx context.Context, req Replacement, size int64) item.Failures {
	return u.newBatch(req.Request, req.kind()).precheck(ctx, req.Filename, size)
}

func (b *batch) precheck(ctx context.Context, name string, size int64) item.Failures {
	up := &received{submitted: name}
	b.uploads = append(b.uploads, up)
	alias, err := b.target()
	if err != nil {
		return b.reportRefused(ctx, err)
	}
	b.alias = alias
	if up.filename, err = b.storedName(alias, up, b.subFolder()); err == nil {
		if limit := b.req.Forced.Limit(alias.MaxSize); size > limit {
			err = tooLarge(limit)
		}
	}
	switch {
	case err != nil, b.isRepeated(): // then the item may be one of its own
	case b.filename != "":
		if failure := b.condition(b.assumed); failure != nil {
			err = failure
		}
	default:
		err = b.meets(ctx, up)
	}
	if err == nil {
		return nil
	}
	return b.reportRefused(ctx, up.storageFailure(err))
}
