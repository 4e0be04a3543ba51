package resumable

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/storagedrivers/locks"
)

const (
	// silentTime is how long a request that adds bytes has received none if its connection is
	// taken for dead.
	silentTime = 500 * time.Millisecond
	// silentSteps is how often that is looked at.
	silentSteps = 50
	// takeOverTime is how long a request waits for the end of an earlier one that it interrupts.
	takeOverTime = 400 * time.Millisecond
)

// Active are the requests at work on uploads, by the locations of these. All stores of a process
// share one, for uploads outlast a reload. The zero value is usable.
type Active struct {
	writing   writers     // requests that add bytes
	finishing locks.Names // locks of the uploads that are being finished
}

type writers struct {
	mu sync.Mutex
	by map[string]*writer
}

// writer is a request that adds bytes to an upload.
type writer struct {
	interrupt func()
	received  atomic.Int64 // bytes
	handling  atomic.Bool  // bytes that were received; they may wait for the storage
	lost      bool         // another request has taken over
	ended     chan struct{}
}

// begin registers w as the writer of an upload. It interrupts an earlier one that receives nothing,
// and reports whether there was one. The error is ErrOffset if that one is alive.
func (ws *writers) begin(ctx context.Context, upload string, w *writer) (earlier bool, err error) {
	ws.mu.Lock()
	first := ws.by[upload]
	ws.mu.Unlock()
	if first != nil {
		if err := first.silent(ctx); err != nil {
			return true, err
		}
	}
	ws.mu.Lock()
	last := ws.by[upload]
	if ws.by == nil {
		ws.by = map[string]*writer{}
	}
	ws.by[upload] = w
	if last != nil {
		last.lost = true
	}
	ws.mu.Unlock()
	if last != nil {
		last.stop()
	}
	return first != nil || last != nil, nil
}

// silent waits until the writer has ended or is taken for dead. The error is ErrOffset if it
// receives bytes, or waits for the storage.
func (w *writer) silent(ctx context.Context) error {
	before := w.received.Load()
	for range silentSteps {
		select {
		case <-w.ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(silentTime / silentSteps):
		}
		if w.received.Load() != before {
			return ErrOffset
		}
	}
	if w.handling.Load() {
		return ErrOffset
	}
	return nil
}

// has reports whether a request adds bytes to an upload.
func (ws *writers) has(upload string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.by[upload] != nil
}

// interrupt ends the writer of an upload, and waits for its end.
func (ws *writers) interrupt(upload string) {
	ws.mu.Lock()
	w := ws.by[upload]
	if w != nil {
		w.lost = true
	}
	ws.mu.Unlock()
	if w != nil {
		w.stop()
	}
}

// stop interrupts the writer and waits for its end, unless it is storing what it has. Then the
// storage decides.
func (w *writer) stop() {
	w.interrupt()
	select {
	case <-w.ended:
	case <-time.After(takeOverTime):
	}
}

func (ws *writers) end(upload string, w *writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.by[upload] == w {
		delete(ws.by, upload)
	}
	close(w.ended)
}

// hasLost reports whether another request has taken over.
func (ws *writers) hasLost(w *writer) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.lost
}
