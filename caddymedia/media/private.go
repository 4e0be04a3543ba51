package media

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

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/signing"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Private serves the items of an alias, their variants and their renditions only with a signed
// address that expires. All other requests get 403. Browsers cache an item until its address
// expires, for an hour at most.
type Private struct {
	// Renditions that need no signature, as in a public alias. It opens no SVG. Default: none.
	Public []string `json:"public,omitempty" example:"thumb"`

	// The steps in which addresses expire, at most 7 days: with `1h` at each full hour. An address
	// stays the same for that long, so that browsers find the item in their cache. It is valid for
	// up to a step longer than requested. Where that would exceed 7 days, its end is rounded down: with
	// a step near 7 days it may end within seconds. Default: the requested second.
	Step options.Duration `json:"step,omitempty" example:"1h"`

	// Whether caches that visitors share may keep an item until its address expires, under that
	// address. Default: `false`, only browsers may.
	SharedCache bool `json:"shared_cache,omitempty"`

	// A number that is part of each signature. Another number revokes all addresses of the alias.
	// Default: 0.
	Generation int64 `json:"generation,omitempty" option:"zero"`
}

// Check implements options.Checker.
func (p *Private) Check() error {
	if step := time.Duration(p.Step); step%time.Second != 0 || step > signing.MaxLifetime {
		return fmt.Errorf("step is whole seconds, 7d at most, not %v", step)
	}
	return nil
}

// checkPublic returns an error unless all public renditions exist.
func (p *Private) checkPublic(renditions map[string]*Rendition) error {
	if p == nil {
		return nil
	}
	for _, name := range p.Public {
		if renditions[name] == nil {
			return fmt.Errorf("private.public: there is no rendition %q", name)
		}
	}
	return nil
}

// setPrivate makes an alias private if its options say so.
func (o *AliasOptions) setPrivate(alias *item.Alias) {
	if p := o.Private; p != nil {
		alias.Private = &item.Private{
			Public: p.Public, Step: time.Duration(p.Step), SharedCache: p.SharedCache, Generation: p.Generation,
		}
		alias.CacheControl = alias.Private.CacheControl(signing.MaxLifetime)
	}
}

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

func newSigningKeys(configured []string, store tokens.Store, now func() time.Time) *signingKeys {
	k := &signingKeys{store: store, now: now}
	for _, key := range configured {
		k.configured = append(k.configured, []byte(key))
	}
	return k
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
	loaded := k.loading.DoChan("", func() (any, error) { return k.load(context.WithoutCancel(ctx), key) })
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
	key, err := tokens.Secret(ctx, k.store, signingSecret, fresh)
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
func (s *Service) VerifyAddress(ctx context.Context, alias *Alias, signature string, candidates ...signing.Fields) (bool, error) {
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
	Kind Kind
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

// Sign returns the signed addresses of items in the order of the request, or the query for a folder.
// It uses no storage. The error satisfies errors.Is with tokens.ErrUnavailable if the token store
// cannot be reached. Otherwise it says what is wrong with the request.
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

// ImageURL returns the signed address of an item of a private image alias. With "content@thumb" it
// is that of a rendition, for which alone it is valid. A lifetime of 0 is an hour. See
// [Service.Sign].
func (s *Service) ImageURL(ctx context.Context, alias, filename string, lifetime time.Duration) (string, error) {
	return s.signedURL(ctx, item.Image, alias, filename, lifetime)
}

// FileURL is [Service.ImageURL] for a file alias.
func (s *Service) FileURL(ctx context.Context, alias, filename string, lifetime time.Duration) (string, error) {
	return s.signedURL(ctx, item.File, alias, filename, lifetime)
}

func (s *Service) signedURL(ctx context.Context, kind item.Kind, name, filename string, lifetime time.Duration) (string, error) {
	alias, rendition, _ := strings.Cut(name, "@")
	signed, err := s.Sign(ctx, SignRequest{
		Kind: kind, Alias: alias, Rendition: rendition, Filenames: []string{filename}, ExpiresIn: lifetime,
	})
	if err != nil {
		return "", err
	}
	return signed[0].URL, nil
}
