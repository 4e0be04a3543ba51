package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/singleflight"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/signing"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// signingSecret is the name of the random key in the token store.
	signingSecret = "signing"
	// keyAge is how long the key of the token store is used before it is looked up again. The lookup
	// also stores it again, in case that the store has lost it.
	keyAge = time.Minute
	// keyTime bounds a lookup.
	keyTime = 10 * time.Second
)

// signingKeys are the keys of signed addresses.
type signingKeys struct {
	configured [][]byte
	store      tokens.Store
	now        func() time.Time
	loading    singleflight.Group

	mu   sync.Mutex
	key  []byte    // of the token store; nil if it is not known yet
	next time.Time // when it is looked up again
}

func newSigningKeys(configured [][]byte, store tokens.Store, now func() time.Time) *signingKeys {
	return &signingKeys{configured: configured, store: store, now: now}
}

// get returns the keys; the first one signs. The error is tokens.ErrUnavailable.
func (k *signingKeys) get(ctx context.Context) ([][]byte, error) {
	if len(k.configured) > 0 {
		return k.configured, nil
	}
	k.mu.Lock()
	key, fresh := k.key, k.now().Before(k.next)
	k.mu.Unlock()
	if fresh {
		return [][]byte{key}, nil
	}
	loaded := k.loading.DoChan("", func() (loaded any, err error) {
		err = guard.CallAs(tokens.ErrUnavailable, func() error {
			loaded, err = k.load(context.WithoutCancel(ctx), key)
			return err
		})
		return loaded, err
	})
	if key != nil { // the lookup goes on without this request
		return [][]byte{key}, nil
	}
	select {
	case result := <-loaded:
		if result.Err != nil {
			return nil, result.Err
		}
		return [][]byte{result.Val.([]byte)}, nil // load returns no other type
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", tokens.ErrUnavailable, ctx.Err())
	}
}

// load returns the key of the token store, which is known, or random, if the store has none.
func (k *signingKeys) load(ctx context.Context, known []byte) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	fresh := known
	if fresh == nil {
		fresh = make([]byte, signing.MinKey)
		_, _ = rand.Read(fresh) // it never fails
	}
	key, err := access.Secret(ctx, k.store, signingSecret, fresh)
	if err != nil && !errors.Is(err, tokens.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", tokens.ErrUnavailable, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.key, k.next = key, k.now().Add(keyAge)
	case known != nil:
		k.next = k.now().Add(keyAge)
	}
	return key, err
}

// VerifyAddress reports whether signature is that of one of the candidates, whose kind, alias and
// generation are those of the alias, which must be private. The error is tokens.ErrUnavailable.
func (s *Service) VerifyAddress(ctx context.Context, alias *item.Alias, signature string, candidates ...signing.Fields) (bool, error) {
	keys, err := s.signing.get(ctx)
	valid := false
	for _, fields := range candidates {
		fields.Kind, fields.Alias, fields.Generation = alias.Kind.Name(), alias.Name, alias.Private.Generation
		valid = fields.Verify(keys, signature) || valid // each of them, at the same cost
	}
	return valid, err
}

// SignRequest describes signed addresses of items of a private alias.
type SignRequest struct {
	Kind item.Kind
	// Alias is the name of the alias. Default: "content".
	Alias string
	// Filenames of the items, which need not exist, or Folder instead, for everything below it. The
	// folder "/" is the root of the alias.
	Filenames []string
	Folder    string
	// Rendition is the only rendition that the addresses are for. Default: they are for the items,
	// and valid for their variants and renditions too.
	Rendition string
	// ExpiresIn is the lifetime, 7 days at most. Default: 1 hour.
	ExpiresIn time.Duration
	// Download makes the items attachments of that name.
	Download string
	// BaseURL is the start of the addresses of an alias without a CDNBase.
	BaseURL string
}

// SignedAddress is the signed address of an item, or the query of the addresses below a folder.
type SignedAddress struct {
	Filename string `json:"filename,omitempty"`
	URL      string `json:"url,omitempty"`
	Folder   string `json:"folder,omitempty"`
	// Query is without the question mark.
	Query string `json:"query,omitempty"`
	// ExpiresAt is in Unix seconds.
	ExpiresAt int64 `json:"expires_at"`
}

