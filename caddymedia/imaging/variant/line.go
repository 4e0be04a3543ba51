package variant

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/internal/queue"
)

// Limits bound what is worked on at a time. The zero value means the defaults.
type Limits struct {
	// Workers is how many pictures are worked on at a time. 0 means one for each
	// processor.
	Workers int
	// Memory is how many bytes the pictures that are worked on may take together. 0
	// means [DefaultMemory].
	Memory int64
	// Queue is how many large pictures may wait; five times as many small ones may. 0 means
	// [DefaultQueue].
	Queue int
	// Wait is how long a picture waits at most. 0 means [DefaultWait].
	Wait time.Duration
	// Time is how long an encoder may take for one picture, and a third of Wait while other pictures
	// wait. 0 means [DefaultTime].
	Time time.Duration
}

// Defaults of [Limits].
const (
	DefaultMemory = 512 << 20
	DefaultQueue  = 100
	DefaultWait   = 30 * time.Second
	DefaultTime   = 20 * time.Second // below DefaultWait: a waiting picture outlasts one encoder
)

func (l Limits) withDefaults() Limits {
	if l.Workers <= 0 {
		l.Workers = runtime.GOMAXPROCS(0)
	}
	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}
	if l.Queue <= 0 {
		l.Queue = DefaultQueue
	}
	if l.Wait <= 0 {
		l.Wait = DefaultWait
	}
	if l.Time <= 0 {
		l.Time = DefaultTime
	}
	return l
}

// ErrBusy means that a picture could not be worked on because of the others: the queue is full, or
// the wait took too long.
var ErrBusy = errors.New("too many pictures are being worked on")

// smallPixels is how many pixels a small picture shows at most, all frames of an animation counted.
// Working on it takes some hundredths of a second.
const smallPixels = 1 << 20

// Classes of the queue. Half of the turns are for small pictures, which large ones must not keep
// waiting.
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

// line bounds the pictures that are worked on, and their memory. Their owners take turns.
type line struct {
	limits  Limits
	queue   *queue.Queue
	garbage atomic.Int64 // about how many bytes were set free since the last collection
}

// smallPerLarge is how many small pictures may wait for each large one that may.
const smallPerLarge = 5

func newLine(limits Limits) *line {
	classes := []queue.Class{
		smallPicture: {Waiting: limits.Queue * smallPerLarge}, largePicture: {Waiting: limits.Queue},
	}
	return &line{limits: limits, queue: queue.New(queue.Options{
		Slots: limits.Workers, Units: limits.Memory, Wait: limits.Wait, Classes: classes,
	})}
}

// enter waits for a place with memory. The caller must leave it, unless there is an error: ErrBusy,
// or that of ctx.
func (l *line) enter(ctx context.Context, owner string, info imaging.Info, memory int64) (*place, error) {
	slot, err := l.queue.Acquire(ctx, queue.Request{Owner: owner, Class: classOf(info), Units: memory})
	if err != nil {
		return nil, busy(err)
	}
	return &place{line: l, slot: slot}, nil
}

// busy makes the queue's own errors ErrBusy.
func busy(err error) error {
	if errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// patience is how long an encoder may take while other pictures wait. Most need less than a second,
// which it always has.
func (l *line) patience() time.Duration { return max(l.limits.Wait/3, time.Second) }

// place is where one picture is worked on.
type place struct {
	line *line
	slot *queue.Slot
}

// memory is how much the picture may take.
func (p *place) memory() int64 { return p.slot.Units() }

// change releases the memory and acquires another amount. After an error the slot holds none.
func (p *place) change(ctx context.Context, memory int64) error {
	p.collect()
	return busy(p.slot.Change(ctx, memory))
}

// lookEvery is how often an encoder that has had its time looks for pictures that wait.
const lookEvery = 200 * time.Millisecond

// yield ends the encoder's time for the sake of pictures that wait: a variant is optional, an upload
// that is refused is not. It returns when ctx ends.
func (p *place) yield(ctx context.Context, giveWay context.CancelCauseFunc) {
	for timer := time.NewTimer(p.line.patience()); ; timer.Reset(lookEvery) {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if p.line.queue.Contended() {
			giveWay(errTime)
		}
	}
}

// collect counts the memory in use as garbage. The collector alone would let it grow to as much again
// as is in use, beyond the limit on memory.
func (p *place) collect() {
	l := p.line
	if l.garbage.Add(p.slot.Units()) > l.limits.Memory/8 {
		l.garbage.Store(0)
		runtime.GC()
	}
}

func (p *place) leave() {
	p.collect()
	p.slot.Release()
}
