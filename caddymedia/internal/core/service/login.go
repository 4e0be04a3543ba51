package service

import (
	"context"
	"fmt"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
)

func (s *Service) newIssuer(parts *Parts) (*access.Issuer, error) {
	s.logins = s.sharedLogins()
	comparer := s.comparer
	if comparer == nil && len(parts.Accounts) == 0 {
		comparer = tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil })
	}
	issuer, err := access.NewIssuer(access.IssuerOptions{
		Store: s.store, Accounts: parts.Accounts, Comparer: comparer, FakeHash: s.fakeHash,
		Lifetime: parts.TokenLifetime, Throttle: s.logins.throttle, Hashing: s.logins.hashing, Now: s.now,
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
func (s *Service) Passwords(realm string, hashes map[string]string) *access.Passwords {
	return access.NewPasswords(access.PasswordsOptions{
		Realm: realm, Hashes: hashes, Comparer: s.comparer, FakeHash: s.fakeHash,
		Throttle: s.logins.throttle, Hashing: s.logins.hashing,
	})
}
