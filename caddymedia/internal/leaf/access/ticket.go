package access

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
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
	// Hold is how long its uploads are held; 0 if their items are stored at once.
	Hold time.Duration `json:"hold,omitempty"`
	// Expires is the first moment at which the ticket is no longer valid.
	Expires time.Time `json:"-"`
	// Uses are how many items were stored or reserved when the ticket was loaded, by the hashes of
	// their uses.
	Uses map[string]int `json:"uses,omitempty"`
	// Refused is how many items had been refused then.
	Refused int `json:"refused,omitempty"`

	presigned bool // see [PresignedTicket]
}

// HexID returns the ID of the ticket in hexadecimal digits.
func (t *Ticket) HexID() string { return hex.EncodeToString(t.ID[:]) }

// maxRefused is how many items of a ticket may be refused, for each that may be stored.
const maxRefused = 10

// Left returns how many more items could be stored when the ticket was loaded.
func (t *Ticket) Left() int {
	if t.Refused >= maxRefused*t.MaxFiles {
		return 0
	}
	return max(0, t.MaxFiles-t.Used())
}

// MaxUnfinished returns how many unfinished uploads of the ticket there may be: as many as it has
// files left. Held uploads are unfinished, but are counted as files already.
func (t *Ticket) MaxUnfinished() int {
	if t.Hold > 0 {
		return t.MaxFiles
	}
	return t.Left()
}

// Used returns how many items were stored or reserved when the ticket was loaded.
func (t *Ticket) Used() (used int) {
	for _, n := range t.Uses {
		used += n
	}
	return used
}

// IssueTicket returns a new ticket for an account, and its expiry, to the second. ID, Expires, Uses
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
	ticket.Uses, ticket.Refused = nil, 0
	return i.save(ctx, record{Account: current.APIKey, Fingerprint: current.fingerprint, Ticket: &ticket}, lifetime)
}

// Drop removes a token or ticket. A missing one is no error.
func (i *Issuer) Drop(ctx context.Context, text string) error {
	err := i.store.Update(ctx, tokenKey(IDOf(text)), "", func(tokens.Entry) (tokens.Entry, error) { return tokens.Entry{}, nil })
	if err != nil {
		return unavailable("removing a token", err)
	}
	return nil
}

// changeTicket changes a ticket. The error is ErrCredentials if it has ended, or that of change.
func (i *Issuer) changeTicket(ctx context.Context, id ID, change func(*Ticket) error) error {
	return i.store.Update(ctx, tokenKey(id), "", func(old tokens.Entry) (tokens.Entry, error) {
		if old.Value == nil {
			return old, ErrCredentials
		}
		var rec record
		if err := json.Unmarshal(old.Value, &rec); err != nil {
			return old, err
		}
		if rec.Ticket == nil {
			return old, ErrCredentials
		}
		if err := change(rec.Ticket); err != nil {
			return old, err
		}
		return entryOf(rec, rec.Expires)
	})
}

// ErrUsedUp means that a ticket has fewer items left than requested.
var ErrUsedUp = errors.New("ticket used up")

// Take reserves n items of a ticket under the name use. The same use is not counted twice.
//
// The error is ErrUsedUp if fewer are left, ErrCredentials if the ticket has ended, and
// ErrUnavailable if the store failed. In the last case the items may be reserved.
func (i *Issuer) Take(ctx context.Context, ticket *Ticket, use string, n int) error {
	err := i.changeTicket(ctx, ticket.ID, func(t *Ticket) error {
		name := shortHash(use)
		if _, again := t.Uses[name]; again {
			return nil
		}
		if t.Used()+n > t.MaxFiles {
			return ErrUsedUp
		}
		if t.Uses == nil {
			t.Uses = map[string]int{}
		}
		t.Uses[name] = n
		return nil
	})
	if err == nil || errors.Is(err, ErrUsedUp) || errors.Is(err, ErrCredentials) {
		return err
	}
	return unavailable("counting the items of a ticket", err)
}

// shortHash returns the name of a use in a ticket, which may have 10,000 of them.
func shortHash(use string) string { return hashed(use)[:12] }

// GiveBack undoes [Issuer.Take]. A missing use or ticket is no error. The error is ErrUnavailable.
func (i *Issuer) GiveBack(ctx context.Context, ticket ID, use string) error {
	err := i.changeTicket(ctx, ticket, func(t *Ticket) error {
		delete(t.Uses, shortHash(use))
		return nil
	})
	if err != nil && !errors.Is(err, ErrCredentials) {
		return unavailable("giving back the items of a ticket", err)
	}
	return nil
}

// Refuse counts n refused items of a ticket. After ten for each item that it may store, the ticket
// has none left. The error is ErrUnavailable.
func (i *Issuer) Refuse(ctx context.Context, ticket *Ticket, n int) error {
	var err error
	if ticket.presigned {
		err = i.refusePresigned(ctx, ticket, n)
	} else {
		err = i.changeTicket(ctx, ticket.ID, func(t *Ticket) error {
			t.Refused += n
			return nil
		})
	}
	if err != nil && !errors.Is(err, ErrCredentials) {
		return unavailable("counting the refused items of a ticket", err)
	}
	return nil
}
