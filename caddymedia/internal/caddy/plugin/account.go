package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// openTokens opens the token store of the configuration through the pool.
func (a *App) openTokens(ctx caddy.Context) (tokens.Store, error) {
	raw := struct {
		Store json.RawMessage `caddy:"namespace=media.tokens inline_key=store"`
	}{a.TokensRaw}
	if raw.Store == nil {
		raw.Store = json.RawMessage(`{"store":"bolt"}`)
	}
	if err := checkGuest(raw.Store, "token store", modules.StoreNamespace, "store"); err != nil {
		return nil, err
	}
	loaded, err := ctx.LoadModule(&raw, "Store")
	if err != nil {
		return nil, fmt.Errorf("loading the store: %w", err)
	}
	module, ok := loaded.(*modules.Store)
	if !ok {
		return nil, fmt.Errorf("%T is no token store", loaded)
	}
	a.tokens = module
	store, done, err := pooled(a, "tokens", module.PoolKey(), func() (tokens.Store, error) {
		return module.NewStore(a.log)
	})
	return sharedStore{store, done}, err
}

// sharedStore is a token store from the pool.
type sharedStore struct {
	tokens.Store
	done func() error
}

// Close returns the store to the pool.
func (s sharedStore) Close() error { return s.done() }

// Passwords returns a check of the passwords of users other than accounts. realm separates the
// users from others of the same name. All checks of a process share one limit of failures and one
// of concurrent checks. The error names a user with an invalid hash. The log of the start names
// those with a public password.
func (a *App) Passwords(realm string, hashes map[string]string) (*access.Passwords, error) {
	for user, hash := range hashes {
		if err := CheckHash(hash); err != nil {
			return nil, fmt.Errorf("user %q: %w", user, err)
		}
	}
	a.publicUsers = append(a.publicUsers, PublicNames(hashes)...)
	return a.Service().Passwords(realm, hashes), nil
}

// expandAccounts returns the expanded accounts, whose hashes can be compared.
func (a *App) expandAccounts() (map[string]*media.Account, error) {
	accounts, hashes := make(map[string]*media.Account, len(a.Accounts)), map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(a.Accounts)) {
		account, err := a.expandAccount(a.Accounts[key])
		switch {
		case err != nil:
		case account.PasswordHash != "":
			err = CheckHash(account.PasswordHash)
		case !account.Trusts():
			err = media.ErrNoPassword
		}
		if err != nil {
			return nil, fmt.Errorf("account %q: %w", key, err)
		}
		accounts[key], hashes[key] = &account, account.PasswordHash
	}
	a.publicAccounts = PublicNames(hashes)
	return accounts, nil
}

// expandAccount returns an expanded account.
func (a *App) expandAccount(account *media.Account) (media.Account, error) {
	if account == nil {
		return media.Account{}, nil
	}
	own := *account
	var err error
	if own.PasswordHash, err = a.OwnPassword(own.PasswordHash); err != nil {
		return own, err
	}
	return expanded(media.Schemas.Account, &own)
}

// PublicNames returns the sorted names of the hashes that are the one of Caddyfile.example.
func PublicNames(hashes map[string]string) []string {
	names := slices.Sorted(maps.Keys(hashes))
	return slices.DeleteFunc(names, func(name string) bool { return hashes[name] != access.PublicHash })
}

// PublicAccounts returns the sorted API keys of the accounts with the password of
// Caddyfile.example.
func (a *App) PublicAccounts() []string { return a.publicAccounts }

// comparer compares passwords with the algorithm named in the hash.
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

// The formats of the two algorithms. A truncated hash would panic at a login, or match any
// password.
var (
	argon2idHash = regexp.MustCompile(`^\$argon2id\$v=19\$m=[1-9][0-9]*,t=[1-9][0-9]*,p=[1-9][0-9]*\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{22,}$`)
	bcryptHash   = regexp.MustCompile(`^\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}$`)
)

// CheckHash returns an error unless hash is a password hash of a known algorithm.
func CheckHash(hash string) error {
	if bcryptHash.MatchString(hash) {
		return nil
	}
	if _, _, err := caddyauth.DecodeHash([]byte(hash)); err == nil && argon2idHash.MatchString(hash) {
		return nil
	}
	return errors.New("not a password hash; make one with: caddy hash-password --algorithm argon2id")
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
