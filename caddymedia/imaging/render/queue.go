package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/internal/queue"
)

// Limits bound the processing of pictures. The zero value means the defaults.
type Limits struct {
	// Workers is the number of pictures processed at a time. 0 means one per processor.
	Workers int
	// Memory is the number of bytes that all pictures being processed may use together. 0 means
	// [DefaultMemory].
	Memory int64
	// Queue is the number of large pictures that may wait; five times as many small ones may. 0
	// means [DefaultQueue].
	Queue int
	// Wait is the longest time in the queue. 0 means [DefaultWait].
	Wait time.Duration
	// Time is the time limit for encoding each output of a picture. While other pictures wait it is a
	// third of Wait. 0 means [DefaultTime].
	Time time.Duration
}

// Defaults of [Limits].
const (
	DefaultMemory = 512 << 20
	DefaultQueue  = 100
	DefaultWait   = 30 * time.Second
	DefaultTime   = 20 * time.Second // below DefaultWait: a waiting picture outlasts one encoder
)

// decodingTime returns the time limit for decoding a picture. A short time for encoders does not
// count, because a picture that is not decoded is refused.
func (l Limits) decodingTime() time.Duration { return max(l.Time, DefaultTime) }

func (l Limits) withDefaults() Limits {
	l.Workers = cmp.Or(max(l.Workers, 0), runtime.GOMAXPROCS(0))
	l.Memory = cmp.Or(max(l.Memory, 0), DefaultMemory)
	l.Queue = cmp.Or(max(l.Queue, 0), DefaultQueue)
	l.Wait = cmp.Or(max(l.Wait, 0), DefaultWait)
	l.Time = cmp.Or(max(l.Time, 0), DefaultTime)
	return l
}

// ErrBusy means that a picture was refused because of other pictures: the queue was full or the
// wait too long.
var ErrBusy = errors.New("too many pictures are being worked on")

// smallPixels is the largest pixel count of a small picture, summed over all frames of an
// animation. Processing one takes some hundredths of a second.
const smallPixels = 1 << 20

// Classes of the queue. Every second slot is for small pictures, so that large ones do not delay
// them.
const (
	smallPicture = iota
	largePicture
)

func classOf(info imaging.Info) int {
	if int64(info.Width)*int64(info.Height)*int64(max(1, info.Frames)) <= smallPixels {
		return smallPicture
	}
	return largePicture
}

// workQueue bounds the pictures being processed and their memory, and serves their owners in
// rotation.
type workQueue struct {
	limits   Limits
	slots    *queue.Queue
	requests *queue.Queue // of stored pictures, before they are fetched
	garbage  atomic.Int64 // about the number of bytes freed since the last collection
}

// smallPerLarge is the ratio of small to large pictures that may wait.
const smallPerLarge = 5

func newQueue(limits Limits) *workQueue {
	classes := []queue.Class{
		smallPicture: {Waiting: limits.Queue * smallPerLarge}, largePicture: {Waiting: limits.Queue},
	}
	return &workQueue{limits: limits, slots: queue.New(queue.Options{
		Slots: limits.Workers, Units: limits.Memory, Wait: limits.Wait, Classes: classes,
	}), requests: queue.New(queue.Options{
		Slots: requestsPerWorker * limits.Workers, Wait: limits.Wait, Classes: []queue.Class{{Waiting: limits.Queue * smallPerLarge}},
	})}
}

// requestsPerWorker is how many stored pictures are fetched and processed at a time for each worker,
// so that workers need not wait for a storage.
const requestsPerWorker = 2

// Admit waits until a stored picture may be fetched, to be rendered at the request of owner. It
// bounds the copies of pictures that wait for a worker. leave must be called when the picture is
// rendered. The error is ErrBusy or that of ctx.
func (m *Maker) Admit(ctx context.Context, owner string) (leave func(), err error) {
	slot, err := m.queue.requests.Acquire(ctx, queue.Request{Owner: owner})
	if err != nil {
		return nil, busy(err)
	}
	return slot.Release, nil
}

// acquire waits for a slot with memory. The caller must release it. The error is ErrBusy or that of
// ctx.
func (q *workQueue) acquire(ctx context.Context, owner string, info imaging.Info, memory int64) (*slot, error) {
	held, err := q.slots.Acquire(ctx, queue.Request{Owner: owner, Class: classOf(info), Units: memory})
	if err != nil {
		return nil, busy(err)
	}
	return &slot{queue: q, held: held}, nil
}

// busy converts the errors of the queue to ErrBusy.
func busy(err error) error {
	if errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// contendedTime is the time limit of an encoder while other pictures wait. The minimum is a second,
// since most need less.
func (q *workQueue) contendedTime() time.Duration { return max(q.limits.Wait/3, time.Second) }

// slot is the permission to process one picture.
type slot struct {
	queue *workQueue
	held  *queue.Slot
}

// memory returns the number of bytes acquired.
func (s *slot) memory() int64 { return s.held.Units() }

// change releases the memory and acquires another amount. After an error the slot holds none.
func (s *slot) change(ctx context.Context, memory int64) error {
	s.collect()
	return busy(s.held.Change(ctx, memory))
}

// pollInterval is how often an encoder over its contended time checks for waiting pictures.
const pollInterval = 200 * time.Millisecond

// limitContended calls stop when the encoder is over its contended time and other pictures wait.
// Losing a variant, which is optional, is better than refusing an upload. limitContended returns
// when ctx ends.
func (s *slot) limitContended(ctx context.Context, stop context.CancelCauseFunc) {
	for timer := time.NewTimer(s.queue.contendedTime()); ; timer.Reset(pollInterval) {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if s.queue.slots.Contended() {
			stop(errContended)
		}
	}
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
