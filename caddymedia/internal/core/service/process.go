package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/locks"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Process has what the services of a process share: the resources that their uploads hold together,
// and what they have counted. Services that replace each other share one, because uploads continue
// in the replaced service, and a reload must not reset a count.
type Process struct {
	// uploads counts the current uploads. Each may hold a connection, which is a file descriptor.
	uploads *queue.Pool
	staging *upload.Staging
	imports *queue.Queue
	// calls are requests that hold their form or answer in memory.
	calls   [len(maxCalls)]*queue.Queue
	usages  *usages
	ordered *orderedLists
	// images and logins are shared by services with equal limits.
	images shared[imagesKey, *render.Maker]
	logins shared[LoginLimits, *logins]
}

// program is what all services of this program share, because it belongs to what is stored: one
// service may replace another, or use the same storage beside it.
var program = struct {
	items   locks.Names      // locks of the items that are being committed or deleted, by location
	uploads resumable.Active // requests at work on resumable uploads
	derived *derived.Memory
}{derived: derived.NewMemory()}

// NewProcess returns an unused Process. Of the file descriptors of this process, downloads have a
// quarter, connections of uploads another quarter, and staged data three eighths. An eighth is left
// for everything else, half of it for imports.
func NewProcess() *Process {
	files := int64(MaxOpenFiles())
	p := &Process{
		uploads: queue.NewPool(files / 4),
		staging: upload.NewStaging(stagingMemory, files*3/8),
		imports: queue.New(queue.Options{Slots: int(max(files/16, maxImports))}),
		usages:  newUsages(),
		ordered: newOrderedLists(),
	}
	for call := range p.calls {
		p.calls[call] = queue.New(queue.Options{Slots: 64, Wait: 30 * time.Second, Waiting: 1024})
	}
	return p
}

// Call is a kind of requests that hold their form or answer in memory.
type Call int

// The kinds of calls. An ordered list reads a whole folder for a page. Other calls are the rest of
// the lists, forms of signatures and repeated answers.
const (
	OtherCall Call = iota
	OrderedList
	DeletedSet
)

// maxCalls is how many calls of a kind an account has at once.
var maxCalls = [...]int{OtherCall: 8, OrderedList: 2, DeletedSet: 2}

// Enter waits until a call of the caller may hold n bytes for its form or its answer. It returns
// false if too many wait. leave must be called after the answer is sent. A caller with a ticket
// does not wait: it has repeated answers, or lists of a presigned address, and its share of the
// memory bounds them.
func (s *Service) Enter(ctx context.Context, actor item.Actor, call Call, n int64) (leave func(), ok bool) {
	party := actor.Party()
	left := func() {}
	if party.Client == "" {
		slot, err := s.process.calls[call].Acquire(ctx, queue.Request{Owner: party.Owner, Most: maxCalls[call]})
		if err != nil {
			return nil, false
		}
		left = slot.Release
	}
	released, ok := s.process.staging.ReserveMemory(party, n)
	if !ok {
		left()
		return nil, false
	}
	return func() {
		released()
		left()
	}, true
}

// stagingMemory is the most bytes of small items that wait in memory, and of forms and answers.
const stagingMemory = 64 << 20

// unlimitedFiles is the number of files where open files are not limited.
const unlimitedFiles = 1 << 20

// shared has values for services with equal settings, each as long as a service holds it. The zero
// value is usable.
type shared[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]*held[V]
}

type held[V any] struct {
	value V
	users int
}

// acquire returns the value of a key, a new one if no service holds one. The caller must call
// release.
func (s *shared[K, V]) acquire(key K, make func() (V, error)) (value V, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[key]
	if h == nil {
		if value, err = make(); err != nil {
			return value, nil, err
		}
		if s.all == nil {
			s.all = map[K]*held[V]{}
		}
		h = &held[V]{value: value}
		s.all[key] = h
	}
	h.users++
	return h.value, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(s.all, key)
		}
	}, nil
}

// imagesKey are the settings of a render.Maker.
type imagesKey struct {
	limits       render.Limits
	needsEncoder bool
}

// sharedImages returns the maker of variants and renditions. A service with the limits of the one
// that it replaces has the same one, so that running work still counts.
func (s *Service) sharedImages() (*render.Maker, error) {
	maker, free, err := s.process.images.acquire(imagesKey{s.limits.Images, s.limits.NeedsEncoder}, func() (*render.Maker, error) {
		if !s.limits.NeedsEncoder {
			return render.NewMaker(nil, s.limits.Images), nil
		}
		encoder, err := webp.New()
		if err != nil {
			return nil, fmt.Errorf("WebP encoder: %w", err)
		}
		s.log.Info("WebP encoder", "name", encoder.Name(), "can_be_stopped", encoder.Stops())
		return render.NewMaker(encoder, s.limits.Images), nil
	})
	if err == nil {
		s.free = append(s.free, free)
	}
	return maker, err
}

// LoginLimits are those of logins and tickets; 0 means the default of package access.
type LoginLimits struct{ Failures, PasswordChecks, TicketsPerMinute int }

// logins limit guesses of passwords, and tickets.
type logins struct {
	throttle *access.Throttle
	hashing  *access.HashLimiter
}

// sharedLogins returns the counts of logins. A service with the limits of the one that it replaces
// has the same ones.
func (s *Service) sharedLogins() *logins {
	l, free, _ := s.process.logins.acquire(s.limits.Logins, func() (*logins, error) { // it never fails
		return &logins{
			throttle: access.NewThrottle(access.ThrottleOptions{Failures: s.limits.Logins.Failures, Tickets: s.limits.Logins.TicketsPerMinute}),
			hashing:  access.NewHashLimiter(access.HashLimiterOptions{Concurrent: s.limits.Logins.PasswordChecks}),
		}, nil
	})
	s.free = append(s.free, free)
	return l
}
