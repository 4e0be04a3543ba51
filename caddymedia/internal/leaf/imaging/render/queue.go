package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Limits bound the processing of images. The zero value means the defaults.
type Limits struct {
	// Workers is the number of images processed at a time. Long animations on request are processed
	// beside them, half as many. 0 means one per processor.
	Workers int
	// Memory is the number of bytes that all images being processed may use together. 0 means
	// 512 MiB.
	Memory int64
	// Queue is the number of images that may wait. 0 means 500.
	Queue int
	// Wait is the longest time in the queue. 0 means 30 s.
	Wait time.Duration
	// Time is the time limit for encoding each output of an image, as [Maker.Clock] counts it. 0 means
	// 20 s.
	Time time.Duration
}

// Defaults of [Limits].
const (
	defaultMemory = 512 << 20
	defaultQueue  = 500
	defaultWait   = 30 * time.Second
	defaultTime   = 20 * time.Second // below defaultWait: a waiting image outlasts one encoder
)

func (l Limits) withDefaults() Limits {
	l.Workers = cmp.Or(max(l.Workers, 0), runtime.GOMAXPROCS(0))
	l.Memory = cmp.Or(max(l.Memory, 0), defaultMemory)
	l.Queue = cmp.Or(max(l.Queue, 0), defaultQueue)
	l.Wait = cmp.Or(max(l.Wait, 0), defaultWait)
	l.Time = cmp.Or(max(l.Time, 0), defaultTime)
	return l
}

// ErrBusy means that an image was refused because of other work: the queue was full, the wait too
// long, or the machine too slow.
var ErrBusy = errors.New("too many images are being worked on")

// smallPixels is the largest pixel count of a small image, summed over all frames of an
// animation. Processing one takes some hundredths of a second.
const smallPixels = 1 << 20

func isSmall(info imaging.Info) bool {
	return int64(info.Width)*int64(info.Height)*int64(max(1, info.Frames)) <= smallPixels
}

// isLong reports whether an image is an animation whose processing may take as long as its limits
// allow.
func isLong(info imaging.Info) bool { return info.Frames > 1 && !isSmall(info) }

// workQueue bounds the images being processed and their memory, and serves their owners in
// rotation.
type workQueue struct {
	limits   Limits
	workers  *queue.Queue // with the memory of all images
	requests *queue.Queue // of stored images, before they are fetched
	long     *queue.Queue // the same for long animations, which are made beside the workers
	garbage  atomic.Int64 // about the number of bytes freed since the last collection
}

func newQueue(limits Limits) *workQueue {
	options := queue.Options{Slots: limits.Workers, Units: limits.Memory, Wait: limits.Wait, Waiting: limits.Queue}
	return &workQueue{
		limits:   limits,
		workers:  queue.New(options),
		requests: queue.New(queue.Options{Slots: requestsPerWorker * limits.Workers, Wait: limits.Wait, Waiting: limits.Queue}),
		long:     queue.New(queue.Options{Slots: max(1, limits.Workers/2), Waiting: limits.Queue}),
	}
}

// most returns how many workers an owner may have for work that would keep others waiting: all but
// the last one.
func (q *workQueue) most() int { return max(1, q.limits.Workers-1) }

// requestsPerWorker is how many stored images are fetched and processed at a time for each worker,
// so that workers need not wait for a storage.
const requestsPerWorker = 2

// Owners that share the workers and the memory with the accounts. Renditions on request thus get
// one share of the workers, like one account. Long animations need only memory.
const (
	requestsOwner = "renditions"
	longOwner     = "animations"
)

// ErrLong means that an image is a long animation, and was not admitted as one.
var ErrLong = errors.New("the animation is long")

// Wait returns the longest time in the queue.
func (m *Maker) Wait() time.Duration { return m.queue.limits.Wait }

// Admit waits until a stored image may be fetched, to be rendered at the request of owner, and
// returns a Maker for it. It bounds the copies of images that wait for a worker. leave must be
// called when the image is rendered. The error is ErrBusy or that of ctx.
//
// Long animations wait apart, as long as ctx allows, and need no worker, so that they delay no
// others. The Maker returns ErrLong for one that was not admitted as long.
func (m *Maker) Admit(ctx context.Context, owner string, long bool) (on *Maker, leave func(), err error) {
	q, party := m.queue.requests, queue.Party{Owner: requestsOwner, Client: owner} // the owners take turns
	if long {
		q, party = m.queue.long, queue.Party{Owner: longOwner}
	}
	slot, err := q.Acquire(ctx, queue.Request{Owner: owner})
	if err != nil {
		return nil, nil, busy(err)
	}
	return m.For(party), slot.Release, nil
}

// acquire waits for a slot with memory. The caller must release it. The error is ErrBusy, ErrLong
// or that of ctx.
func (m *Maker) acquire(ctx context.Context, info imaging.Info, memory int64) (*slot, error) {
	r := m.party.Request()
	r.UnitsOnly = r.Owner == longOwner
	if isSmall(info) { // it takes turns with the large ones of its party
		r.Client += " small"
	}
	switch {
	case r.Owner == requestsOwner && isLong(info):
		return nil, ErrLong
	case r.Owner == requestsOwner, isLong(info):
		r.Most = m.queue.most()
	}
	s := &slot{queue: m.queue, clock: m.Clock, request: r}
	return s, s.acquire(ctx, memory)
}

// busy converts the errors of the queue to ErrBusy.
func busy(err error) error {
	if errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// slot is the permission to process one image.
type slot struct {
	queue   *workQueue
	clock   Clock
	request queue.Request
	held    *queue.Slot // nil after an error of acquire
}

// acquire waits for memory, in place of what the slot holds. So no slot waits for the memory of
// another.
func (s *slot) acquire(ctx context.Context, memory int64) (err error) {
	s.release()
	s.request.Units = memory
	s.held, err = s.queue.workers.Acquire(ctx, s.request)
	return busy(err)
}

// release also runs the garbage collector when there is much garbage. By itself the collector would
// let the heap double, beyond the memory limit.
func (s *slot) release() {
	if s.held == nil {
		return
	}
	q := s.queue
	if q.garbage.Add(s.request.Units) > q.limits.Memory/8 {
		q.garbage.Store(0)
		runtime.GC()
	}
	s.held.Release()
	s.held = nil
}
