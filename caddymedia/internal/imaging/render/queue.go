package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Limits bound the processing of images. The zero value means the defaults.
type Limits struct {
	// Workers is the number of images processed at a time. 0 means one per processor.
	Workers int
	// Memory is the number of bytes that all images being processed may use together. 0 means
	// 512 MiB.
	Memory int64
	// Queue is the number of large images that may wait; five times as many small ones may. 0
	// means 100.
	Queue int
	// Wait is the longest time in the queue. 0 means 30 s.
	Wait time.Duration
	// Time is the time limit for encoding each output of an image, without the time of pauses
	// for others. That of a variant is a third of Wait while the images of other owners wait. 0
	// means 20 s.
	Time time.Duration
}

// Defaults of [Limits].
const (
	defaultMemory = 512 << 20
	defaultQueue  = 100
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

// ErrBusy means that an image was refused because of other images: the queue was full or the
// wait too long.
var ErrBusy = errors.New("too many images are being worked on")

// smallPixels is the largest pixel count of a small image, summed over all frames of an
// animation. Processing one takes some hundredths of a second.
const smallPixels = 1 << 20

// Classes of the queue. They take turns. An image yields to those of the classes before its own:
// between the frames of an animation, and wherever a decoder reads.
const (
	smallImage = iota
	largeImage
	longAnimation
)

func classOf(info imaging.Info) int {
	switch pixels := int64(info.Width) * int64(info.Height) * int64(max(1, info.Frames)); {
	case pixels <= smallPixels:
		return smallImage
	case info.Frames <= 1:
		return largeImage
	default:
		return longAnimation
	}
}

// workQueue bounds the images being processed and their memory, and serves their owners in
// rotation.
type workQueue struct {
	limits   Limits
	slots    *queue.Queue
	requests *queue.Queue // of stored images, before they are fetched
	long     *queue.Queue // the same for long animations
	garbage  atomic.Int64 // about the number of bytes freed since the last collection

	// requestWorkers is how many workers renditions on request may have: all but the last one.
	requestWorkers int
	// contendedTime is the time limit of a variant's encoder while others wait. The minimum is a
	// second, since most need less.
	contendedTime time.Duration
}

// smallPerLarge is the ratio of small to large images that may wait.
const smallPerLarge = 5

func newQueue(limits Limits) *workQueue {
	small, large := queue.Class{Waiting: limits.Queue * smallPerLarge}, queue.Class{Waiting: limits.Queue}
	besideLarge := queue.Class{Waiting: small.Waiting, Beside: true}
	requestWorkers := max(1, limits.Workers-1)
	return &workQueue{
		limits: limits, requestWorkers: requestWorkers, contendedTime: max(limits.Wait/3, time.Second),
		slots: queue.New(queue.Options{
			Slots: limits.Workers, Units: limits.Memory, Wait: limits.Wait,
			Classes: []queue.Class{smallImage: besideLarge, largeImage: large, longAnimation: large},
		}),
		requests: queue.New(queue.Options{
			Slots: requestsPerWorker * limits.Workers, Wait: limits.Wait, Classes: []queue.Class{small},
		}),
		long: queue.New(queue.Options{
			Slots: requestWorkers, Classes: []queue.Class{large}, PerOwner: longPerOwner,
		}),
	}
}

const (
	// requestsPerWorker is how many stored images are fetched and processed at a time for each
	// worker, so that workers need not wait for a storage.
	requestsPerWorker = 2
	// longPerOwner is how many long animations may be rendered, or wait for it, at the request of an
	// owner.
	longPerOwner = 8
)

// requestsOwner shares the workers with the accounts. Renditions on request thus get one share of
// them, like one account.
const requestsOwner = "renditions"

// ErrLong means that an image is a long animation, and was not admitted as one.
var ErrLong = errors.New("the animation is long")

// Wait returns the longest time in the queue.
func (m *Maker) Wait() time.Duration { return m.queue.limits.Wait }

// Admit waits until a stored image may be fetched, to be rendered at the request of owner, and
// returns a Maker for it. It bounds the copies of images that wait for a worker. leave must be
// called when the image is rendered. The error is ErrBusy or that of ctx.
//
// Long animations wait apart, as long as ctx allows, so that they delay no others. Of one owner
// only a few may wait. The Maker returns ErrLong for one that was not admitted as long.
func (m *Maker) Admit(ctx context.Context, owner string, long bool) (on *Maker, leave func(), err error) {
	q := m.queue.requests
	if long {
		q = m.queue.long
	}
	slot, err := q.Acquire(ctx, queue.Request{Owner: owner})
	if err != nil {
		return nil, nil, busy(err)
	}
	on = m.For(queue.Party{Owner: requestsOwner})
	on.most, on.notLong = m.queue.requestWorkers, !long
	return on, slot.Release, nil
}

// acquire waits for a slot with memory. The caller must release it. The error is ErrBusy, ErrLong
// or that of ctx.
func (m *Maker) acquire(ctx context.Context, info imaging.Info, memory int64) (*slot, error) {
	r := m.party.Request()
	r.Class, r.Units, r.Most = classOf(info), memory, m.most
	if m.notLong && r.Class == longAnimation {
		return nil, ErrLong
	}
	held, err := m.queue.slots.Acquire(ctx, r)
	if err != nil {
		return nil, busy(err)
	}
	return &slot{queue: m.queue, held: held}, nil
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
	queue  *workQueue
	held   *queue.Slot
	paused atomic.Bool
}

// pause yields to other images, if any should go first. The error is the cause of ctx.
func (s *slot) pause(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.paused.Store(true)
	defer s.paused.Store(false)
	return s.held.Yield(ctx)
}

// tick is the precision of time limits.
const tick = 200 * time.Millisecond

// within returns a context that ends with ErrTime when the slot has worked for limit, or with
// errContended when it has worked for contended and others wait. Pauses do not count.
func (s *slot) within(ctx context.Context, limit, contended time.Duration) (context.Context, context.CancelFunc) {
	bounded, stop := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for worked := time.Duration(0); ; {
			select {
			case <-bounded.Done():
				return
			case <-ticker.C:
			}
			if s.paused.Load() {
				continue
			}
			if worked += tick; worked >= limit {
				stop(ErrTime)
			} else if worked >= contended && s.held.Contended() {
				stop(errContended)
			}
		}
	}()
	return bounded, func() { stop(nil) }
}

// collect counts the acquired memory as garbage and runs the garbage collector when there is much
// of it. By itself the collector would let the heap double, beyond the memory limit.
func (s *slot) collect() {
	q := s.queue
	if q.garbage.Add(s.held.Units()) > q.limits.Memory/8 {
		q.garbage.Store(0)
		runtime.GC()
	}
}

func (s *slot) release() {
	s.collect()
	s.held.Release()
}
