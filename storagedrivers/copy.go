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
		ctx, o := s.begin(ctx, op, source.Key)
		note(ctx, attribute.Int64("media.size", source.Size))
		err = o.end(s.admitted(ctx, op, func(ctx context.Context) (err error) {
			st.inner, err = stager.StageCopy(ctx, source)
			return blamed(ctx, err)
		}))
	default:
		st.inner = &original{ctx: WithoutCache(ctx), storage: s, info: source, spool: spool{dir: s.opts.SpoolDir}}
	}
	if err != nil {
		_ = s.references.Release() // the first error counts
		return nil, err
	}
	return st, nil
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
}

// originalHead is how many bytes of an original are read at first. Many checks need no more.
const originalHead = 64 << 10

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
