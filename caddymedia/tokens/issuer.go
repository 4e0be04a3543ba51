package tokens

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"
)

const (
	defaultLifetime = 24 * time.Hour
	tokenBytes      = 32
	// maxSecret is the most bytes that an API key or a password may have. Hashing takes longer for longer ones.
	maxSecret = 1024
)

// ErrCredentials says that there is no such account, or that its password or token is not this one, without saying
// which.
var ErrCredentials = errors.New("wrong credentials")

// tokenCoding is strict: a token has one spelling.
var tokenCoding = base64.RawURLEncoding.Strict()

// IssuerOptions is what an Issuer is made of. Store and Comparer are required.
type IssuerOptions struct {
	// Store keeps the tokens. The Issuer does not close it.
	Store Store
	// Accounts are those that may log in.
	Accounts []Account
	// Comparer checks a password against an account's hash, whichever algorithm made that.
	Comparer Comparer
	// FakeHash is what passwords are compared with when there are no accounts. Without it such logins fail at once.
	FakeHash []byte
	// Lifetime is how long a token is valid. Default: 24h.
	Lifetime time.Duration
	// Throttle limits failed logins. Default: one of its own with the default limits.
	Throttle *Throttle
	// Hashing bounds the hashing of passwords. Default: one of its own with the default limits.
	Hashing *Gate
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Rand is where tokens come from. Default: crypto/rand.
	Rand io.Reader
}

// An Issuer issues tokens to the accounts of one configuration and verifies them. It is safe for concurrent use.
type Issuer struct {
	store    Store
	accounts map[string]issuerAccount
	decoys   [][]byte
	comparer Comparer
	lifetime time.Duration
	throttle *Throttle
	hashing  *Gate
	now      func() time.Time
	rand     io.Reader
}

type issuerAccount struct {
	Account
	fingerprint string
}

// NewIssuer makes an Issuer. It uses neither the store nor the network.
func NewIssuer(opts IssuerOptions) (*Issuer, error) {
	if opts.Store == nil || opts.Comparer == nil {
		return nil, errors.New("an issuer needs a store and a comparer")
	}
	i := &Issuer{
		store:    opts.Store,
		accounts: make(map[string]issuerAccount, len(opts.Accounts)),
		comparer: opts.Comparer,
		lifetime: positiveOr(opts.Lifetime, defaultLifetime),
		throttle: opts.Throttle,
		hashing:  opts.Hashing,
		now:      clockOr(opts.Now),
		rand:     opts.Rand,
	}
	if i.throttle == nil {
		i.throttle = NewThrottle(ThrottleOptions{Now: opts.Now})
	}
	if i.hashing == nil {
		i.hashing = NewGate(GateOptions{})
	}
	if i.rand == nil {
		i.rand = rand.Reader
	}
	for _, a := range opts.Accounts {
		if err := i.add(a); err != nil {
			return nil, err
		}
	}
	// Sorted, because an unknown key must meet the same decoy whatever order the accounts came in.
	slices.SortFunc(i.decoys, slices.Compare)
	if len(i.decoys) == 0 && opts.FakeHash != nil {
		i.decoys = [][]byte{opts.FakeHash}
	}
	return i, nil
}

func (i *Issuer) add(a Account) error {
	switch _, twice := i.accounts[a.APIKey]; {
	case a.APIKey == "":
		return errors.New("an account without an API key")
	case len(a.APIKey) > maxSecret:
		return fmt.Errorf("an API key of more than %d bytes", maxSecret)
	case a.PasswordHash == "":
		return fmt.Errorf("account %q has no password hash", a.APIKey)
	case twice:
		return fmt.Errorf("account %q is there twice", a.APIKey)
	}
	a.Aliases = slices.Clone(a.Aliases)
	i.accounts[a.APIKey] = issuerAccount{a, a.Fingerprint()}
	i.decoys = append(i.decoys, []byte(a.PasswordHash))
	return nil
}