// Sign returns the signed addresses of items in the order of the request, or the query for a
// folder. It uses no storage. The error satisfies errors.Is with tokens.ErrUnavailable if the token
// store cannot be reached. Otherwise it says what is wrong with the request.
func (s *Service) Sign(ctx context.Context, req SignRequest) ([]SignedAddress, error) {
	alias, err := s.signable(&req)
	if err != nil {
		return nil, err
	}
	keys, err := s.signing.get(ctx)
	if err != nil {
		return nil, err
	}
	fields := signing.Fields{
		Kind: alias.Kind.Name(), Alias: alias.Name, Scope: signing.Filename, Rendition: req.Rendition,
		Expires:  signing.Expiry(s.now(), req.ExpiresIn, alias.Private.Step),
		Download: req.Download, Generation: alias.Private.Generation,
	}
	query := func() string {
		query := "expires=" + strconv.FormatInt(fields.Expires, 10) + "&signature=" + fields.Sign(keys[0])
		if req.Folder != "" {
			query += "&scope=" + url.QueryEscape(req.Folder)
		}
		if req.Download != "" {
			query += "&download=" + url.QueryEscape(req.Download)
		}
		return query
	}
	if req.Folder != "" {
		fields.Scope, fields.Name = signing.Folder, req.Folder
		return []SignedAddress{{Folder: req.Folder, Query: query(), ExpiresAt: fields.Expires}}, nil
	}
	signed := make([]SignedAddress, len(req.Filenames))
	for i, filename := range req.Filenames {
		fields.Name = filename
		address := alias.URL(req.BaseURL, filename)
		if req.Rendition != "" {
			address = alias.RenditionURL(req.BaseURL, req.Rendition, filename)
		}
		signed[i] = SignedAddress{Filename: filename, URL: address + "?" + query(), ExpiresAt: fields.Expires}
	}
	return signed, nil
}

// signable sets the defaults of a request and returns its alias, or an error if the request cannot
// be signed.
func (s *Service) signable(req *SignRequest) (*item.Alias, error) {
	req.Alias = cmp.Or(req.Alias, item.DefaultAlias)
	req.ExpiresIn = cmp.Or(req.ExpiresIn, time.Hour)
	alias, known := s.Alias(req.Kind, req.Alias)
	switch {
	case !known:
		return nil, fmt.Errorf("unknown alias %.64q", req.Alias)
	case alias.Private == nil:
		return nil, fmt.Errorf("the alias %q is not private: its addresses need no signature", alias.Name)
	case req.ExpiresIn < time.Second || req.ExpiresIn > signing.MaxLifetime:
		return nil, fmt.Errorf("an address is valid for 1 to %d seconds", signing.MaxLifetime/time.Second)
	case (len(req.Filenames) > 0) == (req.Folder != ""):
		return nil, errors.New("name either items by their filename or one folder")
	case req.Folder != "" && req.Folder != "/" && storagedrivers.ValidKey(req.Folder) != nil:
		return nil, errors.New("the folder is invalid: it has no slash at its start and its end, and / is the root")
	case !validDownload(req.Download):
		return nil, errors.New("the name of the download is invalid")
	}
	if _, known := alias.Rendition(req.Rendition); req.Rendition != "" && !known {
		return nil, fmt.Errorf("unknown rendition %.64q of the alias %q", req.Rendition, alias.Name)
	}
	if i := slices.IndexFunc(req.Filenames, func(name string) bool { return storagedrivers.ValidKey(name) != nil }); i >= 0 {
		return nil, fmt.Errorf("%.64q is no filename", req.Filenames[i])
	}
	return alias, nil
}

// maxDownload is the longest name of a download in bytes.
const maxDownload = 255

// validDownload reports whether a browser can save a file under a name.
func validDownload(name string) bool {
	return len(name) <= maxDownload && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) })
}
