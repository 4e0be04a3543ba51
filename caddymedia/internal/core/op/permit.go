// Package op is the gate of items: what can be done with them, and for whom. Each operation has a
// [Permit], and returns what has happened or an error, which [item.OperationFailure] explains. Its
// aliases are those of [Permit.Alias]. It knows no protocol: packages of the storey above read
// requests, make the permit and write the answers. What happens to bytes and names is in package
// upload. Begin with [Permit.Again].
package op

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Permit is the authenticated caller of a request: an account, or a ticket, a user or a presigned
// address with a part of its rights.
type Permit struct {
	access.Caller
	// Refused says why the caller, or its request, is refused; nil if it is not. Then no operation
	// does anything.
	Refused *item.Failure
	// Actor is the caller as it is recorded, and as it shares what is bounded.
	Actor item.Actor
	// Service answers the request.
	Service *service.Service
	// Attempt is that at a request which may be repeated; nil for any other.
	Attempt *Attempt
	// Authenticate authenticates the caller again.
	Authenticate Authenticator
	// Next returns the service that by now answers new requests. It stays open until release is
	// called.
	Next func() (running *service.Service, release func())
	// Log receives details that are not for callers.
	Log *slog.Logger
}

// Authenticator returns the caller of a request, according to a service.
type Authenticator func(ctx context.Context, running *service.Service) (access.Caller, *item.Failure)

// The failures of a caller that has lost a right since its request began.
var (
	ErrOtherAlias  = item.Failf(item.Forbidden, "the account may not use the alias any more")
	ErrOtherFolder = item.Failf(item.Forbidden, "the user has another folder by now")
)

// Need returns the failure of an account without a right; nil if it has it.
func Need(account access.Account, right access.Right) *item.Failure {
	if account.May(right) {
		return nil
	}
	return item.Failf(item.Forbidden, "the account may not %s items: it needs the right %[1]s", right)
}

// NeedOne returns the failure of a caller that is refused, or whose account has none of several
// rights; nil if it has one, or if there are none.
func (p *Permit) NeedOne(rights ...access.Right) *item.Failure {
	if p.Refused != nil || len(rights) == 0 || slices.ContainsFunc(rights, p.Account.May) {
		return p.Refused
	}
	return Need(p.Account, rights[0])
}

// needAll returns the failure of a caller that is refused, or whose account lacks one of the
// rights.
func (p *Permit) needAll(rights []access.Right) *item.Failure {
	for _, right := range rights {
		if failure := p.NeedOne(right); failure != nil {
			return failure
		}
	}
	return nil
}

// Alias returns an alias that the account may use.
func (p *Permit) Alias(kind item.Kind, name string) (*item.Alias, *item.Failure) {
	if !p.Account.Allows(name) { // it must not learn which aliases exist
		return nil, notAllowed(name)
	}
	alias, known := p.Service.Alias(kind, name)
	if !known {
		return nil, item.Failf(item.Missing, "unknown alias %.64q", name)
	}
	return alias, nil
}

// notAllowed is the failure of an account that may not use an alias.
func notAllowed(name string) *item.Failure {
	return item.Failf(item.Forbidden, "the account may not use the alias %.64q", name)
}

// Again authenticates the caller again, with the service that by then answers new requests: a
// request may outlast its token, its account and its configuration. The caller needs the alias of
// the item, its folder, and those of the rights that it had; one of them at least. Its account also
// needs other aliases, for which there may be no ticket. The service stays open until release is
// called.
func (p *Permit) Again(
	ctx context.Context, kind item.Kind, rights []access.Right, alias string, others ...string,
) (now access.Caller, running *service.Service, release func(), failure *item.Failure) {
	running, release = p.Next()
	if now, failure = p.Authenticate(ctx, running); failure == nil {
		failure = p.Refused
	}
	switch {
	case failure != nil:
	case !now.Allows(kind.Name(), alias), slices.ContainsFunc(others, func(other string) bool { return !now.Account.Allows(other) }):
		failure = ErrOtherAlias
	case now.Account.Folder != p.Account.Folder:
		failure = ErrOtherFolder
	case len(rights) > 0 && !slices.ContainsFunc(rights, now.Account.May):
		failure = Need(now.Account, rights[0])
	default:
		for _, right := range rights {
			if p.Account.May(right) && !now.Account.May(right) { // what it permits was decided before
				failure = Need(now.Account, right)
			}
		}
	}
	if failure != nil {
		release()
	}
	return now, running, release, failure
}

