package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/guard"
	"github.com/caddymedia/media/storagedrivers/queue"
)

const (
	// maxWindow is the largest number of blocks that are requested at once.
	maxWindow = 64
	// maxOrphans is how many blocks are fetched without readers at the same time, each for orphanTime
	// at most.
	maxOrphans = 8
	orphanTime = 30 * time.Second
	// maxFetching is the memory in bytes that blocks on their way share.
	maxFetching = 64 << 20
)

func newFetching(units int64) *queue.Queue {
	return queue.New(queue.Options{Slots: maxFetching / minBlock, Units: units})
}

// acquire waits for the memory of a block, in turn with the owners of other contexts.
func (s *Store) acquire(ctx context.Context, size int64) (*queue.Slot, error) {
	return s.fetching.Acquire(ctx, queue.Request{Owner: storagedrivers.Owner(ctx), Units: size})
}

// generation is an object that readers have opened. Its fields are guarded by the driver's mu.
type generation struct {
	id      identity
	info    storagedrivers.Info
	users   int // readers and flights
	flights map[int64]*flight
	streams []*stream // that no flight uses
}

// stream is an open request to the backend. It belongs to the reader that has used it last, so that
// a reader that waits for its client holds one connection, as it would without a cache.
type stream struct {
	ctx    context.Context //nolint:containedctx // of the body, by the contract
	cancel context.CancelFunc
	reader *reader
	body   io.ReadCloser // nil: not opened, or read to its end
	next   int64         // the block where body stands
	left   int64         // blocks of body
	window int64         // blocks of the last request
}

