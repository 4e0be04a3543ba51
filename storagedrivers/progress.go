package storagedrivers

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// progressKey is the context key of an upload's *progress.
type progressKey struct{}

// progress is the time of an upload's last read of its source. A library may read in another
// goroutine.
type progress struct {
	now  func() time.Time
	read atomic.Pointer[time.Time] // nil before the first Read
}

// withProgress returns a context for an operation that may last as long as its source is read.
func (s *Storage) withProgress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, &progress{now: s.now})
}

// since returns the later of start and the last Read in the context.
func since(ctx context.Context, start time.Time) time.Time {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return start
	}
	if read := p.read.Load(); read != nil && read.After(start) {
		return *read
	}
	return start
}

// watchedSource records its reads as progress.
type watchedSource struct {
	io.ReadSeeker
	progress *progress
}

// watched returns r as a source whose reads are progress of the operation in ctx.
func watched(ctx context.Context, r io.ReadSeeker) io.ReadSeeker {
	if p, ok := ctx.Value(progressKey{}).(*progress); ok {
		return watchedSource{r, p}
	}
	return r
}

func (w watchedSource) Read(p []byte) (int, error) {
	n, err := w.ReadSeeker.Read(p)
	now := w.progress.now()
	w.progress.read.Store(&now)
	return n, err
}
