package caller

import (
	"context"
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Permit is the permit of an HTTP request.
type Permit struct {
	*op.Permit
	// Repetition is that of the request; nil without an Idempotency-Key.
	Repetition *Repetition

	gate *Gate
}

// Permit returns the permit of a request from an origin, which it authenticates.
func (g *Gate) Permit(running *service.Service, r *http.Request, origin item.Origin, authenticate op.Authenticator) *Permit {
	who, refused := authenticate(r.Context(), running)
	return &Permit{gate: g, Permit: &op.Permit{
		Caller: who, Refused: refused, Service: running, Authenticate: authenticate, Next: g.Next, Log: g.Log, Actor: item.Actor{
			Origin: origin, Account: who.Account.APIKey, User: who.Account.User, Client: g.Client(r), Ticket: who.TicketID(),
		},
	}}
}

// Nobody returns the permit of a request that is refused before its caller is authenticated. It
// only names the client.
func (g *Gate) Nobody(running *service.Service, r *http.Request, origin item.Origin) *Permit {
	return &Permit{gate: g, Permit: &op.Permit{
		Service: running, Next: g.Next, Log: g.Log, Actor: item.Actor{Origin: origin, Client: g.Client(r)},
	}}
}

// Bounds of what an account has under way.
const (
	// spareUploads is how many uploads a ticket may have under way beside one for each of its files.
	spareUploads = 2
	// maxHeld is how long a request may hold memory while its client sends a form and reads the
	// answer. The time of a set begins when it is deleted.
	maxHeld = 3 * time.Minute
)

var (
	tooManyUploads = Refuse(http.StatusTooManyRequests, item.Busy,
		"the account, or the ticket or its client, has too many uploads under way, try again later")
	tooManyCalls = Refuse(http.StatusTooManyRequests, item.Busy, "the account has too many requests under way, try again later")
)

// BeginUpload counts the request as an upload of the caller until ended is called.
func (p *Permit) BeginUpload(w http.ResponseWriter) (ended func(), refused *Refusal) {
	return p.BeginPart(w, spareUploads)
}

// BeginPart is BeginUpload for one of many requests with the bytes of a file, of which a ticket may
// have spare ones beside one for each of its files.
func (p *Permit) BeginPart(w http.ResponseWriter, spare int) (ended func(), refused *Refusal) {
	ended, ok := p.Service.BeginUpload(p.Actor, p.Ticket, spare)
	if !ok {
		httpx.RetryAfter(w, time.Second)
		return nil, tooManyUploads
	}
	return p.Repetition.untilSent(ended), nil
}

// EnterQueue waits until the request may hold n bytes for its form or its answer, as
// [service.Service.Enter]. leave must be called when the answer is written. Writes fail after
// [maxHeld]; those of a set only after [Gate.BoundAnswer], as HTTP/2 aborts a request whose
// deadline passes.
func (p *Permit) EnterQueue(
	ctx context.Context, w http.ResponseWriter, call service.Call, n int64,
) (leave func(), refused *Refusal) {
	left, ok := p.Service.Enter(ctx, p.Actor, call, n)
	if !ok {
		httpx.RetryAfter(w, httpx.BusyRetry)
		return nil, tooManyCalls
	}
	if call != service.DeletedSet {
		p.gate.BoundAnswer(w)
	}
	return p.Repetition.untilSent(func() {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		left()
	}), nil
}