// CheckAgain is Again for a change that needs no service of its own.
func (p *Permit) CheckAgain(
	ctx context.Context, kind item.Kind, rights []access.Right, alias string, others ...string,
) (now access.Caller, failure *item.Failure) {
	now, _, release, failure := p.Again(ctx, kind, rights, alias, others...)
	if failure == nil {
		release()
	}
	return now, failure
}

// Request returns the request to store an item in an alias, whose account needs one of the rights
// also right before the commit, for the other aliases too.
func (p *Permit) Request(kind item.Kind, alias, baseURL string, rights []access.Right, others ...string) upload.Request {
	request := upload.Request{
		Kind: kind, Alias: alias, BaseURL: baseURL, Actor: p.Actor,
		Allows:  func(alias string) bool { return p.Allows(kind.Name(), alias) },
		Forced:  service.ForcedBy(p.Caller),
		Confirm: p.confirm(kind, rights, others),
	}
	if a := p.Attempt; a != nil {
		request.Repetition = &upload.Repetition{ID: a.ID, Began: a.Began, Again: a.Attempt.IsRepeated}
	}
	return request
}

// confirm returns the [upload.Request.Confirm] of a request to store an item: the caller needs the
// rights, the alias of the item and the others. The items of a ticket are counted until settle is
// called.
func (p *Permit) confirm(kind item.Kind, rights []access.Right, others []string) upload.Confirm {
	return func(ctx context.Context, c upload.Commitment) (settle func(upload.Outcome), failure *item.Failure) {
		now, running, release, failure := p.Again(ctx, kind, rights, c.Alias, others...)
		if failure != nil {
			return nil, failure
		}
		charged := func(bool) {}
		failure = p.Keep(ctx, c.Alias)
		if failure == nil && now.Ticket != nil && !now.Ticket.IsPresigned() {
			charged, failure = p.charge(ctx, running, now.Ticket, c)
		}
		if failure != nil {
			release()
			return nil, failure
		}
		return func(outcome upload.Outcome) {
			defer release()
			p.Attempt.settle(outcome)
			charged(outcome == upload.AllStored)
		}, nil
	}
}

// charge counts the items that are about to be committed on a ticket. The caller must call settle,
// and the service must stay open until then. The items of a request that may be repeated count
// once, however often it is repeated with the same bytes.
func (p *Permit) charge(
	ctx context.Context, running *service.Service, ticket *access.Ticket, c upload.Commitment,
) (settle func(stored bool), failure *item.Failure) {
	use, attempt := rand.Text(), p.Attempt
	if attempt != nil {
		digest, err := c.Digest()
		if err != nil {
			return nil, item.Failf(item.Internal, "internal error")
		}
		use = attempt.ID + " " + digest
	}
	charged, err := running.Charge(ctx, ticket, use, c.Items, attempt.IsRepeated())
	switch {
	case err == nil && attempt.IsRepeated():
		return func(bool) {}, nil // the items of an earlier attempt may be stored
	case err == nil:
		return func(stored bool) { charged(stored || attempt.IsLost()) }, nil // or those of a later one
	}
	failure = resumable.Uncounted(err)
	if failure.Reason == item.Unavailable {
		return nil, StoreUnreachable(ctx, p.Log, failure.Message, err)
	}
	return nil, failure
}

// Rights returns those with which the items of a resumable upload are stored in its alias, and in
// the sub folders that the caller named when it began the upload. It is called right before.
func (p *Permit) Rights(
	ctx context.Context, kind item.Kind, rights []access.Right, u *resumable.Upload,
) (resumable.Rights, *item.Failure) {
	now, running, release, failure := p.Again(ctx, kind, rights, u.Alias)
	isOutside := func(folder string) bool { return !now.Account.Covers(folder) }
	if failure == nil && slices.ContainsFunc(u.SubFolders(), isOutside) {
		release()
		failure = ErrOtherFolder
	}
	if failure != nil {
		return resumable.Rights{}, failure
	}
	granted := resumable.Rights{Issuer: running.Issuer(), Release: release}
	if now.Ticket != nil && !now.Ticket.IsPresigned() { // whose items are not counted
		granted.Ticket = now.Ticket
	}
	return granted, nil
}

// StoreUnreachable logs err, an error of the token store, and returns the failure of its request.
// If the caller is gone, the store has not failed.
func StoreUnreachable(ctx context.Context, log *slog.Logger, message string, err error) *item.Failure {
	if ctx.Err() != nil {
		return item.Failf(item.BadRequest, "the request was aborted")
	}
	log.Error("token store unreachable", "error", err)
	return &item.Failure{Reason: item.Unavailable, Message: message}
}
