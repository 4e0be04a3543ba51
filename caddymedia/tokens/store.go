// Package tokens issues tokens to accounts for their passwords and tickets for tokens, and verifies
// those of requests.
//
// An [Issuer] checks passwords and tokens. Its persistent state is in a [Store] (package memory,
// bolt or redis), a [Throttle] and a [HashLimiter]. All Issuers of a process should share the last
// two, so that a new configuration forgets no failed login.
//
// The package does not know Caddy. A stolen store has no usable token: each is stored as its
// SHA-256.
//
// The contract of a Store, with package tokentest, and [Comparer] are stable.
package tokens

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"
)

// The errors of a Store. Each error satisfies errors.Is with one of them, or with one of
// [Store.BeginRequest].
var (
	// ErrUnknown means that no token of that ID is stored, or that it has expired.
	ErrUnknown = errors.New("unknown token")
	// ErrUsedUp means that a ticket has fewer items left than requested.
	ErrUsedUp = errors.New("ticket used up")
	// ErrUnavailable means that the store could not answer: unreachable, too slow, locked, damaged,
	// full, closed, or the context ended. It never means that a token is wrong.
	ErrUnavailable = errors.New("token store unavailable")
)

// ID is the SHA-256 of a token or ticket; a Store never sees the credential itself.
type ID [sha256.Size]byte

// IDOf returns the ID of a token or ticket.
func IDOf(token string) ID { return sha256.Sum256([]byte(token)) }

// Record is the stored data of a token or ticket.
type Record struct {
	// Account is the API key that the token or ticket belongs to.
	Account string `json:"account"`
	// Fingerprint is derived from the account's [Account.Fingerprint] at the time of issue.
	Fingerprint string `json:"fingerprint"`
	// Expires is the first moment at which the token or ticket is no longer valid.
	Expires time.Time `json:"expires"`
	// Ticket is what a ticket allows; nil for a token. Its ID, Expires and Used are not stored.
	Ticket *Ticket `json:"ticket,omitempty"`
	// Used is the number of items that Take has reserved, and Refused how often Refuse was called.
	// Load sets them for a ticket, Save ignores them.
	Used    int `json:"-"`
	Refused int `json:"-"`
}

// A Store keeps records, the uses of tickets and repeatable requests until they expire, and secrets of
// the service for ever. Several processes may share one.
//
// All methods must be safe for concurrent use, except that calls after Close must fail with
// ErrUnavailable. A method whose context has ended before must fail. Its error must satisfy
// errors.Is with both ErrUnavailable and the context's error. Errors may carry detail for the log,
// but must not carry a password. A store that was unreachable must recover by itself.
type Store interface {
	// Save stores rec under id until rec.Expires, replacing any earlier record and its uses. When it
	// returns nil the record is as durable as the store promises. An expired record must not be
	// found afterwards; saving it is no error. Save may remove other expired records.
	Save(ctx context.Context, id ID, rec Record) error
	// Load returns the record of id. A missing or expired one must be ErrUnknown. It must not
	// change the expiry.
	Load(ctx context.Context, id ID) (Record, error)
	// Delete removes the record of id. A missing one is no error.
	Delete(ctx context.Context, id ID) error
	// DeleteAccount removes all records whose Account is exactly account, and no others. It returns
	// how many of them had not expired. An account without records is no error.
	//
	// When it returns nil, every record whose Save returned before the call must be gone, for all
	// processes and as durably as it was stored. One that is saved meanwhile may stay. Concurrent
	// calls must not be blocked for long. The duration depends on the number of records, so it must
	// end early when the context does. With an error the number is zero, any of the records may be
	// gone, and it can be called again.
	DeleteAccount(ctx context.Context, account string) (int, error)
	// Take reserves n items of the ticket of id under the name use, if not more than limit are
	// reserved in all. It must be atomic for all processes, and as durable as the record. A use that
	// is already reserved must not count again. Uses must be removed with their record.
	//
	// The error must be ErrUsedUp if fewer than n items are left, and ErrUnknown if no ticket of id
	// is stored or it has expired. With any other error the items may be reserved.
	Take(ctx context.Context, id ID, use string, n, limit int) error
	// GiveBack undoes Take. A missing use or ticket is no error.
	GiveBack(ctx context.Context, id ID, use string) error
	// Refuse counts n refused items of the ticket of id. It must be atomic for all processes. A
	// missing or expired ticket is no error.
	Refuse(ctx context.Context, id ID, n int) error
	// Secret returns the secret of a name. If there is none, it stores fresh under that name and
	// returns it. It must be atomic for all processes, so that all of them get the same secret, and
	// as durable as a record. A secret must not expire, and DeleteAccount must not remove it.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
	// BeginRequest begins an attempt at the request of r.ID, and leases it to r.Holder: for the
	// duration lease, and at most until the store is closed or its process ends, no other attempt
	// begins. It returns what earlier attempts have left; if that has an answer, there is no lease. It
	// must be atomic for all processes, and need not store anything but the lease.
	//
	// The error must be ErrOtherRequest if an attempt that runs, or that has left something, has
	// another Fingerprint, otherwise ErrRunning if another one has the lease. With any other error
	// r.Holder may have the lease.
	BeginRequest(ctx context.Context, r Request, lease time.Duration) (RequestState, error)
	// ExtendRequest extends the lease of r.Holder. Here and in the methods below, the error must be
	// ErrUnknown if it has no lease, or if what it has claimed was forgotten.
	ExtendRequest(ctx context.Context, r Request, lease time.Duration) error
	// ClaimRequest stores a claim of a name that has none, as durably as a record.
	//
	// Claims and answers must be forgotten [RequestLifetime] after the first claim, and by
	// DeleteAccount. If the account has more than r.Most requests, or r.MostBytes bytes of claims
	// and answers, others must be forgotten: the oldest of r.Owner, then the oldest.
	ClaimRequest(ctx context.Context, r Request, name string, value []byte) error
	// EndRequest ends the lease of r.Holder. An answer that is not nil is stored, as durably as a
	// record, and the claims are removed. Otherwise they stay for the next attempt.
	EndRequest(ctx context.Context, r Request, answer []byte) error
	// ForgetRequest forgets the request, and so ends the lease of r.Holder.
	ForgetRequest(ctx context.Context, r Request) error
	// Check checks that the store is reachable and accepts writes.
	Check(ctx context.Context) error
	// Close releases all resources. Later calls must fail with ErrUnavailable; a second Close must
	// be no error.
	Close() error
}

// StoreConfig is the configuration of a store: a pointer to a struct of options. No method uses the
// network or locks a file.
type StoreConfig interface {
	// Complete checks the options, sets the defaults and reads the files that the options name.
	// folder is the one for files of a store that has no other. A second call is no error.
	Complete(folder string) error
	// NewStore returns the store, which connects at its first use. The configuration must be
	// complete.
	NewStore(log *slog.Logger) (Store, error)
}
