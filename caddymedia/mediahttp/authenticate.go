package mediahttp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// authenticate returns the caller of a request with a token or, as Bearer only, a ticket, or of a user
// of another login. It is for uploads. Other requests of accounts use authenticateAccount.
func (h *Handler) authenticate(ctx context.Context, service *media.Service, w http.ResponseWriter, r *http.Request) (tokens.Caller, *refusal) {
	var caller tokens.Caller
	apiKey, token, bearer, err := credentials(r.Header)
	if errors.Is(err, errNone) {
		if account, refused := h.trusted(service, r); account.User != "" {
			return tokens.Caller{Account: account}, refused
		}
		if service.Trust() != nil {
			err = errNobody
		}
	}
	message := "the token is wrong or has expired"
	if apiKey != "" {
		message = "the token is wrong, has expired or belongs to another API key"
	}
	if err != nil {
		message = err.Error()
	} else {
		caller.Account, caller.Ticket, err = service.Issuer().Verify(ctx, token, apiKey)
	}
	switch {
	case err == nil && caller.Ticket != nil && !bearer:
		caller, message = tokens.Caller{}, "a ticket is sent as Authorization: Bearer <ticket> only"
	case err == nil:
		return caller, nil
	case errors.Is(err, tokens.ErrUnavailable):
		return caller, h.storeUnreachable(ctx, "tokens cannot be checked now, try again later", err)
	case errors.Is(err, tokens.ErrMalformed):
		message = "the token is not of the form of tokens here: send it exactly as it was received, without quotes or brackets"
	}
	w.Header().Set("WWW-Authenticate", "Bearer") // RFC 6750 section 3
	return caller, &refusal{http.StatusUnauthorized, aliases.Unauthorized, message}
}

// authenticateAccount returns the account of a request with a token, or of a user. A ticket is refused.
func (h *Handler) authenticateAccount(ctx context.Context, service *media.Service, w http.ResponseWriter, r *http.Request) (tokens.Account, *refusal) {
	caller, refused := h.authenticate(ctx, service, w, r)
	if refused == nil && caller.Ticket != nil {
		refused = &refusal{http.StatusForbidden, aliases.Forbidden, "a ticket is for uploads only: send a token"}
	}
	return caller.Account, refused
}

// rightRefusal returns the refusal of a request for which the account lacks a right, or nil.
func rightRefusal(account tokens.Account, right tokens.Right) *refusal {
	if account.May(right) {
		return nil
	}
	return &refusal{http.StatusForbidden, aliases.Forbidden, "the account may not " + string(right) + " items: it needs the right " + string(right)}
}

// storeUnreachable logs err, an error of the token store, and returns the refusal of its request. If
// the client has disconnected, the store has not failed.
func (h *Handler) storeUnreachable(ctx context.Context, message string, err error) *refusal {
	if ctx.Err() != nil {
		return &refusal{http.StatusBadRequest, aliases.BadRequest, "the request was aborted"}
	}
	h.options.Log.Error("token store unreachable", "error", err)
	return &refusal{http.StatusServiceUnavailable, aliases.Unavailable, message}
}

// ticketRefusal returns the refusal of an upload that the caller's ticket is not for, or nil.
func ticketRefusal(caller tokens.Caller, kind aliases.Kind) *refusal {
	switch {
	case !caller.AllowsKind(kind.Name()):
		return &refusal{http.StatusForbidden, aliases.Forbidden, "the ticket is for another kind: use /api/upload/" + caller.Ticket.Kind}
	case caller.UsedUp():
		return usedUp
	}
	return nil
}

var usedUp = &refusal{http.StatusForbidden, aliases.Forbidden, resumable.Uncounted(tokens.ErrUsedUp).Message}

// charge counts the items of a form that are about to be committed on a ticket, if it has one. The
// caller must call settle unless it is nil, and the service must stay open until then. The items of a
// request with a key count once, however often it is repeated with the same bytes.
func (u *uploadRequest) charge(ctx context.Context, service *media.Service, ticket *tokens.Ticket, c upload.Commitment) (settle func(stored bool), refused *refusal) {
	if ticket == nil {
		return nil, nil
	}
	use, rep := rand.Text(), repetitionOf(ctx)
	if rep != nil {
		digest, err := c.Digest()
		if err != nil {
			return nil, &refusal{http.StatusInternalServerError, aliases.Internal, "internal error"}
		}
		use = rep.id + " " + digest
	}
	charged, err := service.Charge(ctx, ticket, use, c.Items, rep.isRepeated())
	switch {
	case err == nil && rep.isRepeated():
		return nil, nil // the items of an earlier attempt may be stored
	case err == nil && rep != nil:
		return func(stored bool) { charged(stored || rep.isLost()) }, nil // or those of a later one
	case err == nil:
		return charged, nil
	}
	failure := resumable.Uncounted(err)
	if failure.Reason == aliases.Unavailable {
		return nil, u.storeUnreachable(ctx, failure.Message, err)
	}
	return nil, &refusal{http.StatusForbidden, failure.Reason, failure.Message}
}
