package storagedrivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"go.opentelemetry.io/otel/attribute"

	"github.com/caddymedia/media/storagedrivers/internal/source"
)

// StageCopy is Stage for a copy of source, the Info of an object of this storage or of another one
// with the same [Location]. The caller may read the staged object, but not write to it. Its bytes
// are transferred only as far as they are read, and [Storage.Commit] copies them within the
// backend. ctx governs the staged object until it is closed.
//
// If source is missing or is another generation, the error of StageCopy, Read or Commit is
// [ErrChanged]. If the driver cannot copy, StageCopy returns [errors.ErrUnsupported]. If the
// backend turns out not to, Commit does, unless all bytes were read: then it stores them.
func (s *Storage) StageCopy(ctx context.Context, source Info) (Staged, error) {
	const op = "copy"
	if err := ValidKey(source.Key); err != nil {
		return nil, s.wrap(op, source.Key, err)
	}
	if !s.references.Acquire() {
		return nil, s.wrap(op, source.Key, ErrClosed)
	}
	st, err := &staged{storage: s, size: source.Size}, error(nil)
	stager, stages := s.driver.(Stager)
	switch {
	case !s.Features().Copies:
		err = s.wrap(op, source.Key, errors.ErrUnsupported)
	case stages:
		st.inner, err = s.stageSource(ctx, source, stager.StageCopy)
	default:
		st.inner = s.newOriginal(ctx, source)
	}
	if err != nil {
		_ = s.references.Release() // the first error counts
		return nil, err
	}
	return st, nil
}

// stageSource stages what stage makes of an object.
func (s *Storage) stageSource(
	ctx context.Context, source Info, stage func(context.Context, Info) (Staged, error),
) (made Staged, err error) {
	const op = "copy"
	ctx, o := s.begin(ctx, op, source.Key)
	note(ctx, attribute.Int64("media.size", source.Size))
	err = o.end(s.admitted(ctx, op, func(ctx context.Context) (err error) {
		made, err = stage(ctx, source)
		return blamed(ctx, err)
	}))
	return made, err
}

func (s *Storage) newOriginal(ctx context.Context, source Info) *original {
	return &original{ctx: WithoutCache(ctx), storage: s, info: source, spool: spool{dir: s.opts.SpoolDir}}
}

// maxKept is the size in bytes of the largest object that is kept by reading and sending it.
const maxKept = 1 << 30

// CanKeep reports whether StageKept can keep an object of a size that is replaced, or with goes one
// that is removed, as far as is known.
func (s *Storage) CanKeep(size int64, goes bool) bool {
	_, links := s.driver.(Linker)
	_, renames := s.driver.(Renamer)
	return links || goes && renames || s.Features().Copies || size <= maxKept
}

// StageKept stages an object that is about to be replaced or removed, the Info of one of this
// storage, so that [Change.Keeps] can store it under another key. It costs as little as the backend
// allows: a second name ([Linker]), another key if the object is removed ([Renamer]), a copy within
// the backend, or a copy through this process. Its ModTime may be that of source.
//
// If source is missing or is another generation, the error of StageKept or Commit is [ErrChanged].
// An object of more than 1 GiB that has to be copied through this process is [ErrUnkept].
func (s *Storage) StageKept(ctx context.Context, source Info) (Staged, error) {
	if linker, ok := s.driver.(Linker); ok {
		if !s.references.Acquire() {
			return nil, s.wrap("copy", source.Key, ErrClosed)
		}
		inner, err := s.stageSource(ctx, source, linker.StageLink)
		if err == nil {
			return &staged{storage: s, size: source.Size, inner: inner}, nil
		}
		_ = s.references.Release() // the first error counts
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
	}
	if _, stages := s.driver.(Stager); stages {
		return s.StageCopy(ctx, source)
	}
	if !s.references.Acquire() {
		return nil, s.wrap("copy", source.Key, ErrClosed)
	}
	kept := s.newOriginal(ctx, source)
	kept.keeps = true
	return &staged{storage: s, size: source.Size, inner: kept}, nil
}

// original is the Staged of an object that a driver copies by [PutOptions.Source]. Its bytes are
// read from the backend once, when they are needed.
type original struct {
	ctx     context.Context //nolint:containedctx // it governs the staged object
	storage *Storage
	info    Info
	spool   spool
	spooled int64 // its size
	offset  int64 // of the next Read
	keeps   bool  // it is read if the backend cannot copy it
}

// originalHead is how many bytes of an original are read at first. Many checks need no more.
const originalHead = 64 << 10

// send stores the object under the key of a change by the driver's put. It is copied within the
// backend if that can, and otherwise sent, if its bytes were read or may be.
func (o *original) send(ctx context.Context, c Change) (Info, error) {
	err := errors.ErrUnsupported
	if o.storage.Features().Copies {
		var info Info
		c.Options.Source = &o.info
		if info, err = o.storage.send(ctx, c.Key, o, c.Options); !errors.Is(err, errors.ErrUnsupported) {
			return info, err
		}
	}
	switch {
	case o.spooled == o.info.Size:
	case !o.keeps:
		return Info{}, err
	case o.info.Size > maxKept:
		return Info{}, ErrUnkept
	default:
		if err := o.fetch(o.info.Size); err != nil {
			return Info{}, err
		}
	}
	c.Options.Source = nil
	info, err := o.storage.send(ctx, c.Key, o.spool.reader(), c.Options)
	if o.keeps && err == nil { // its bytes are not needed until the end of the request
		_ = o.spool.Close() // the object is stored
		o.spool, o.spooled = spool{dir: o.spool.dir}, 0
	}
	return info, err
}

// Write fails.
func (o *original) Write([]byte) (int, error) {
	return 0, fmt.Errorf("writing to a copy: %w", errors.ErrUnsupported)
}

func (o *original) Read(p []byte) (int, error) {
	if o.offset >= o.info.Size {
		return 0, io.EOF
	}
	if o.offset >= o.spooled {
		end := o.info.Size
		if o.offset < originalHead {
			end = min(end, originalHead)
		}
		if err := o.fetch(end); err != nil {
			return 0, err
		}
	}
	if _, err := o.spool.Seek(o.offset, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := o.spool.Read(p[:min(int64(len(p)), o.spooled-o.offset)])
	o.offset += int64(n)
	return n, err
}

// fetch spools the bytes up to an offset.
func (o *original) fetch(end int64) error {
	if o.spooled >= end {
		return nil
	}
	if _, err := o.spool.Seek(o.spooled, io.SeekStart); err != nil {
		return err
	}
	o.spool.reading = nil // it does not see what is written now
	object := &Object{storage: o.storage, Info: o.info, offset: o.spooled}
	object.open = func(offset int64) (*openBody, Info, error) {
		return o.storage.open(o.ctx, o.info.Key, Range{Offset: offset, Length: end - offset})
	}
	n, err := io.CopyN(&o.spool, object, end-o.spooled)
	o.spooled += n
	return errors.Join(missingSource(err), object.closeBody())
}

// Seek moves the next Read.
func (o *original) Seek(offset int64, whence int) (int64, error) {
	at, err := source.Seek(offset, whence, o.offset, o.info.Size)
	o.offset = at
	return at, err
}

func (o *original) Close() error { return o.spool.Close() }

// missingSource returns err, as ErrChanged if the object is missing.
func missingSource(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}
