package upload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Staging bounds the memory and the files of requests until they are committed, shared fairly
// between accounts and their clients. The first bytes of an upload stay in memory, so that many
// small uploads of slow clients need no file descriptors.
type Staging struct {
	memory *queue.Pool // bytes
	files  *queue.Pool
}

// NewStaging returns a Staging of the given bytes of memory and number of files.
func NewStaging(memory, files int64) *Staging {
	return &Staging{memory: queue.NewPool(memory), files: queue.NewPool(files)}
}

// Reserve reserves one file for a party. It returns false if the party has too many.
func (s *Staging) Reserve(party queue.Party) (release func(), ok bool) {
	return lend(s.files, party, 1)
}

// ReserveMemory reserves n bytes for a party. It returns false if the party has too many.
func (s *Staging) ReserveMemory(party queue.Party, n int64) (release func(), ok bool) {
	return lend(s.memory, party, n)
}

func lend(pool *queue.Pool, party queue.Party, n int64) (release func(), ok bool) {
	if !pool.Acquire(party, n) {
		return nil, false
	}
	return func() { pool.Release(party, n) }, true
}

// headSize is the largest upload that is buffered in memory. A larger one is staged while it is
// received.
const headSize = 64 << 10

// largeSize is the size of a large file, which takes a while to receive.
const largeSize = 8 << 20

var heads = sync.Pool{New: func() any { return new([headSize]byte) }}

// reservation is the part of the [Staging] that a request holds.
type reservation struct {
	memory, files atomic.Int64 // uploads are checked concurrently
}

// reserveMemory reports whether the request may hold n more bytes.
func (b *batch) reserveMemory(n int64) bool {
	if !b.uploader.Staging.memory.Acquire(b.party, n) {
		return false
	}
	b.reserved.memory.Add(n)
	return true
}

func (b *batch) releaseMemory(n int64) {
	b.uploader.Staging.memory.Release(b.party, n)
	b.reserved.memory.Add(-n)
}

// reserveFile reserves one file until the end of the request.
func (b *batch) reserveFile() error {
	if !b.uploader.Staging.files.Acquire(b.party, 1) {
		return item.Failf(item.Busy, "too many uploads are under way, try again later")
	}
	b.reserved.files.Add(1)
	return nil
}

func (b *batch) releaseFile() {
	b.uploader.Staging.files.Release(b.party, 1)
	b.reserved.files.Add(-1)
}

// newStaged returns a new staged object, and reserves its file.
func (b *batch) newStaged(ctx context.Context, storage *storagedrivers.Storage) (storagedrivers.Staged, error) {
	return b.reserveStaged(func() (storagedrivers.Staged, error) { return storage.Stage(ctx) })
}

// reserveStaged reserves the file of the staged object that stage returns.
func (b *batch) reserveStaged(stage func() (storagedrivers.Staged, error)) (storagedrivers.Staged, error) {
	if err := b.reserveFile(); err != nil {
		return nil, err
	}
	staged, err := stage()
	if err != nil {
		return nil, item.StorageFailure(err)
	}
	return staged, nil
}

// stageLarge returns a new staged object of up for an object of unknown size. If its key is likely,
// the storage may begin to send it.
func (b *batch) stageLarge(ctx context.Context, up *received, alias *item.Alias) (storagedrivers.Staged, error) {
	filename, err := b.storedName(alias, up, b.folderOf(up))
	if err != nil || !b.sendsEarly(alias, up) {
		return b.newStaged(ctx, up.storage)
	}
	return b.reserveStaged(func() (storagedrivers.Staged, error) {
		opts := b.putOptions(alias, up, filename)
		opts.IfMatch = b.assumed.ETag
		return up.storage.StageFor(ctx, alias.Key(filename), opts)
	})
}

// sendsEarly reports whether up may be sent to its storage before the request is complete. An image
// may be stored without its metadata, an earlier attempt may have stored up already, and a
// condition, or the trash, may have other options. Imports run side by side. After the first large
// file of a request, others may follow for so long that the storage ends its head start.
func (b *batch) sendsEarly(alias *item.Alias, up *received) bool {
	return b.req.Kind == item.File && !b.isRepeated() && b.hold == nil && !up.imported && (b.condition == nil && !b.keeps(alias) || b.assumed.Key != "") &&
		!slices.ContainsFunc(b.uploads, func(other *received) bool { return other != up && other.size > largeSize })
}

