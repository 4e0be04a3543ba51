package caller

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Permit is the authenticated caller of a request: an account, or a ticket, a user or a presigned
// address with a part of its rights. An endpoint calls [Permit.Again] right before something
// changes.
type Permit struct {
	access.Caller
	// Actor is the caller as it is recorded, and as it shares what is bounded.
	Actor item.Actor
	// Service answers the request.
	Service *service.Service
	// Refused says why the caller, or its Idempotency-Key, is refused; nil if it is not.
	Refused *Refusal
	// Repetition is that of the request; nil without an Idempotency-Key.
	Repetition *Repetition

	gate         *Gate
	authenticate Authenticator
}

// Permit returns the permit of a request from an origin, which it authenticates.
func (g *Gate) Permit(running *service.Service, r *http.Request, origin item.Origin, authenticate Authenticator) *Permit {
	p := &Permit{gate: g, Service: running, authenticate: authenticate}
	p.Caller, p.Refused = authenticate(r.Context(), running)
	account := p.Account
	p.Actor = item.Actor{Origin: origin, Account: account.APIKey, User: account.User, Client: g.Client(r), Ticket: p.TicketID()}
	return p
}

// Nobody returns the permit of a request that is refused before its caller is authenticated. It
// only names the client.
func (g *Gate) Nobody(running *service.Service, r *http.Request, origin item.Origin) *Permit {
	return &Permit{gate: g, Service: running, Actor: item.Actor{Origin: origin, Client: g.Client(r)}}
}

// Again authenticates the caller again, with the service that by then answers new requests: a
// request may outlast its token, its account and its configuration. The caller needs the aliases,
// its folder, and those of the rights that it had; one of them at least. The service stays open
// until release is called.
func (p *Permit) Again(
	ctx context.Context, kind item.Kind, rights []access.Right, aliases ...string,
) (now access.Caller, running *service.Service, release func(), refused *Refusal) {
	running, release = p.gate.Next()
	now, refused = p.authenticate(ctx, running)
	switch {
	case refused != nil:
	case slices.ContainsFunc(aliases, func(alias string) bool { return !now.Allows(kind.Name(), alias) }):
		refused = OtherAlias
	case now.Account.Folder != p.Account.Folder:
		refused = OtherFolder
	case len(rights) > 0 && !slices.ContainsFunc(rights, now.Account.May):
		refused = RightRefusal(now.Account, rights[0])
	default:
		for _, right := range rights {
			if p.Account.May(right) && !now.Account.May(right) { // what it permits was decided before
				refused = RightRefusal(now.Account, right)
			}
		}
	}
	if refused != nil {
		release()
	}
	return now, running, release, refused
}

// CheckAgain is Again for a change that needs no service of its own.
func (p *Permit) CheckAgain(
	ctx context.Context, kind item.Kind, rights []access.Right, aliases ...string,
) (now access.Caller, refused *Refusal) {
	now, _, release, refused := p.Again(ctx, kind, rights, aliases...)
	if refused == nil {
		release()
	}
	return now, refused
}

// Confirm returns the [upload.Request.Confirm] of a request to store an item: the caller needs the
// rights and the aliases, and that of the item. The items of a ticket are counted until settle is
// called.
func (p *Permit) Confirm(kind item.Kind, rights []access.Right, aliases ...string) upload.Confirm {
	return func(ctx context.Context, c upload.Commitment) (settle func(upload.Outcome), failure *item.Failure) {
		now, running, release, refused := p.Again(ctx, kind, rights, append(slices.Clip(aliases), c.Alias)...)
		if refused != nil {
			return nil, refused.Failure()
		}
		charged := func(bool) {}
		refused = p.Repetition.Keep(ctx, c.Alias)
		if refused == nil && now.Ticket != nil && !now.Ticket.IsPresigned() {
			charged, refused = p.charge(ctx, running, now.Ticket, c)
		}
		if refused != nil {
			release()
			return nil, refused.Failure()
		}
		return func(outcome upload.Outcome) {
			defer release()
			p.Repetition.Settle(outcome)
			charged(outcome == upload.AllStored)
		}, nil
	}
}

// charge counts the items that are about to be committed on a ticket. The caller must call settle,
// and the service must stay open until then. The items of a request with a key count once, however
// often it is repeated with the same bytes.
func (p *Permit) charge(
	ctx context.Context, running *service.Service, ticket *access.Ticket, c upload.Commitment,
) (settle func(stored bool), refused *Refusal) {
	use, rep := rand.Text(), p.Repetition
	if rep != nil {
		digest, err := c.Digest()
		if err != nil {
			return nil, Refuse(http.StatusInternalServerError, item.Internal, "internal error")
		}
		use = rep.ID() + " " + digest
	}
	charged, err := running.Charge(ctx, ticket, use, c.Items, rep.IsRepeated())
	switch {
	case err == nil && rep.IsRepeated():
		return func(bool) {}, nil // the items of an earlier attempt may be stored
	case err == nil:
		return func(stored bool) { charged(stored || rep.IsLost()) }, nil // or those of a later one
	}
	failure := resumable.Uncounted(err)
	if failure.Reason == item.Unavailable {
		return nil, p.gate.StoreUnreachable(ctx, failure.Message, err)
	}
	return nil, Refuse(http.StatusForbidden, failure.Reason, failure.Message)
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