// Issue returns a new token for the account of apiKey, and when it expires, to the second. The client is who asks, as
// far as the server can tell by itself, never by what the request says.
//
// The error is ErrCredentials for a wrong key or password, a *ThrottledError when there were too many failures or too
// many logins are waiting, or ErrUnavailable when the store did not take the token.
func (i *Issuer) Issue(ctx context.Context, apiKey, password string, client netip.Addr) (token string, expires time.Time, err error) {
	account, err := i.login(ctx, apiKey, password, client)
	if err != nil {
		return "", time.Time{}, err
	}
	raw := make([]byte, tokenBytes)
	if _, err := io.ReadFull(i.rand, raw); err != nil {
		return "", time.Time{}, fmt.Errorf("making a token: %w", err)
	}
	token = tokenCoding.EncodeToString(raw)
	// Rounded up, so that what the caller is told and what is stored are the same.
	expires = i.now().Add(i.lifetime + time.Second - 1).UTC().Truncate(time.Second)
	rec := Record{Account: account.APIKey, Fingerprint: account.fingerprint, Expires: expires}
	if err := i.store.Save(ctx, IDOf(token), rec); err != nil {
		return "", time.Time{}, unavailable("storing a token", err)
	}
	return token, expires, nil
}

// login checks a password. An unknown key costs what a wrong password costs: it is compared with the hash of some
// account, always the same for one key, and fails even if that password is right.
func (i *Issuer) login(ctx context.Context, apiKey, password string, client netip.Addr) (issuerAccount, error) {
	if len(apiKey) > maxSecret || len(password) > maxSecret {
		return issuerAccount{}, ErrCredentials
	}
	digest := i.hashing.digest(apiKey)
	account, known := i.accounts[apiKey]
	hash, key := []byte(account.PasswordHash), loginKey{name: apiKey}
	if !known {
		hash, key = i.decoy(digest), loginKey{decoy: true, name: string(digest[:2])}
	}
	giveBack, err := i.throttle.take(client, key)
	if err != nil {
		return issuerAccount{}, err
	}
	if hash == nil {
		return issuerAccount{}, ErrCredentials
	}
	if err := i.hashing.enter(ctx); err != nil {
		giveBack()
		return issuerAccount{}, err
	}
	defer i.hashing.leave()
	ok, err := i.comparer.Compare(hash, []byte(password))
	if err != nil {
		return issuerAccount{}, fmt.Errorf("%w: comparing the password: %w", ErrCredentials, err)
	}
	if !ok || !known {
		return issuerAccount{}, ErrCredentials
	}
	giveBack()
	return account, nil
}

// decoy returns the hash that a password for an unknown key is compared with.
func (i *Issuer) decoy(digest []byte) []byte {
	if len(i.decoys) == 0 {
		return nil
	}
	return i.decoys[binary.BigEndian.Uint64(digest[2:])%uint64(len(i.decoys))]
}

// Verify returns the account that a token belongs to. With an apiKey it must be the token's; an empty one is not
// compared. The account's Aliases are not to be changed.
//
// The error is ErrCredentials when the token is malformed, unknown, expired, another account's, or of an account that
// has been removed or changed; it is ErrUnavailable when the store did not answer.
func (i *Issuer) Verify(ctx context.Context, token, apiKey string) (Account, error) {
	raw, err := tokenCoding.DecodeString(token)
	if err != nil || len(raw) != tokenBytes || len(token) != tokenCoding.EncodedLen(tokenBytes) {
		return Account{}, ErrCredentials
	}
	rec, err := i.store.Load(ctx, IDOf(token))
	if errors.Is(err, ErrUnknown) {
		return Account{}, ErrCredentials
	}
	if err != nil {
		return Account{}, unavailable("looking a token up", err)
	}
	account, known := i.accounts[rec.Account]
	switch {
	case !known,
		!i.now().Before(rec.Expires),
		!equal(rec.Fingerprint, account.fingerprint),
		apiKey != "" && !equal(rec.Account, apiKey):
		return Account{}, ErrCredentials
	}
	return account.Account, nil
}

// equal compares in a time that does not depend on where two strings differ.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// unavailable makes sure that a store's error is never taken for a wrong token.
func unavailable(doing string, err error) error {
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, err)
}

func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now //nolint:forbidigo // where the real clock comes in
	}
	return now
}
