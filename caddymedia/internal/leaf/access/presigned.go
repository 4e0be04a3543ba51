package access

import (
	"context"
	"encoding/json"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// refusedKey is the key of the refused items of a presigned address. It is in no index: the end of
// the tokens of an account does not begin the count anew.
func refusedKey(id ID) string { return "refused/" + tokenCoding.EncodeToString(id[:]) }

// PresignedTicket returns the ticket that an address is which its account has signed itself, by its
// signature: for one file at a time, until expires. The store knows only how many of its items were
// refused, so [Issuer.Take] and [Issuer.VerifyTicket] do not find it.
func PresignedTicket(signature string, expires time.Time) *Ticket {
	return &Ticket{ID: IDOf(signature), MaxFiles: 1, Expires: expires, presigned: true}
}

// LoadPresigned loads what was refused of a presigned address. The error is ErrUnavailable.
func (i *Issuer) LoadPresigned(ctx context.Context, ticket *Ticket) error {
	if _, err := i.load(ctx, refusedKey(ticket.ID), &ticket.Refused); err != nil {
		return unavailable("loading the refused items of an address", err)
	}
	return nil
}

// IsPresigned reports whether the ticket is a presigned address.
func (t *Ticket) IsPresigned() bool { return t.presigned }

// refusePresigned is [Issuer.Refuse] for the ticket of a presigned address.
func (i *Issuer) refusePresigned(ctx context.Context, ticket *Ticket, n int) error {
	return i.store.Update(ctx, refusedKey(ticket.ID), "", func(old tokens.Entry) (tokens.Entry, error) {
		refused := 0
		if old.Value != nil {
			if err := json.Unmarshal(old.Value, &refused); err != nil {
				return old, err
			}
		}
		return entryOf(refused+n, ticket.Expires)
	})
}
