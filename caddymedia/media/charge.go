package media

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/resumable"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// giveBackTime bounds giving items back to a ticket. It does not end with the request.
const giveBackTime = 10 * time.Second

// Charge counts items that are about to be stored on a ticket. The caller must call settle, and the
// service must stay open until then. The errors are those of [tokens.Issuer.Take].
func (s *Service) Charge(ctx context.Context, ticket *tokens.Ticket, items int) (settle func(stored bool), err error) {
	use := rand.Text()
	if err := s.issuer.Take(ctx, ticket, use, items); err != nil {
		if errors.Is(err, tokens.ErrUnavailable) { // they may be counted
			s.giveBack(ctx, ticket.ID, use)
		}
		return nil, err
	}
	return s.settle(ctx, ticket, use), nil
}

// ChargeUpload is Charge for the item of a resumable upload, which counts once, on the ticket that
// created it or, if that has ended or is used up, on the caller's. A caller with
// a token has none, and may finish an upload that is not counted. Without a charge settle is nil.
func (s *Service) ChargeUpload(ctx context.Context, u *resumable.Upload, caller *tokens.Ticket) (settle func(stored bool), err error) {
	if u.Claimed() {
		return nil, nil // it was confirmed before
	}
	if caller == nil || caller.ID != ticketID(u) {
		creator, err := s.creator(ctx, u)
		if err != nil {
			return nil, err
		}
		if creator != nil {
			err := s.issuer.Take(ctx, creator, u.ID, 1)
			if err == nil || errors.Is(err, tokens.ErrUnavailable) {
				return s.settle(ctx, creator, u.ID), err
			}
		}
	}
	if caller == nil {
		return nil, nil
	}
	return s.settle(ctx, caller, u.ID), s.issuer.Take(ctx, caller, u.ID, 1)
}

// settle returns a function that gives items back to a ticket if they are not stored.
func (s *Service) settle(ctx context.Context, ticket *tokens.Ticket, use string) func(stored bool) {
	return func(stored bool) {
		if !stored {
			s.giveBack(ctx, ticket.ID, use)
		}
	}
}

// creator returns the ticket that created an upload; nil if there is none or it has ended.
func (s *Service) creator(ctx context.Context, u *resumable.Upload) (*tokens.Ticket, error) {
	if u.Ticket == "" {
		return nil, nil //nolint:nilnil // none
	}
	_, ticket, err := s.issuer.VerifyTicket(ctx, ticketID(u))
	if errors.Is(err, tokens.ErrCredentials) {
		return nil, nil //nolint:nilnil // it has ended
	}
	return ticket, err
}

// ticketID returns the ID of the ticket that created an upload; zero for a token.
func ticketID(u *resumable.Upload) (id tokens.ID) {
	raw, _ := hex.DecodeString(u.Ticket)
	copy(id[:], raw)
	return id
}

// CountRefusal counts the item of a resumable upload on a ticket, if it was refused for good.
func (s *Service) CountRefusal(ctx context.Context, ticket *tokens.Ticket, failures aliases.Failures) {
	if ticket == nil || !isFinal(failures) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	if err := s.issuer.Refuse(ctx, ticket.ID); err != nil {
		s.log.Error("counting a refused item of a ticket", "error", err)
	}
}

// giveBack undoes [Service.Charge].
func (s *Service) giveBack(ctx context.Context, ticket tokens.ID, use string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	if err := s.issuer.GiveBack(ctx, ticket, use); err != nil {
		s.log.Error("giving items back to a ticket", "error", err)
	}
}
