package media

import (
	"context"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Bounds limit the resources that uploads of several services hold together, and keep what they have
// counted. Services that replace each other share one, because uploads continue in the replaced
// service.
type Bounds struct {
	// uploads counts the current uploads. Each may hold a connection, which is a file descriptor.
	uploads *queue.Pool
	staging *upload.Staging
	imports *queue.Queue
	// calls are requests that hold their form or answer in memory.
	calls  [len(maxCalls)]*queue.Queue
	usages *usages
}

// NewBounds returns Bounds for one process. Of its file descriptors, downloads have a quarter,
// connections of uploads another quarter, and staged data three eighths. An eighth is left for
// everything else, half of it for imports.
func NewBounds() *Bounds {
	files := int64(MaxOpenFiles())
	b := &Bounds{
		uploads: queue.NewPool(files / 4),
		staging: upload.NewStaging(stagingMemory, files*3/8),
		imports: queue.New(queue.Options{Slots: int(max(files/16, maxImports))}),
		usages:  newUsages(),
	}
	for call := range b.calls {
		b.calls[call] = queue.New(queue.Options{Slots: 64, Wait: 30 * time.Second, Waiting: 1024})
	}
	return b
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
// false if too many wait. leave must be called after the answer is sent. A caller with a
// ticket, which has only repeated answers, does not wait.
func (s *Service) Enter(ctx context.Context, actor item.Actor, call Call, n int64) (leave func(), ok bool) {
	party := actor.Party()
	left := func() {}
	if party.Client == "" {
		slot, err := s.bounds.calls[call].Acquire(ctx, queue.Request{Owner: party.Owner, Most: maxCalls[call]})
		if err != nil {
			return nil, false
		}
		left = slot.Release
	}
	released, ok := s.bounds.staging.ReserveMemory(party, n)
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
