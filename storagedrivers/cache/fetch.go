package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
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

	// noBlock is the number of a flight that only asks for the Info of an object.
	noBlock = -1
)

func newFetching(units int64) *queue.Queue {
	return queue.New(queue.Options{Slots: maxFetching / minBlock, Units: units})
}

// acquire waits for the memory of a block, in turn with the owners of other contexts.
func (s *Store) acquire(ctx context.Context, size int64) (*queue.Slot, error) {
	return s.fetching.Acquire(ctx, queue.Request{Owner: storagedrivers.Owner(ctx), Units: size})
}

// question is what readers share a flight for: a block of an object at a version.
type question struct {
	key     string
	version uint64
	number  int64
}

// flight asks the backend about an object, and fetches one block of it, for all readers that wait
// for that. It outlives the operation of the reader that has started it, but counts for its owner.
type flight struct {
	question
	end int64 // of the range of the reader that has started it

	// Guarded by the driver's mu.
	readers int
	orphan  bool    // its readers have left at some time
	stream  *stream // nil when it has ended, or the flight of the next block has it

	mu      sync.Mutex
	changed chan struct{} // closed when one of the following changes
	object  *object       // nil before the backend answers
	slot    *queue.Slot   // of buf, unless nil
	buf     []byte        // nil before the backend answers, and once the block is stored
	n       int           // bytes of buf that have arrived
	over    bool
	err     error
}

// stream is a request to the backend. It goes from the flight of a block to that of the next one. A
// reader that waits for its client thus holds one connection, as it would without a cache.
type stream struct {
	ctx    context.Context //nolint:containedctx // of the body, by the contract
	cancel context.CancelFunc
	body   io.ReadCloser // nil: not opened, or read to its end
	left   int64         // blocks of body
	window int64         // blocks of the last request
}

// drop closes the body.
func (s *stream) drop() {
	if s.body != nil {
		_ = s.body.Close() // it was only read
		s.body = nil
	}
}

// end ends the stream, if there is one.
func (s *stream) end() {
	if s != nil {
		s.drop()
		s.cancel()
	}
}