// spool stores body in the buffer of up if it is small, otherwise on the storage of alias, which is
// the likely one.
func (b *batch) spool(
	ctx context.Context, up *received, alias *item.Alias, body io.Reader, readFailure func(error) *item.Failure,
) error {
	if b.reserveMemory(headSize) {
		up.head = heads.Get().(*[headSize]byte) // the pool holds nothing else
		from := &errorReader{r: body}
		n, err := io.ReadFull(from, up.head[:])
		up.buffer, up.size = up.head[:n], int64(n)
		switch {
		case from.err != nil:
			return readFailure(from.err)
		case err != nil: // the end
			if n <= headSize/2 { // copying it costs less than the memory of a head
				up.buffer = bytes.Clone(up.buffer)
				up.returnHead()
				b.releaseMemory(headSize - int64(n))
			}
			return nil
		}
		defer b.unbuffer(up)
		body = io.MultiReader(bytes.NewReader(up.buffer), body)
	}
	var err error
	if up.staged, err = b.stageLarge(ctx, up, alias); err != nil {
		return err
	}
	up.size, err = copyBuffered(up.staged, body, readFailure)
	return err
}

// content returns the bytes of up.
func (up *received) content() io.ReadSeeker {
	if up.staged == nil {
		return bytes.NewReader(up.buffer)
	}
	return up.staged
}

// stageBuffered stages the buffered uploads after the request is checked.
func (b *batch) stageBuffered(ctx context.Context) error {
	for _, up := range b.uploads {
		if up.buffer == nil {
			continue
		}
		var err error
		if up.staged, err = b.newStaged(ctx, up.storage); err != nil {
			return err
		}
		if _, err := up.staged.Write(up.buffer); err != nil {
			return item.StorageFailure(err)
		}
		b.unbuffer(up)
	}
	return nil
}

// unbuffer releases the buffer of up.
func (b *batch) unbuffer(up *received) {
	size := int64(len(up.buffer))
	if up.head != nil {
		size = headSize
	}
	up.returnHead()
	up.buffer = nil
	b.releaseMemory(size)
}

// returnHead ends the use of the head of up.
func (up *received) returnHead() {
	if up.head != nil {
		heads.Put(up.head)
		up.head = nil
	}
}

// restage replaces the staged data of up by a copy on storage.
func (b *batch) restage(ctx context.Context, up *received, storage *storagedrivers.Storage, content io.Reader) error {
	staged, err := b.newStaged(ctx, storage)
	if err != nil {
		return err
	}
	size, err := copyBuffered(staged, content, item.StorageFailure)
	if err != nil {
		return errors.Join(err, staged.Close())
	}
	if up.staged == nil {
		b.unbuffer(up)
	} else {
		err = up.staged.Close()
		b.releaseFile()
	}
	up.storage, up.staged, up.size = storage, staged, size
	if err != nil {
		return item.StorageFailure(err)
	}
	return nil
}

// discard closes the uncommitted data of up.
func (up *received) discard() error {
	up.returnHead()
	up.buffer = nil
	var err error
	for _, staged := range []*storagedrivers.Staged{&up.staged, &up.variant} {
		if *staged != nil {
			err = errors.Join(err, (*staged).Close())
			*staged = nil
		}
	}
	return err
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writerSize) }}

// copyBuffered copies to a storage in large pieces. The error is a *Failure; readFailure maps
// errors of src.
func copyBuffered(dst io.Writer, src io.Reader, readFailure func(error) *item.Failure) (int64, error) {
	w := writers.Get().(*bufio.Writer) // the pool holds nothing else
	w.Reset(struct{ io.Writer }{dst})
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	from := &errorReader{r: src}
	n, err := w.ReadFrom(from)
	if err == nil {
		err = w.Flush()
	}
	switch {
	case from.err != nil:
		return n, readFailure(from.err)
	case err != nil:
		return n, item.StorageFailure(err)
	}
	return n, nil
}

// errorReader keeps the error of a reader.
type errorReader struct {
	r   io.Reader
	err error
}

func (e *errorReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && err != io.EOF { // the end is io.EOF itself
		e.err = err
	}
	return n, err
}
