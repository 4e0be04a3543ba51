package media

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// keyToAddress is the ratio of the allowed failures of an API key to those of an address.
const keyToAddress = 3

// Logins limit guesses of passwords, and tickets. Services that replace each other share them, so that
// a reload does not reset the counts.
type Logins struct {
	throttle *tokens.Throttle
	hashing  *tokens.HashLimiter
}

// NewLogins returns Logins with the LoginFailures, PasswordChecks and TicketsPerMinute of limits.
func NewLogins(limits Limits) *Logins {
	limits = limits.WithDefaults()
	failures := limits.LoginFailures
	return &Logins{
		throttle: tokens.NewThrottle(tokens.ThrottleOptions{
			Address: tokens.Rate{PerMinute: failures, Burst: failures},
			Key:     tokens.Rate{PerMinute: failures * keyToAddress, Burst: failures * keyToAddress},
			Tickets: tokens.Rate{PerMinute: limits.TicketsPerMinute},
		}),
		hashing: tokens.NewHashLimiter(tokens.HashLimiterOptions{Concurrent: limits.PasswordChecks}),
	}
}

func (s *Service) newIssuer(config *Config) (*tokens.Issuer, error) {
	names := make([]string, 0, len(config.Aliases))
	for _, alias := range s.Aliases() {
		names = append(names, alias.Name)
	}
	for _, account := range config.Accounts {
		if err := CheckAPIKey(account.APIKey); err != nil {
			return nil, err
		}
		for _, alias := range account.Aliases {
			if err := CheckAliasOf(account.APIKey, alias, names); err != nil {
				return nil, err
			}
		}
	}
	comparer := s.comparer
	if comparer == nil && len(config.Accounts) == 0 {
		comparer = tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil })
	}
	issuer, err := tokens.NewIssuer(tokens.IssuerOptions{
		Store: s.store, Accounts: config.Accounts, Comparer: comparer, FakeHash: s.fakeHash,
		Lifetime: config.TokenLifetime, Throttle: s.logins.throttle, Hashing: s.logins.hashing, Now: s.now,
	})
	if err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	return issuer, nil
}

// CheckAliasOf returns an error unless alias, to which an account is limited, is one of names.
func CheckAliasOf(account, alias string, names []string) error {
	if slices.Contains(names, alias) {
		return nil
	}
	known := slices.Compact(slices.Sorted(slices.Values(names)))
	return fmt.Errorf("account %q: aliases: there is no alias %q; there are %s", account, alias, strings.Join(known, ", "))
}

// Issuer returns the issuer of tokens, which also verifies them.
func (s *Service) Issuer() *tokens.Issuer { return s.issuer }

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
