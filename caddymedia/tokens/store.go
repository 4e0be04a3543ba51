// Package tokens gives accounts a token for their password and tells later whose token a request carries.
//
// An [Issuer] checks passwords and tokens. It keeps what must outlive it in a [Store] (package memory, bolt or
// redis), a [Throttle] and a [Gate]; the last two are meant to be shared by every Issuer of a process, so that a new
// configuration forgets no failed login.
//
// Nothing here knows Caddy. Whatever a store keeps is useless to who steals it: a token is stored as its SHA-256.
package tokens

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"
)

// What a Store answers besides success. Every error of a Store satisfies errors.Is with one of the two.
var (
	// ErrUnknown says that no token of that ID is stored, or that it has expired.
	ErrUnknown = errors.New("unknown token")
	// ErrUnavailable says that the store could not answer: not reachable, too slow, locked, damaged, full, closed,
	// or the context ended. It never means that a token is wrong.
	ErrUnavailable = errors.New("token store unavailable")
)

// ID is the SHA-256 of a token, which is all that a Store ever sees of it.
type ID [sha256.Size]byte

// IDOf returns the ID of a token.
func IDOf(token string) ID { return sha256.Sum256([]byte(token)) }

// Record is what a Store keeps for a token.
type Record struct {
	// Account is the API key that the token belongs to.
	Account string `json:"account"`
	// Fingerprint is the account's [Account.Fingerprint] at the time the token was made.
	Fingerprint string `json:"fingerprint"`
	// Expires is the first moment at which the token is no longer valid.
	Expires time.Time `json:"expires"`
}

// A Store keeps records until they expire. Several processes may share one.
//
// All methods must be safe for concurrent use, except that nothing may follow Close other than calls that fail with
// ErrUnavailable. A method whose context has ended before must fail; its error must satisfy errors.Is with both
// ErrUnavailable and the context's error. Errors may carry detail for the log, but must not carry a password. A store that was unreachable must work again, without a new one being made, when what it needs is
// back.
type Store interface {
	// Save stores rec under id until rec.Expires, replacing what was there. When it returns nil the record is as
	// durable as the store promises. A record that has expired already must not be found afterwards; Save is then
	// no error. Save may remove other records that have expired.
	Save(ctx context.Context, id ID, rec Record) error
	// Load returns the record of id. A missing or expired one must be ErrUnknown. It must not change the expiry.
	Load(ctx context.Context, id ID) (Record, error)
	// Delete removes the record of id. A missing one is no error.
	Delete(ctx context.Context, id ID) error
	// DeleteAccount removes all records whose Account is exactly account, and those of no other, and tells how many
	// of them had not expired. An account without records is no error. Every record whose Save has returned before
	// DeleteAccount is called must be gone, for all processes and as durably as it was stored, when it returns nil;
	// one that is saved meanwhile may stay. Other calls may go on at the same time, and must not be kept waiting for
	// long. It takes as long as there are records to look at, so it must end early when the context does. With an
	// error the number is zero, and any of the records may be gone: it can be called again.
	DeleteAccount(ctx context.Context, account string) (int, error)
	// Check tells whether the store can be reached and takes writes.
	Check(ctx context.Context) error
	// Close releases everything. Later calls must fail with ErrUnavailable; a second Close must be no error.
	Close() error
}

// A StoreModule is the configuration of a store, as the application sees it.
type StoreModule interface {
	// PoolKey identifies the store that the settings mean: equal keys may share one open Store, also across
	// reloads. It must not reveal a secret.
	PoolKey() string
	// NewStore makes the store without using the network or locking a file: it connects at its first use.
	NewStore(*slog.Logger) (Store, error)
}
