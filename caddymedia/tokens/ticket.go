package tokens

import (
	"context"
	"encoding/hex"
	"errors"
	"time"
)

// MaxTicketFiles is the largest MaxFiles of a ticket.
const MaxTicketFiles = 10_000

// Ticket is a credential for a few uploads, derived from a token. It is of the same form as a
// token; only the store can tell them apart.
type Ticket struct {
	// ID is that of the ticket's text.
	ID ID `json:"-"`
	// Kind is "image" or "file".
	Kind string `json:"kind"`
	// Alias is the only one that the ticket is for.
	Alias string `json:"alias"`
	// SubFolder is the only sub folder; empty for any.
	SubFolder string `json:"sub_folder,omitempty"`
	// Filename is the name that stored names are derived from; empty for those of the requests.
	Filename string `json:"filename,omitempty"`
	// MaxFiles is how many items may be stored.
	MaxFiles int `json:"max_files"`
	// MaxSize is the largest item in bytes; 0 for the limit of the alias.
	MaxSize int64 `json:"max_size,omitempty"`
	// Expires is the first moment at which the ticket is no longer valid.
	Expires time.Time `json:"-"`
	// Used is how many items were stored or reserved when the ticket was loaded.
	Used int `json:"-"`
	// Refused is how many items had been refused then.
	Refused int `json:"-"`
}

// HexID returns the ID of the ticket in hexadecimal digits; empty for nil.
func (t *Ticket) HexID() string {
	if t == nil {
		return ""
	}
	return hex.EncodeToString(t.ID[:])
}

// maxRefused is how many items of a ticket may be refused, for each that may be stored.
const maxRefused = 10

// Left returns how many more items could be stored when the ticket was loaded.
func (t *Ticket) Left() int {
	if t.Refused >= maxRefused*t.MaxFiles {
		return 0
	}
	return max(0, t.MaxFiles-t.Used)
}

// IssueTicket returns a new ticket for an account, and its expiry, to the second. ID, Expires, Used
// and Refused of ticket are ignored.
//
// After that the caller must verify the token of the request again, and call [Issuer.Drop] if it is
// no longer valid. Otherwise the ticket could outlive a concurrent [Issuer.Revoke].
//
// The error is ErrCredentials if the account is not one of the Issuer, or was changed. It is a
// *ThrottledError if the account requests too many, and ErrUnavailable if the store failed.
func (i *Issuer) IssueTicket(ctx context.Context, account Account, ticket Ticket, lifetime time.Duration) (text string, expires time.Time, err error) {
	current, known := i.accounts[account.APIKey]
	if !known || !equal(current.fingerprint, account.Fingerprint()) {
		return "", time.Time{}, ErrCredentials
	}
	if err := i.throttle.ticket(current.APIKey, lifetime); err != nil {
		return "", time.Time{}, err
	}
	rec := Record{Account: current.APIKey, Fingerprint: ticketFingerprint(current), Ticket: &ticket}
	return i.save(ctx, rec, lifetime)
}

// ticketFingerprint returns the fingerprint of the tickets of an account. It differs from that of
// tokens, so that no version without tickets accepts a ticket of a shared store as a token.
func ticketFingerprint(account issuerAccount) string { return "ticket " + account.fingerprint }

// Drop removes a token or ticket. A missing one is no error.
func (i *Issuer) Drop(ctx context.Context, text string) error {
	if err := i.store.Delete(ctx, IDOf(text)); err != nil {
		return unavailable("removing a token", err)
	}
	return nil
}

// Take reserves n items of a ticket under the name use. The same use is not counted twice.
//
// The error is ErrUsedUp if fewer are left, ErrCredentials if the ticket has ended, and
// ErrUnavailable if the store failed. In the last case the items may be reserved.
func (i *Issuer) Take(ctx context.Context, ticket *Ticket, use string, n int) error {
	err := i.store.Take(ctx, ticket.ID, use, n, ticket.MaxFiles)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUsedUp):
		return ErrUsedUp
	case errors.Is(err, ErrUnknown):
		return ErrCredentials
	}
	return unavailable("counting the items of a ticket", err)
}

// GiveBack undoes [Issuer.Take]. A missing use or ticket is no error. The error is ErrUnavailable.
func (i *Issuer) GiveBack(ctx context.Context, ticket ID, use string) error {
	if err := i.store.GiveBack(ctx, ticket, use); err != nil {
		return unavailable("giving back the items of a ticket", err)
	}
	return nil
}

// Refuse counts n refused items of a ticket. After ten for each item that it may store, the ticket
// has none left. The error is ErrUnavailable.
func (i *Issuer) Refuse(ctx context.Context, ticket ID, n int) error {
	if err := i.store.Refuse(ctx, ticket, n); err != nil {
		return unavailable("counting the refused items of a ticket", err)
	}
	return nil
}
