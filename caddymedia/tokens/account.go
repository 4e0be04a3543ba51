package tokens

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// Account is an account that may upload.
type Account struct {
	// APIKey is the name of the account.
	APIKey string
	// PasswordHash is the hash of the password, in a format of the configured Comparer.
	PasswordHash string
	// Aliases are the only aliases that the account may use. Empty means all.
	Aliases []string
}

// Allows reports whether the account may use alias.
func (a Account) Allows(alias string) bool {
	return len(a.Aliases) == 0 || slices.Contains(a.Aliases, alias)
}

// Fingerprint returns a hash of the account, which changes with any part of it. A token carries the
// fingerprint of its account, so changing the account revokes its tokens. The order of aliases and
// repeated ones make no difference.
func (a Account) Fingerprint() string {
	aliases := slices.Compact(slices.Sorted(slices.Values(a.Aliases)))
	var b []byte
	for _, field := range append([]string{a.APIKey, a.PasswordHash}, aliases...) {
		// The length prefix keeps one field from being read as two.
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
