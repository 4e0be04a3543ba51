package media

import (
	"context"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/tokens"
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
func (s *Service) Enter(ctx context.Context, actor aliases.Actor, call Call, n int64) (leave func(), ok bool) {
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

// BeginUpload counts an upload of the caller as running until ended is called. It returns false if
// the account, its clients with tickets, or the ticket already have as many as are allowed. A
// ticket may have one for each file that it has left, and spare more.
func (s *Service) BeginUpload(actor aliases.Actor, ticket *tokens.Ticket, spare int) (ended func(), ok bool) {
	party := actor.Party()
	if ticket != nil {
		party.Most = int64(ticket.Left() + spare)
	}
	if !s.bounds.uploads.AcquireWithin(party, 1, int64(s.limits.MaxUploads)) {
		return nil, false
	}
	return func() { s.bounds.uploads.Release(party, 1) }, true
}

// UploadTime returns how long the body of an upload may take to arrive. With a ticket it ends with
// the ticket.
func (s *Service) UploadTime(ticket *tokens.Ticket) time.Duration {
	most := time.Duration(s.limits.MaxUploadTime)
	if ticket != nil {
		most = min(most, ticket.Expires.Sub(s.now()))
	}
	return most
}

// CountRefused counts the items of an upload that were refused for good on a ticket, if it has one.
func (s *Service) CountRefused(ctx context.Context, ticket *tokens.Ticket, failures aliases.Failures) {
	s.uploads.CountRefused(ctx, ticket, failures)
}
