package ingest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// RenewRenditions makes the missing renditions of a stored picture: the eager ones, or all of them.
// It returns the number of files made, and also those made before an error. It waits for deletions
// and replacements of the name in this process.
//
// The error wraps [render.ErrNone] if a rendition cannot be made. It is fs.ErrNotExist if the picture
// does not exist any more, and wraps [render.ErrBusy] if the encoding queue is full or slow.
// Otherwise it is that of a picture that fails the checks, of the storage, or of ctx.
func (u *Uploader) RenewRenditions(ctx context.Context, alias *Alias, filename string, all bool) (made int, err error) {
	files := alias.renditionFiles(filename, !all)
	if len(files) == 0 {
		return 0, nil
	}
	unlock, err := names.Share(ctx, alias.lockName(filename))
	if err != nil {
		return 0, err
	}
	defer unlock()
	if files, err = alias.missingRenditions(ctx, filename, files); err != nil || len(files) == 0 {
		return 0, err
	}
	outputs := make([]render.Output, len(files))
	for i, f := range files {
		outputs[i] = f.output()
	}
	start := u.Now()
	picture, results, err := u.makeOf(ctx, alias, filename, u.Pictures, outputs...)
	if err != nil {
		return 0, err
	}
	present, err := alias.isPresent(ctx, picture)
	if err != nil {
		return 0, err
	}
	for i, result := range results {
		failed := result.Err
		if failed == nil && present {
			failed = alias.storeRendition(ctx, filename, files[i], picture, result.File)
		}
		if failed == nil {
			made++
		}
		err = errors.Join(err, failed)
		u.Observer.Rendered(alias, files[i].rendition, renditionResult(failed), u.Now().Sub(start))
	}
	return made, err
}

// MissingRenditions returns how many files [Uploader.RenewRenditions] would make.
func (a *Alias) MissingRenditions(ctx context.Context, filename string, all bool) (int, error) {
	files := a.renditionFiles(filename, !all)
	if len(files) == 0 {
		return 0, nil
	}
	missing, err := a.missingRenditions(ctx, filename, files)
	return len(missing), err
}

// missingRenditions returns the files that are not stored for the present generation of the picture.
func (a *Alias) missingRenditions(ctx context.Context, filename string, files []renditionFile) ([]renditionFile, error) {
	picture, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return nil, err
	}
	stored, err := a.storedRenditions(ctx, filename)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(f renditionFile) bool {
		return slices.Contains(stored, a.renditionKey(filename, f, picture))
	}), nil
}

// OutdatedRenditions yields the renditions of an alias that are older than before and that no address
// leads to any more, up to the first error of the storage: those of earlier settings, of replaced
// pictures and of pictures that do not exist.
func (a *Alias) OutdatedRenditions(ctx context.Context, before time.Time) iter.Seq2[storagedrivers.Info, error] {
	return func(yield func(storagedrivers.Info, error) bool) {
		if !a.HasRenditionFolder() {
			return
		}
		var current currentRenditions
		for info, err := range a.Storage.All(ctx, a.RenditionRoot()+"/") {
			if err != nil {
				yield(info, err)
				return
			}
			filename, _, ok := a.pictureOfRendition(info.Key)
			if !ok || !info.ModTime.Before(before) {
				continue
			}
			if err := current.find(ctx, a, filename); err != nil {
				yield(info, err)
				return
			}
			if !slices.Contains(current.keys, info.Key) && !yield(info, nil) {
				return
			}
		}
	}
}

// currentRenditions are the keys of the renditions that a picture may have now.
type currentRenditions struct {
	filename string
	keys     []string
}

// find finds those of a picture. A listing names the renditions of a picture one after the other, so
// only the last picture is remembered.
func (c *currentRenditions) find(ctx context.Context, a *Alias, filename string) error {
	if c.filename == filename {
		return nil
	}
	picture, err := stat(ctx, a.Storage, a.Key(filename))
	if err != nil {
		return err
	}
	c.filename, c.keys = filename, nil
	if picture.Key == "" {
		return nil
	}
	for _, f := range a.renditionFiles(filename, false) {
		c.keys = append(c.keys, a.renditionKey(filename, f, picture))
	}
	return nil
}

// RemoveRendition removes a rendition of [Alias.OutdatedRenditions].
func (a *Alias) RemoveRendition(ctx context.Context, rendition storagedrivers.Info) error {
	return remove(ctx, a.Storage, rendition.Key)
}
