package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

const (
	defaultLifetime = 24 * time.Hour
	tokenBytes      = 32
)

// ErrCredentials means that the account is unknown, or that its password or token is wrong. It does
// not reveal which.
var ErrCredentials = errors.New("wrong credentials")

// ErrMalformed means that a text is not of the form that all tokens and tickets have. It is an
// ErrCredentials.
var ErrMalformed = fmt.Errorf("%w: no token", ErrCredentials)

// ID is the SHA-256 of a token or ticket; a Store never sees the credential itself.
type ID [sha256.Size]byte

// IDOf returns the ID of a token or ticket.
func IDOf(token string) ID { return sha256.Sum256([]byte(token)) }

// tokenCoding is strict, so that a token has only one spelling.
var tokenCoding = base64.RawURLEncoding.Strict()

// IssuerOptions are the parts of an Issuer. Store and Comparer are required.
type IssuerOptions struct {
	// Store keeps the tokens. The Issuer does not close it.
	Store tokens.Store
	// Accounts are the accounts that may log in.
	Accounts []Account
	// Comparer checks a password against an account's hash of any algorithm.
	Comparer tokens.Comparer
	// FakeHash is compared with passwords if there are no accounts. Without it such logins fail at
	// once.
	FakeHash []byte
	// Lifetime is how long a token is valid. Default: 24h.
	Lifetime time.Duration
	// Throttle limits failed logins and tickets. Default: a new one with the default limits.
	Throttle *Throttle
	// Hashing bounds the hashing of passwords. Default: a new one with the default limits.
	Hashing *HashLimiter
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Rand is the source of tokens. Default: crypto/rand.
	Rand io.Reader
}

// An Issuer issues tokens to the accounts of one configuration and verifies them. It is safe for
// concurrent use.
type Issuer struct {
	store    tokens.Store
	accounts map[string]issuerAccount
	logins   *Passwords
	throttle *Throttle
	lifetime time.Duration
	now      func() time.Time
	rand     io.Reader
	kept     blocks
}

type issuerAccount struct {
	Account
	fingerprint string
}

// NewIssuer returns an Issuer. It uses neither the store nor the network.
func NewIssuer(opts IssuerOptions) (*Issuer, error) {
	if opts.Store == nil || opts.Comparer == nil {
		return nil, errors.New("an issuer needs a store and a comparer")
	}
	i := &Issuer{
		store:    opts.Store,
		accounts: make(map[string]issuerAccount, len(opts.Accounts)),
		lifetime: cmp.Or(max(opts.Lifetime, 0), defaultLifetime),
		now:      clockOr(opts.Now),
		rand:     opts.Rand,
	}
	if opts.Throttle == nil {
		opts.Throttle = NewThrottle(ThrottleOptions{Now: opts.Now})
	}
	i.throttle = opts.Throttle
	if i.rand == nil {
		i.rand = rand.Reader
	}
	hashes := make(map[string]string, len(opts.Accounts))
	for _, a := range opts.Accounts {
		if err := i.add(a); err != nil {
			return nil, err
		}
		if !a.Trusted {
			hashes[a.APIKey] = a.PasswordHash
		}
	}
	i.logins = NewPasswords(PasswordsOptions{
		Hashes: hashes, Comparer: opts.Comparer, FakeHash: opts.FakeHash, Throttle: opts.Throttle, Hashing: opts.Hashing,
	})
	return i, nil
}

func (i *Issuer) add(a Account) error {
	switch _, twice := i.accounts[a.APIKey]; {
	case a.APIKey == "":
		return errors.New("an account without an API key")
	case len(a.APIKey) > maxSecret:
		return fmt.Errorf("an API key of more than %d bytes", maxSecret)
	case a.Trusted != (a.PasswordHash == ""):
		return fmt.Errorf("account %q has no password hash, or is trusted and has one", a.APIKey)
	case twice:
		return fmt.Errorf("account %q is there twice", a.APIKey)
	}
	a.Aliases, a.Rights = slices.Clone(a.Aliases), slices.Clone(a.Rights)
	i.accounts[a.APIKey] = issuerAccount{a, a.Fingerprint()}
	return nil
}

// Issue returns a new token for the account of apiKey, and its expiry, to the second. client is the
// address that the server sees, never one claimed by the request.
//
// The error is ErrCredentials for a wrong key or password, a *ThrottledError after too many
// failures or with too many waiting logins, or ErrUnavailable if the store failed.
func (i *Issuer) Issue(ctx context.Context, apiKey, password string, client netip.Addr) (token string, expires time.Time, err error) {
	if err := i.logins.Check(ctx, apiKey, password, client); err != nil {
		return "", time.Time{}, err
	}
	account := i.accounts[apiKey]
	return i.save(ctx, record{Account: account.APIKey, Fingerprint: account.fingerprint}, i.lifetime)
}

// record is the stored data of a token or ticket.
type record struct {
	Account string `json:"account"`
	// Fingerprint is derived from the account's [Account.Fingerprint] at the time of issue.
	Fingerprint string    `json:"fingerprint"`
	Expires     time.Time `json:"expires"`
	Ticket      *Ticket   `json:"ticket,omitempty"` // nil for a token; without its ID and Expires
}

func tokenKey(id ID) string { return "token/" + tokenCoding.EncodeToString(id[:]) }

// tokensOf is the index of the tokens and tickets of an account.
func tokensOf(account string) string { return "tokens/" + hashed(account) }

