package storagedrivers

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

const (
	// headStartAfter is how many bytes of an object are written before its head start.
	headStartAfter = 8 << 20
	// maxUnknown is the most bytes of a source of unknown size, see [Features.Streams].
	maxUnknown = 32 << 30
	// headStarts is the most head starts of a storage at the same time.
	headStarts = 4
	// stall is how long an object with a head start may receive no bytes. A driver holds buffers for
	// it.
	stall = 5 * time.Second
)

var (
	errStalled  = errors.New("the object has received no bytes for some seconds")
	errTooLong  = errors.New("the object is too long to be sent before its size is known")
	errNoCommit = errors.New("the object is not committed as expected")
)

// StageFor is Stage for an object that the caller will probably commit under key with opts. If the
// driver has [Features.Streams], a large object is sent while it is written. Its end is withheld
// until the commit, so that it is not visible before. With another key or other options, or if
// sending it has failed, the commit sends the object again.
func (s *Storage) StageFor(ctx context.Context, key string, opts PutOptions) (Staged, error) {
	object, err := s.Stage(ctx)
	if err != nil {
		return nil, err
	}
	st := object.(*staged) //nolint:forcetypeassert // of Stage
	if _, ok := st.inner.(*spool); ok && s.Features().Streams && ValidKey(key) == nil {
		opts.fill(key)
		// The caller of Write, not ctx, ends the head start.
		ctx = trace.ContextWithSpan(context.WithoutCancel(ctx), noSpan)
		st.early = &headStart{storage: s, key: key, opts: opts, parent: ctx}
		st.early.more.L = &st.early.mu
	}
	return st, nil
}

// headStart is a Put that begins while its object is written. Its source waits for more bytes, and
// withholds the end until the commit.
type headStart struct {
	storage *Storage
	key     string
	opts    PutOptions
	parent  context.Context //nolint:containedctx // for ctx

	// Set by begin.
	ctx    context.Context //nolint:containedctx // of Put, which is not called by its caller
	cancel context.CancelCauseFunc
	file   io.ReaderAt
	timer  *time.Timer
	done   chan struct{} // closed after Put; nil before begin

	// Set before done is closed.
	info Info
	err  error

	mu    sync.Mutex
	more  sync.Cond
	size  int64 // written so far
	whole bool  // the end may be read
	over  bool  // ctx has ended, or Put has returned
}

// wrote is called after each Write to the object.
func (h *headStart) wrote(file io.ReaderAt, size int64) {
	if h.done == nil {
		if s := h.storage; size > headStartAfter && !s.circuit.resting(s.now()) && s.headStarts.TryAcquire(1) {
			h.begin(file, size)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
	case size > maxUnknown:
		h.cancel(errTooLong)
	default:
		h.size = size
		h.timer.Reset(stall)
		h.more.Broadcast()
	}
}

// begin starts the Put of the object, whose first bytes are in file.
func (h *headStart) begin(file io.ReaderAt, size int64) {
	h.file, h.size, h.done = file, size, make(chan struct{})
	h.ctx, h.cancel = context.WithCancelCause(h.storage.withProgress(h.parent))
	h.timer = time.AfterFunc(stall, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.whole {
			h.cancel(errStalled)
		}
	})
	stop := context.AfterFunc(h.ctx, h.end)
	go func() {
		defer close(h.done)
		defer h.storage.headStarts.Release(1)
		defer h.end()
		defer stop()
		h.err = guard.Call(func() (err error) {
			h.info, err = h.storage.driver.Put(h.ctx, h.key, watched(h.ctx, &earlySource{h: h}), h.opts)
			return err
		})
	}()
}

// end stops the timer and the source.
func (h *headStart) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	h.timer.Stop()
	h.more.Broadcast()
}

// id returns the ID of the Put; empty if it has not begun.
func (h *headStart) id() string {
	if h == nil || h.done == nil {
		return ""
	}
	return h.opts.ID
}

// serves reports whether the Put is that of a change.
func (h *headStart) serves(c Change) bool {
	return h != nil && h.done != nil && c.Key == h.key && c.Options == h.opts
}

// finish lets the Put read the end of the object, and returns its result as that of the first
// attempt of a commit. ok is false if the commit must send the object itself.
func (h *headStart) finish(ctx context.Context) (info Info, ok bool, err error) {
	if h == nil {
		return Info{}, false, nil
	}
	h.mu.Lock()
	ok = !h.over && h.ctx.Err() == nil
	if ok {
		h.whole = true
		h.timer.Stop()
		h.more.Broadcast()
	}
	h.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { h.cancel(context.Cause(ctx)) })
	defer stop()
	<-h.done // also if it has failed: an attempt with the same ID follows
	h.cancel(nil)
	now := ctx.Value(progressKey{}).(*progress)                        //nolint:forcetypeassert // of Commit
	now.read.Store(h.ctx.Value(progressKey{}).(*progress).read.Load()) //nolint:forcetypeassert // of begin
	// Any other error may be one of sending an object of unknown size.
	ok = ok && (h.err == nil || ctx.Err() != nil || errors.Is(h.err, fs.ErrExist) || errors.Is(h.err, ErrChanged) ||
		errors.Is(h.err, ErrUnavailable))
	return h.info, ok, h.err
}

// abandon ends the Put unless it has ended.
func (h *headStart) abandon() {
	if h != nil && h.done != nil {
		h.cancel(errNoCommit)
	}
}

// close ends the Put and waits for it.
func (h *headStart) close() {
	if h != nil && h.done != nil {
		h.abandon()
		<-h.done
	}
}

// earlySource is the source of the Put of a head start.
type earlySource struct {
	h      *headStart
	offset int64
}

// Read waits until there are bytes after the offset, or the object is committed.
func (e *earlySource) Read(p []byte) (int, error) {
	h := e.h
	h.mu.Lock()
	for e.offset >= h.size && !h.whole && !h.over {
		h.more.Wait()
	}
	size, over := h.size, h.over
	h.mu.Unlock()
	switch {
	case over:
		return 0, context.Cause(h.ctx)
	case e.offset >= size:
		return 0, io.EOF
	}
	n, err := h.file.ReadAt(p[:min(int64(len(p)), size-e.offset)], e.offset)
	e.offset += int64(n)
	return n, err
}

// Seek fails with ErrSizeUnknown if whence is io.SeekEnd and the object is not committed.
func (e *earlySource) Seek(offset int64, whence int) (int64, error) {
	e.h.mu.Lock()
	size, whole := e.h.size, e.h.whole
	e.h.mu.Unlock()
	if whence == io.SeekEnd && !whole {
		return 0, ErrSizeUnknown
	}
	at, err := source.Seek(offset, whence, e.offset, size)
	e.offset = at
	return at, err
}
