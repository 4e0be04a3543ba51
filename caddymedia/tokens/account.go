package tokens

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// Account is who may upload.
type Account struct {
	// APIKey names the account.
	APIKey string
	// PasswordHash is the password as the configured Comparer understands it.
	PasswordHash string
	// Aliases are the only aliases that the account may use. Empty means all.
	Aliases []string
}

// Allows tells whether the account may use alias.
func (a Account) Allows(alias string) bool {
	return len(a.Aliases) == 0 || slices.Contains(a.Aliases, alias)
}

// Fingerprint changes whenever anything of the account does. A token carries its account's fingerprint, so changing
// the account ends its tokens. The order and repetition of aliases do not count.
func (a Account) Fingerprint() string {
	aliases := slices.Compact(slices.Sorted(slices.Values(a.Aliases)))
	var b []byte
	for _, field := range append([]string{a.APIKey, a.PasswordHash}, aliases...) {
		// With its length in front no field can pass for two.
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
