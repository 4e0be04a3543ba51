package media

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// Logins limit guesses of passwords, and tickets. Services that replace each other share them, so that
// a reload does not reset the counts.
type Logins struct {
	throttle *tokens.Throttle
	hashing  *tokens.HashLimiter
}

// NewLogins returns Logins with the LoginFailures, PasswordChecks and TicketsPerMinute of limits.
func NewLogins(limits Limits) *Logins {
	return &Logins{
		throttle: tokens.NewThrottle(tokens.ThrottleOptions{Failures: limits.LoginFailures, Tickets: limits.TicketsPerMinute}),
		hashing:  tokens.NewHashLimiter(tokens.HashLimiterOptions{Concurrent: limits.PasswordChecks}),
	}
}

// credentials returns the account of an API key.
func (a *Account) credentials(apiKey string) tokens.Account {
	return tokens.Account{
		APIKey: apiKey, PasswordHash: a.PasswordHash, Aliases: a.Aliases, Rights: a.rights(), Trusted: a.Trusts(),
	}
}

func (s *Service) newIssuer(config *Config) (*tokens.Issuer, error) {
	accounts := make([]tokens.Account, 0, len(config.Accounts))
	for _, key := range slices.Sorted(maps.Keys(config.Accounts)) {
		accounts = append(accounts, config.Accounts[key].credentials(key))
	}
	comparer := s.comparer
	if comparer == nil && len(accounts) == 0 {
		comparer = tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil })
	}
	issuer, err := tokens.NewIssuer(tokens.IssuerOptions{
		Store: s.store, Accounts: accounts, Comparer: comparer, FakeHash: s.fakeHash,
		Lifetime: time.Duration(config.TokenLifetime), Throttle: s.logins.throttle, Hashing: s.logins.hashing, Now: s.now,
	})
	if err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	return issuer, nil
}

// CheckTokens returns nil if the token store is reachable and accepts writes.
func (s *Service) CheckTokens(ctx context.Context) error { return s.store.Check(ctx) }

// Passwords returns a check of passwords for users that are not accounts, with their hashes by
// name. Realm separates their names from others. All checks share the limits of logins.
func (s *Service) Passwords(realm string, hashes map[string]string) *tokens.Passwords {
	return tokens.NewPasswords(tokens.PasswordsOptions{
		Realm: realm, Hashes: hashes, Comparer: s.comparer, FakeHash: s.fakeHash,
		Throttle: s.logins.throttle, Hashing: s.logins.hashing,
	})
}
