package ingest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/storagedrivers"
)

// item is one file on its way.
type item struct {
	submitted string // its name
	storage   *storagedrivers.Storage
	held      []byte                // all of a small one, until its request has arrived
	staged    storagedrivers.Staged // nil before, and when nothing is kept of it
	size      int64
	failure   *Failure // why it will not be stored

	filename string              // relative to the alias, once it is known
	plain    string              // filename before it got the time
	tries    int                 // of other names
	placed   storagedrivers.Info // zero until then
	replaces bool                // another item of its name

	picture       imaging.Info          // zero for what is none
	variant       storagedrivers.Staged // nil for none
	variantPlaced storagedrivers.Info   // zero until then
	variantTook   time.Duration         // to make, or to find that it cannot be made

	withoutVariant bool // it was taken away again
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}

// stage writes the item to the storage of the alias as far as that is known yet: the
// form may name another one after the file. An error is the whole request's; readFailure
// gives it for one of body.
func (it *item) stage(ctx context.Context, b *batch, body io.Reader, readFailure func(error) *Failure) error {
	guess := b.guess()
	if guess == nil {
		_, err := b.uploader.alias(b.req, b.aliasName())
		return cmp.Or(err, error(failf(Forbidden, "the account may use no alias")))
	}
	limit := b.uploader.largest(b.req)
	if b.fields["alias"] != "" {
		folder := "/" // what the form may still say of it wins over the address
		if _, known := b.fields["sub_folder"]; known {
			folder = b.subFolder()
		}
		if _, err := guess.filename(it.submitted, folder, b.now); err != nil {
			it.failure = asFailure(err) // sure to be refused: nothing is kept of it
			return nil
		}
		limit = guess.MaxSize
	}
	it.storage = guess.Storage
	if err := it.receive(ctx, b, body, limit, readFailure); err != nil {
		return err
	}
	if it.size > limit {
		it.failure = tooLarge(limit)
		return it.drop()
	}
	return nil
}

func tooLarge(limit int64) *Failure { return failf(TooLarge, "larger than %d bytes", limit) }

func asFailure(err error) *Failure { return asFailures(err)[0] }

// guess returns the alias of the request as far as it is known, else the default alias or the first
// one by name. It is one that the account may use, or nil.
func (b *batch) guess() *Alias {
	aliases := b.uploader.Aliases[b.req.Kind]
	names := append([]string{b.aliasName(), DefaultAlias}, slices.Sorted(maps.Keys(aliases))...)
	for _, name := range names {
		if a := aliases[name]; a != nil && b.req.allows(name) {
			return a
		}
	}
	return nil
}

// largest returns the most bytes that any alias takes which the request may use.
func (u *Uploader) largest(req Request) int64 {
	var size int64
	for name, a := range u.Aliases[req.Kind] {
		if req.allows(name) {
			size = max(size, a.MaxSize)
		}
	}
	return size
}

// copyBuffered copies in large pieces to a storage. The error is a *Failure: readFailure
// gives it for an error of src.
func copyBuffered(dst io.Writer, src io.Reader, readFailure func(error) *Failure) (int64, error) {
	w := writers.Get().(*bufio.Writer) // the pool holds nothing else
	w.Reset(struct{ io.Writer }{dst})
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	from := &source{r: src}
	n, err := w.ReadFrom(from)
	if err == nil {
		err = w.Flush()
	}
	switch {
	case from.err != nil:
		return n, readFailure(from.err)
	case err != nil:
		return n, storageFailure(err)
	}
	return n, nil
}

// source remembers the error of a reader.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF { // the end is io.EOF itself
		s.err = err
	}
	return n, err
}

// move takes the item to the storage of the alias that the form named after it.
func (it *item) move(ctx context.Context, b *batch, to *storagedrivers.Storage) error {
	if it.storage == to || it.staged == nil {
		return nil
	}
	staged, err := b.begin(ctx, to)
	if err != nil {
		return err
	}
	if _, err = it.staged.Seek(0, io.SeekStart); err == nil {
		_, err = copyBuffered(staged, it.staged, storageFailure)
	}
	if err != nil {
		return errors.Join(err, staged.Close())
	}
	err = it.drop()
	b.end()
	it.storage, it.staged = to, staged
	if err != nil {
		return storageFailure(err)
	}
	return nil
}

// drop forgets what was staged.
func (it *item) drop() error {
	it.held = nil
	var err error
	for _, staged := range []*storagedrivers.Staged{&it.staged, &it.variant} {
		if *staged != nil {
			err = errors.Join(err, (*staged).Close())
			*staged = nil
		}
	}
	return err
}
