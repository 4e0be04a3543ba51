package access

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// maxSecret is the largest name or password in bytes, because hashing long ones takes longer.
const maxSecret = 1024

// PublicHash is the password hash in Caddyfile.example. Its password is in the documentation, so
// that it must open nothing to another machine.
const PublicHash = "$argon2id$v=19$m=47104,t=1,p=1$A4jf1aqXBp1xxJ37lPh12A$WaFuBSrB5SmdEcA4byiDJ83t54g74DSO4UiWcMTjXHQ"

// PasswordsOptions are the parts of Passwords. Comparer is required.
type PasswordsOptions struct {
	// Realm separates equal names of different accounts, such as an API key and a user of the
	// panel. Failed logins are counted by realm and name.
	Realm string
	// Hashes are the password hashes by name.
	Hashes map[string]string
	// Comparer compares a password with a hash of any algorithm.
	Comparer tokens.Comparer
	// FakeHash is compared with passwords if there are no names. Without it such logins fail at
	// once.
	FakeHash []byte
	// Throttle limits failed logins. Default: a new one with the default limits.
	Throttle *Throttle
	// Hashing bounds the hashing of passwords. Default: a new one with the default limits.
	Hashing *HashLimiter
}

// Passwords checks the passwords of the names of one configuration. It is safe for concurrent use.
type Passwords struct {
	realm    string
	hashes   map[string]string
	decoys   [][]byte
	comparer tokens.Comparer
	throttle *Throttle
	hashing  *HashLimiter
}

// NewPasswords returns Passwords with the defaults filled in.
func NewPasswords(opts PasswordsOptions) *Passwords {
	p := &Passwords{
		realm: opts.Realm, hashes: opts.Hashes, comparer: opts.Comparer,
		throttle: opts.Throttle, hashing: opts.Hashing, decoys: make([][]byte, 0, len(opts.Hashes)),
	}
	if p.throttle == nil {
		p.throttle = NewThrottle(ThrottleOptions{})
	}
	if p.hashing == nil {
		p.hashing = NewHashLimiter(HashLimiterOptions{})
	}
	for _, hash := range opts.Hashes {
		p.decoys = append(p.decoys, []byte(hash))
	}
	// Sorted: an unknown name must have the same decoy in every order of the map.
	slices.SortFunc(p.decoys, slices.Compare)
	if len(p.decoys) == 0 && opts.FakeHash != nil {
		p.decoys = [][]byte{opts.FakeHash}
	}
	return p
}

// Check returns nil if password is the password of name. client is the address that the server
// sees, never one claimed by the request.
//
// An unknown name costs as much as a wrong password. It is compared with the hash of some name,
// always the same for one unknown name, and fails even if that password is right.
//
// The error is ErrCredentials for a wrong name or password, a *ThrottledError after too many
// failures or with too many waiting logins, or the error of ctx.
func (p *Passwords) Check(ctx context.Context, name, password string, client netip.Addr) error {
	if len(name) > maxSecret || len(password) > maxSecret {
		return ErrCredentials
	}
	digest := p.hashing.digest(p.realm, name)
	configured, known := p.hashes[name]
	hash, key := []byte(configured), loginKey{realm: p.realm, name: name}
	if !known {
		hash, key = p.decoy(digest), loginKey{realm: p.realm, decoy: true, name: string(digest[:2])}
	}
	attempt, err := p.throttle.start(client, key)
	if err != nil {
		return err
	}
	if hash == nil {
		return ErrCredentials
	}
	release, err := p.hashing.acquire(ctx, attempt)
	if err != nil {
		attempt.abandon()
		return err
	}
	defer release()
	ok, err := p.comparer.Compare(hash, []byte(password))
	if err != nil {
		return fmt.Errorf("%w: comparing the password: %w", ErrCredentials, err)
	}
	if !ok || !known {
		return ErrCredentials
	}
	attempt.succeed()
	return nil
}

// decoy returns the hash to compare for an unknown name.
func (p *Passwords) decoy(digest []byte) []byte {
	if len(p.decoys) == 0 {
		return nil
	}
	return p.decoys[binary.BigEndian.Uint64(digest[2:])%uint64(len(p.decoys))]
}