// newStream returns a stream that outlives the caller's operation. It counts for the caller's
// owner.
func newStream(ctx context.Context, number int64) *stream {
	s := &stream{next: number}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

func (s *stream) close() {
	if s == nil {
		return
	}
	if s.body != nil {
		_ = s.body.Close() // it was only read
		s.body = nil
	}
	s.cancel()
}

// flight is a fetch of one block, for all readers that wait for it.
type flight struct {
	number int64
	size   int
	cancel context.CancelFunc

	waiting int         // readers; guarded by the driver's mu
	orphan  *time.Timer // set while there are none; guarded by it too

	mu      sync.Mutex
	changed chan struct{} // closed when one of the following changes
	slot    *queue.Slot   // nil until the backend answers; of the fetch alone
	buf     []byte        // nil once the block is stored
	n       int           // bytes of buf that have arrived
	over    bool
	err     error
}

// publish applies f, which changes the state that readers wait for.
func (f *flight) publish(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// attach makes r a user of the generation of a record, and of the stream s, if that is set. It does
// nothing for a reader that is attached already.
func (d *cached) attach(r *reader, rec record, s *stream) {
	id := d.generationID(rec)
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.generation != nil {
		return
	}
	g := d.generations[id]
	if g == nil {
		g = &generation{id: id, info: rec.Info, flights: map[int64]*flight{}}
		d.generations[id] = g
	}
	g.users++
	r.generation = g
	if s != nil {
		s.reader = r
		g.streams = append(g.streams, s)
	}
}

// release ends a use of g. The caller holds mu.
func (d *cached) release(g *generation) {
	if g.users--; g.users == 0 && d.generations[g.id] == g {
		delete(d.generations, g.id)
	}
}

// takeStreams removes the streams that match from g.
func (g *generation) takeStreams(match func(*stream) bool) []*stream {
	var taken []*stream
	g.streams = slices.DeleteFunc(g.streams, func(s *stream) bool {
		if match(s) {
			taken = append(taken, s)
			return true
		}
		return false
	})
	return taken
}

// join returns the flight of a block, and starts it if there is none. The reader must leave it.
func (d *cached) join(r *reader, number int64) *flight {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := r.generation
	f := g.flights[number]
	if f == nil {
		i := slices.IndexFunc(g.streams, func(s *stream) bool { return s.next == number && s.reader == r })
		if i < 0 {
			i = slices.IndexFunc(g.streams, func(s *stream) bool { return s.next == number })
		}
		var s *stream
		if i >= 0 {
			s = g.streams[i]
			g.streams = slices.Delete(g.streams, i, i+1)
		}
		unused := g.takeStreams(func(s *stream) bool { return s.reader == r })
		resumed := s != nil && s.body != nil
		if !resumed {
			window := int64(0)
			if s != nil {
				window = s.window
			}
			s = newStream(r.ctx, number)
			s.window = window
		}
		s.reader = r
		f = &flight{number: number, size: d.blockSize(g.info, number), cancel: s.cancel, changed: make(chan struct{})}
		g.flights[number] = f
		g.users++
		end := r.end
		d.running.Go(func() {
			for _, s := range unused {
				s.close()
			}
			d.fetch(g, f, s, end)
		})
	}
	d.adopt(f)
	f.waiting++
	return f
}

// leave ends a reader's interest in a flight. Without readers it goes on for a while, unless the last one
// has aborted, or too many others do so.
func (d *cached) leave(r *reader, f *flight) {
	aborted := r.ctx.Err() != nil
	d.mu.Lock()
	defer d.mu.Unlock()
	f.waiting--
	switch {
	case f.waiting > 0 || r.generation.flights[f.number] != f: // it has readers, or is over
	case aborted || d.orphans == maxOrphans:
		delete(r.generation.flights, f.number)
		f.cancel()
	default:
		d.orphans++
		f.orphan = time.AfterFunc(orphanTime, f.cancel)
	}
}

// adopt ends the time without readers of a flight. The caller holds mu.
func (d *cached) adopt(f *flight) {
	if f.orphan != nil {
		f.orphan.Stop()
		f.orphan = nil
		d.orphans--
	}
}

// fetch runs a flight.
func (d *cached) fetch(g *generation, f *flight, s *stream, end int64) {
	id := blockID(g.id, f.number)
	var err error
	stored := d.store.has(id, f.size) // by a flight that ended before this one began
	if !stored {
		if err = guard.Call(func() error { return d.receive(g, f, s, end) }); err == nil {
			stored = d.store.put(id, f.buf)
		}
	}
	d.mu.Lock()
	d.adopt(f)
	if g.flights[f.number] == f {
		delete(g.flights, f.number)
	}
	parked := err == nil && s.next == f.number+1 && !s.reader.closed && s.ctx.Err() == nil
	if parked {
		g.streams = append(g.streams, s)
	}
	d.release(g)
	d.mu.Unlock()
	if !parked {
		s.close()
	}
	f.publish(func() {
		f.over, f.err = true, err
		if stored {
			f.buf = nil
		}
	})
	if f.slot != nil {
		f.slot.Release()
	}
}

// receive reads a block from the backend. If a stream breaks that was idle before, it is opened
// again.
func (d *cached) receive(g *generation, f *flight, s *stream, end int64) error {
	resumed := s.body != nil
	for {
		err := d.read(g, f, s, end)
		if err == nil || !resumed || f.n == f.size || s.ctx.Err() != nil || errors.Is(err, storagedrivers.ErrChanged) {
			return err
		}
		resumed = false
		_ = s.body.Close() // it is broken
		s.body, s.window = nil, 0
	}
}

// read reads the rest of a block. The block that ends a request is complete when the driver reports
// the end, since some drivers verify the generation only then.
func (d *cached) read(g *generation, f *flight, s *stream, end int64) error {
	if s.body == nil {
		if err := d.request(g, f, s, end); err != nil {
			return err
		}
	}
	if f.buf == nil { // the backend answers; so no fetch with memory waits for a connection
		slot, err := d.store.acquire(s.ctx, int64(f.size))
		if err != nil {
			return err
		}
		f.slot = slot
		f.publish(func() { f.buf = make([]byte, f.size) })
	}
	for f.n < f.size {
		n, err := s.body.Read(f.buf[f.n:])
		if n > 0 {
			f.publish(func() { f.n += n })
		}
		switch {
		case f.n == f.size && s.left > 1: // an error returns with the next block
		case errors.Is(err, io.EOF) && f.n < f.size:
			return fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, io.ErrUnexpectedEOF)
		case err != nil && !errors.Is(err, io.EOF):
			return d.failed(g, err)
		}
	}
	if s.left--; s.left == 0 {
		var b [1]byte
		if _, err := io.ReadFull(s.body, b[:]); !errors.Is(err, io.EOF) {
			if err == nil {
				err = storagedrivers.ErrChanged // it is longer
			}
			return d.failed(g, err)
		}
		_ = s.body.Close() // it was read to its end
		s.body = nil
	}
	s.next++
	return nil
}

// isFetched reports whether a block is stored, or another flight fetches it.
func (d *cached) isFetched(g *generation, number int64) bool {
	d.mu.Lock()
	_, flies := g.flights[number]
	d.mu.Unlock()
	return flies || d.store.has(blockID(g.id, number), d.blockSize(g.info, number))
}

// request opens the object at the rest of a block. While a reader reads on, each request asks for
// twice as many blocks as the one before, up to one that is fetched already. If the driver may
// notice a replacement late, a request is for one block.
func (d *cached) request(g *generation, f *flight, s *stream, end int64) error {
	block := d.policy.Block
	window := min(max(1, 2*s.window), maxWindow, max(1, (end+block-1)/block-f.number))
	if !d.policy.Immutable && g.info.ETag == "" {
		window = 1
	}
	for n := int64(1); n < window; n++ {
		if d.isFetched(g, f.number+n) {
			window = n
		}
	}
	from, to := f.number*block+int64(f.n), min((f.number+window)*block, g.info.Size)
	var body io.ReadCloser
	var info storagedrivers.Info
	err := d.circuit.Do(s.ctx, d.now, func(ctx context.Context) (err error) {
		body, info, err = d.inner.Open(ctx, g.info.Key, storagedrivers.Range{Offset: from, Length: to - from})
		return err
	})
	if err != nil {
		return d.failed(g, err)
	}
	if !info.Same(g.info) {
		_ = body.Close() // it is not read
		return d.failed(g, storagedrivers.ErrChanged)
	}
	s.body, s.window = body, window
	s.left = (to+block-1)/block - f.number
	return nil
}

// failed returns the error of a reader. If the object is no longer the one that it reads, the
// record of the object is removed.
func (d *cached) failed(g *generation, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storagedrivers.ErrInvalidRange) {
		// The reader has opened an object, so that these would mislead its caller.
		err = fmt.Errorf("%w: %s", storagedrivers.ErrChanged, err.Error())
	}
	if errors.Is(err, storagedrivers.ErrChanged) {
		d.store.invalidate(d.infoID(g.info.Key))
	}
	return err
}