// publish calls change, which changes the state that readers wait for.
func (f *flight) publish(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// wait waits until isReady returns true. That is called with mu held.
func (f *flight) wait(ctx context.Context, isReady func() bool) error {
	for {
		f.mu.Lock()
		ready, changed := isReady(), f.changed
		f.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answer publishes the answer of the backend, and returns its error.
func (f *flight) answer(o *object, err error) error {
	f.publish(func() { f.object, f.err = o, err })
	return err
}

// join makes r wait for the flight of a block, instead of its earlier one, which is over. It
// reports whether it had to start the flight.
func (d *cached) join(r *reader, number int64) (started bool) {
	q, last := question{r.key, r.version, number}, r.flight
	if number != noBlock {
		d.store.misses.Add(1)
	}
	d.mu.Lock()
	f := d.flights[q]
	if started = f == nil || f.stream.ctx.Err() != nil; started {
		f = d.start(r, q)
	}
	f.readers++
	r.flight = f
	d.mu.Unlock()
	d.leave(last, false)
	return started
}

// start starts a flight for r. The caller holds mu.
func (d *cached) start(r *reader, q question) *flight {
	f := &flight{question: q, end: r.end, changed: make(chan struct{}), object: r.object}
	if before := d.parked[q]; before != nil && r.object != nil && before.object.generation == r.object.generation {
		f.stream = d.takeStream(before)
	} else {
		f.stream = &stream{}
		f.stream.ctx, f.stream.cancel = context.WithCancel(context.WithoutCancel(r.ctx))
	}
	d.flights[q] = f
	d.running.Go(func() { d.run(f) })
	return f
}

// next is the question of the next block.
func (q question) next() question { return question{q.key, q.version, q.number + 1} }

// takeStream takes the stream of a flight that is over. The caller holds mu.
func (d *cached) takeStream(f *flight) *stream {
	s := f.stream
	f.stream = nil
	if d.parked[f.next()] == f {
		delete(d.parked, f.next())
	}
	return s
}

// leave ends a reader's interest in a flight, if there is one. Without readers it goes on for a
// while, unless the last one has aborted, or too many others do so.
func (d *cached) leave(f *flight, aborted bool) {
	if f == nil {
		return
	}
	var unused *stream
	d.mu.Lock()
	f.readers--
	switch {
	case f.readers > 0 || f.stream == nil:
	case d.parked[f.next()] == f: // it is over
		unused = d.takeStream(f)
	case aborted || !f.orphan && d.orphans == maxOrphans:
		f.stream.cancel()
	default:
		if !f.orphan {
			f.orphan = true
			d.orphans++
		}
		time.AfterFunc(orphanTime, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if f.readers == 0 && f.stream != nil {
				f.stream.cancel()
			}
		})
	}
	d.mu.Unlock()
	unused.end()
}

// run runs a flight.
func (d *cached) run(f *flight) {
	var unused *stream
	err := guard.Call(func() error {
		if f.number == noBlock {
			return f.answer(d.ask(f.stream.ctx, f.key, f.version))
		}
		return d.fetch(f)
	})
	d.mu.Lock()
	if f.orphan {
		d.orphans--
	}
	if d.flights[f.question] == f {
		delete(d.flights, f.question)
	}
	if requested := f.stream.window > 0; requested && err == nil && f.readers > 0 && d.parked[f.next()] == nil {
		d.parked[f.next()] = f
	} else {
		unused = d.takeStream(f)
	}
	unread := f.readers == 0
	d.mu.Unlock()
	unused.end()
	f.publish(func() {
		if f.over, f.err = true, err; unread {
			f.buf = nil // a timer may hold the flight
		}
	})
	if f.slot != nil {
		f.slot.Release()
	}
}

// fetch receives and stores a block. If a request breaks that was idle before, it is made again.
func (d *cached) fetch(f *flight) error {
	wasIdle := f.stream.body != nil
	err := d.receive(f)
	if wasIdle && f.n < f.object.size(f.number) && errors.Is(err, storagedrivers.ErrUnavailable) {
		f.stream.drop()
		err = d.receive(f)
	}
	if isGone(err) {
		d.forget(f.key)
	}
	if err == nil && f.buf != nil {
		if id, _ := f.object.blockAt(f.number); d.store.put(id, f.buf) {
			f.publish(func() { f.buf = nil })
		}
	}
	return err
}

// isGone reports whether err means that the backend has no such object, or block of it, any more.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, storagedrivers.ErrInvalidRange) ||
		errors.Is(err, storagedrivers.ErrChanged)
}

// isStored reports whether a block of the object of f is stored.
func (d *cached) isStored(f *flight, number int64) bool {
	return f.object != nil && d.store.has(f.object.blockAt(number))
}

// receive reads the rest of a block, unless another flight has stored it since the reader has
// looked.
func (d *cached) receive(f *flight) error {
	if f.stream.body == nil && !d.isStored(f, f.number) {
		if err := d.request(f); err != nil {
			return err
		}
	}
	size := f.object.size(f.number)
	if size == 0 || d.isStored(f, f.number) {
		f.stream.drop()
		return nil
	}
	if f.slot == nil { // the backend answers; so no flight with memory waits for a connection
		slot, err := d.store.acquire(f.stream.ctx, int64(size))
		if err != nil {
			return err
		}
		f.slot = slot
		f.publish(func() { f.buf = make([]byte, size) })
	}
	return f.read(f.stream)
}

// read reads the rest of a block. The block that ends a request is complete when the driver reports
// the end, since some drivers verify the generation only then.
func (f *flight) read(s *stream) error {
	for f.n < len(f.buf) {
		n, err := s.body.Read(f.buf[f.n:])
		if n > 0 {
			f.publish(func() { f.n += n })
		}
		switch {
		case f.n == len(f.buf) && s.left > 1: // an error returns with the next block
		case errors.Is(err, io.EOF) && f.n < len(f.buf):
			return fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, io.ErrUnexpectedEOF)
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
	}
	if s.left--; s.left > 0 {
		return nil
	}
	defer s.drop()
	var b [1]byte
	_, err := io.ReadFull(s.body, b[:])
	switch {
	case err == nil:
		return storagedrivers.ErrChanged // it is longer
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// window returns how many blocks are requested. While a reader reads on, each request asks for
// twice as many as the one before, up to one that is fetched already. If the driver may notice a
// replacement late, or the object is not known yet, a request is for one block.
func (d *cached) window(f *flight) int64 {
	if f.object == nil || !d.policy.Immutable && f.object.ETag == "" {
		return 1
	}
	blocks := (f.end+d.policy.Block-1)/d.policy.Block - f.number
	most := min(max(1, 2*f.stream.window), maxWindow, max(1, blocks))
	d.mu.Lock()
	defer d.mu.Unlock()
	for q, n := f.next(), int64(1); n < most; q, n = q.next(), n+1 {
		if d.flights[q] != nil || d.isStored(f, q.number) {
			return n
		}
	}
	return most
}

// request opens the object at the rest of a block.
func (d *cached) request(f *flight) error {
	s := f.stream
	s.window = d.window(f)
	from, to := f.number*d.policy.Block+int64(f.n), (f.number+s.window)*d.policy.Block
	var info storagedrivers.Info
	err := d.circuit.Do(s.ctx, d.now, func(ctx context.Context) (err error) {
		s.body, info, err = d.Driver.Open(ctx, f.key, storagedrivers.Range{Offset: from, Length: to - from})
		if from == 0 && errors.Is(err, storagedrivers.ErrInvalidRange) { // it may be empty
			s.body = nil
			info, err = d.Driver.Stat(ctx, f.key)
		}
		return err
	})
	if err != nil {
		s.body = nil
		return err
	}
	if f.object == nil {
		if err = f.answer(d.accept(f.key, f.version, info)); err != nil {
			return err
		}
	}
	if !info.Same(f.object.Info) || s.body == nil && info.Size > 0 {
		return storagedrivers.ErrChanged
	}
	s.left = (min(to, info.Size)+d.policy.Block-1)/d.policy.Block - f.number
	return nil
}
