package mediaapp

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/bolt"
)

// Account is an API key with its password. Changing or removing an account ends its
// tokens at once.
type Account struct {
	// The hash of the password, made by `caddy hash-password --algorithm argon2id`; a
	// bcrypt hash works too, and costs more time at each login. Required.
	PasswordHash string `json:"password_hash,omitempty" option:"required,secret" example:"{env.SITE_PASSWORD_HASH}"`

	// The aliases that the account may upload to; a name stands for the image alias and
	// the file alias. Default: all.
	Aliases []string `json:"aliases,omitempty"`
}

func (a *App) provisionTokens(ctx caddy.Context) error {
	var module tokens.StoreModule = new(bolt.Module)
	if a.TokensRaw == nil {
		if err := module.(caddy.Provisioner).Provision(ctx); err != nil { // it is one
			return fmt.Errorf("tokens: %w", err)
		}
	} else {
		loaded, err := ctx.LoadModule(a, "TokensRaw")
		if err != nil {
			return fmt.Errorf("tokens: loading the store: %w", err)
		}
		var ok bool
		if module, ok = loaded.(tokens.StoreModule); !ok {
			return fmt.Errorf("tokens: %T is no token store", loaded)
		}
	}
	store, done, err := pooled("tokens", module.PoolKey(), func() (tokens.Store, error) {
		return module.NewStore(a.log)
	})
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	a.tokens, a.store = module, store
	a.closers = append(a.closers, done)
	return nil
}

func (a *App) provisionIssuer(ctx caddy.Context) error {
	if a.TokenLifetime < 0 {
		return errors.New("token_lifetime is negative")
	}
	accounts, err := a.accounts()
	if err != nil {
		return err
	}
	compare, err := loadComparer(ctx)
	if err != nil {
		return err
	}
	guard, done, err := pooled("login", fmt.Sprint(a.Limits.loginFailures(), a.Limits.PasswordChecks), a.newLoginGuard)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, done)
	a.comparer, a.logins = compare, guard
	a.issuer, err = tokens.NewIssuer(tokens.IssuerOptions{
		Store: a.store, Accounts: accounts, Comparer: compare, FakeHash: compare.fake,
		Lifetime: time.Duration(a.TokenLifetime), Throttle: guard.throttle, Hashing: guard.hashing,
	})
	if err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	return nil
}

// Passwords returns the check of the passwords of other users than accounts, by their hashes. Realm
// separates their names from others. All checks of a process share one limit of failures and one of
// checks at the same time. The error names the user whose hash is none.
func (a *App) Passwords(realm string, hashes map[string]string) (*tokens.Passwords, error) {
	for user, hash := range hashes {
		if !validHash(hash) {
			return nil, fmt.Errorf("user %q: not a password hash; make one with: caddy hash-password --algorithm argon2id", user)
		}
	}
	return tokens.NewPasswords(tokens.PasswordsOptions{
		Realm: realm, Hashes: hashes, Comparer: a.comparer, FakeHash: a.comparer.fake,
		Throttle: a.logins.throttle, Hashing: a.logins.hashing,
	}), nil
}

// accounts expands and checks the accounts.
func (a *App) accounts() ([]tokens.Account, error) {
	var accounts []tokens.Account
	for _, key := range slices.Sorted(maps.Keys(a.Accounts)) {
		var config Account
		if given := a.Accounts[key]; given != nil {
			config = *given
		}
		if err := accountOptions.Expand(&config); err != nil {
			return nil, fmt.Errorf("account %q: %w", key, err)
		}
		if !APIKeys.Allows(key) {
			return nil, fmt.Errorf("account %q: an API key is %s", key, APIKeys.Words)
		}
		if !validHash(config.PasswordHash) {
			return nil, fmt.Errorf("account %q: not a password hash; make one with: caddy hash-password --algorithm argon2id", key)
		}
		for _, alias := range config.Aliases {
			_, image := a.Alias(ingest.Image, alias)
			if _, file := a.Alias(ingest.File, alias); !image && !file {
				return nil, fmt.Errorf("account %q: aliases: there is no alias %q", key, alias)
			}
		}
		accounts = append(accounts, tokens.Account{APIKey: key, PasswordHash: config.PasswordHash, Aliases: config.Aliases})
	}
	return accounts, nil
}

// loginGuard is what makes guessing passwords slow; it outlives a reload.
type loginGuard struct {
	throttle *tokens.Throttle
	hashing  *tokens.HashLimiter
}

func (a *App) newLoginGuard() (loginGuard, error) {
	failures := a.Limits.loginFailures()
	return loginGuard{
		throttle: tokens.NewThrottle(tokens.ThrottleOptions{
			Address: tokens.Rate{PerMinute: failures, Burst: failures},
			Key:     tokens.Rate{PerMinute: failures * keyToAddress, Burst: failures * keyToAddress},
		}),
		hashing: tokens.NewHashLimiter(tokens.HashLimiterOptions{Concurrent: a.Limits.PasswordChecks}),
	}, nil
}

// comparer compares with the algorithm that a hash names itself.
type comparer struct {
	byAlgorithm map[string]caddyauth.Comparer
	fake        []byte
}

func loadComparer(ctx caddy.Context) (*comparer, error) {
	c := &comparer{byAlgorithm: map[string]caddyauth.Comparer{}}
	for _, algorithm := range []string{"argon2id", "bcrypt"} {
		module, err := ctx.LoadModuleByID("http.authentication.hashes."+algorithm, nil)
		if err != nil {
			return nil, fmt.Errorf("loading password hash %s: %w", algorithm, err)
		}
		hash, ok := module.(caddyauth.Comparer)
		if !ok {
			return nil, fmt.Errorf("password hash %s cannot compare", algorithm)
		}
		c.byAlgorithm[algorithm] = hash
		if hasher, ok := module.(caddyauth.Hasher); ok && c.fake == nil {
			c.fake = hasher.FakeHash()
		}
	}
	return c, nil
}

func (c *comparer) Compare(hashed, plaintext []byte) (bool, error) {
	hash, ok := c.byAlgorithm[algorithmOf(string(hashed))]
	if !ok {
		return false, errors.New("unknown password hash")
	}
	return hash.Compare(hashed, plaintext)
}

// What the two algorithms write. A hash that was cut short would panic at a login, or fit
// any password.
var (
	argon2idHash = regexp.MustCompile(`^\$argon2id\$v=19\$m=[1-9][0-9]*,t=[1-9][0-9]*,p=[1-9][0-9]*\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{22,}$`)
	bcryptHash   = regexp.MustCompile(`^\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}$`)
)

func validHash(hash string) bool {
	if bcryptHash.MatchString(hash) {
		return true
	}
	_, _, err := caddyauth.DecodeHash([]byte(hash))
	return err == nil && argon2idHash.MatchString(hash)
}

func algorithmOf(hash string) string {
	switch {
	case strings.HasPrefix(hash, "$argon2id$"):
		return "argon2id"
	case strings.HasPrefix(hash, "$2a$"), strings.HasPrefix(hash, "$2b$"), strings.HasPrefix(hash, "$2y$"):
		return "bcrypt"
	default:
		return ""
	}
}