// hashed returns a text for keys that has a fixed length.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// save stores rec with a lifetime under a new text, which it returns.
func (i *Issuer) save(ctx context.Context, rec record, lifetime time.Duration) (text string, expires time.Time, err error) {
	raw := make([]byte, tokenBytes)
	if _, err := io.ReadFull(i.rand, raw); err != nil {
		return "", time.Time{}, fmt.Errorf("making a token: %w", err)
	}
	text = tokenCoding.EncodeToString(raw)
	// Rounded up, so that the reported and the stored time are equal.
	rec.Expires = i.now().Add(lifetime + time.Second - 1).UTC().Truncate(time.Second)
	entry, err := entryOf(rec, rec.Expires)
	if err == nil {
		err = i.store.Update(ctx, tokenKey(IDOf(text)), tokensOf(rec.Account), func(tokens.Entry) (tokens.Entry, error) { return entry, nil })
	}
	if err != nil {
		return "", time.Time{}, unavailable("storing a token", err)
	}
	return text, rec.Expires, nil
}

// entryOf returns the entry with v as JSON.
func entryOf(v any, expires time.Time) (tokens.Entry, error) {
	value, err := json.Marshal(v)
	return tokens.Entry{Value: value, Expires: expires}, err
}

// load sets *v to the JSON of the entry of a key. It returns false for a missing one.
func (i *Issuer) load(ctx context.Context, key string, v any) (found bool, err error) {
	entry, err := i.store.Get(ctx, key)
	if err != nil || entry.Value == nil {
		return false, err
	}
	return true, json.Unmarshal(entry.Value, v)
}

// Verify returns the account of a token, or of a ticket, and then the ticket too. A non-empty
// apiKey must be that of the account. The caller must not change the account's Aliases and Rights.
// A ticket narrows them; see [Caller].
//
// The error is ErrCredentials if text is malformed (then it is ErrMalformed too), unknown, expired,
// of another account, or of an account that was removed or changed. It is ErrUnavailable if the
// store failed.
func (i *Issuer) Verify(ctx context.Context, text, apiKey string) (Account, *Ticket, error) {
	raw, err := tokenCoding.DecodeString(text)
	if err != nil || len(raw) != tokenBytes || len(text) != tokenCoding.EncodedLen(tokenBytes) {
		return Account{}, nil, ErrMalformed
	}
	return i.verify(ctx, IDOf(text), apiKey)
}

// VerifyTicket is Verify for the ID of a ticket. It is for work that continues without its request.
// The error is ErrCredentials if there is no valid ticket, and ErrUnavailable if the store failed.
func (i *Issuer) VerifyTicket(ctx context.Context, id ID) (Account, *Ticket, error) {
	account, ticket, err := i.verify(ctx, id, "")
	if err == nil && ticket == nil {
		err = ErrCredentials
	}
	return account, ticket, err
}

func (i *Issuer) verify(ctx context.Context, id ID, apiKey string) (Account, *Ticket, error) {
	var rec record
	found, err := i.load(ctx, tokenKey(id), &rec)
	if err != nil {
		return Account{}, nil, unavailable("loading a token", err)
	}
	account, known := i.accounts[rec.Account]
	switch {
	case !found, !known,
		!i.now().Before(rec.Expires),
		!equal(rec.Fingerprint, account.fingerprint),
		apiKey != "" && !equal(rec.Account, apiKey):
		return Account{}, nil, ErrCredentials
	}
	if rec.Ticket != nil {
		rec.Ticket.ID, rec.Ticket.Expires = id, rec.Expires
	}
	return account.Account, rec.Ticket, nil
}

// Account returns the account of an API key, and false if there is none. The caller must not change
// its Aliases.
func (i *Issuer) Account(apiKey string) (account Account, ok bool) {
	known, ok := i.accounts[apiKey]
	return known.Account, ok
}

// equal compares in a time that does not depend on the position of a difference.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// unavailable wraps an error of the store so that it is ErrUnavailable, never a wrong token.
func unavailable(doing string, err error) error {
	if errors.Is(err, tokens.ErrUnavailable) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, tokens.ErrUnavailable, err)
}

func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now //nolint:forbidigo // the default clock
	}
	return now
}

// Revoke deletes all tokens and tickets of the account of apiKey, with the kept answers to its
// requests, and returns how many tokens and tickets were valid. The account need not be configured
// any more. It is no error if it has none. The account itself stays: it can get new tokens with its
// password.
//
// The error is ErrUnavailable if the store did not remove them all; some may be gone then.
func (i *Issuer) Revoke(ctx context.Context, apiKey string) (int, error) {
	ended := 0
	// The first pass may miss a ticket that is issued meanwhile for a token that the pass removes
	// later. The second one removes it. See [Issuer.IssueTicket].
	for range 2 {
		n, err := i.store.DeleteIndex(ctx, tokensOf(apiKey))
		if err != nil {
			return 0, unavailable("revoking the tokens of an account", err)
		}
		ended += n
	}
	if err := i.forgetAnswers(ctx, apiKey); err != nil {
		return 0, unavailable("forgetting the requests of an account", err)
	}
	return ended, nil
}

// Secret returns the secret of a name, the same one for all processes that share the store. If
// there is none, it stores fresh. It never expires. A store that cannot be written may still have
// it.
func Secret(ctx context.Context, store tokens.Store, name string, fresh []byte) ([]byte, error) {
	key := "secret/" + name
	entry, err := store.Get(ctx, key)
	if err != nil || entry.Value != nil {
		return entry.Value, err
	}
	secret := fresh
	err = store.Update(ctx, key, "", func(old tokens.Entry) (tokens.Entry, error) {
		if secret = old.Value; secret == nil {
			secret = fresh
		}
		return tokens.Entry{Value: secret}, nil
	})
	if err != nil {
		return nil, err // the update may still run, so secret must not be read
	}
	return secret, nil
}
