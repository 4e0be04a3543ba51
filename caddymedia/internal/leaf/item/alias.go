// Package item names items. An alias is a named upload configuration: it decides which names and
// extensions it accepts, under which keys an item, its variant and its renditions are stored, and
// which addresses they have. It locks items, and describes refusals as [Failure].
//
// Begin with [Alias], then [Alias.StoredName], which makes the name of a submitted file, and
// [Alias.Key]. The names of variants and renditions are derived from the names of their images.
package item

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Kind is the kind of items of an alias.
type Kind string

// The kinds. The values are part of keys and addresses.
const (
	Image Kind = "img"
	File  Kind = "file"
)

// Name returns the kind as in the endpoints and in messages: "image" or "file".
func (k Kind) Name() string {
	if k == Image {
		return "image"
	}
	return "file"
}

// KindOf returns the kind of a [Kind.Name].
func KindOf(name string) (kind Kind, known bool) {
	for _, kind := range []Kind{Image, File} {
		if kind.Name() == name {
			return kind, true
		}
	}
	return "", false
}

// DefaultAlias is the alias of a request without one.
const DefaultAlias = "content"

// Alias is a named upload configuration.
type Alias struct {
	Kind Kind
	Name string
	// Storage holds the items, under Prefix ("img/content").
	Storage *storagedrivers.Storage
	Prefix  string
	// Locks of the items that are being committed or deleted in this process, by location. All aliases
	// share them, for storages may have one backend.
	Locks *locks.Names
	// BaseURL is the start of public addresses ("https://cdn.example"), without a slash at the end.
	// Empty: the scheme and host of the request.
	BaseURL string

	// SubFolder is the folder of items whose request names none.
	SubFolder naming.Format
	// Overwrite replaces an item of the same name. Otherwise, under Append Time, the new one gets
	// the time in its name.
	Overwrite bool
	// Trash is how long the generations of items that are removed or replaced are kept; 0 keeps none.
	Trash time.Duration
	// TrashLocked refuses each request to remove them before.
	TrashLocked bool
	// Expires is how long items are to be had after they were stored; 0 for ever.
	Expires time.Duration
	// Sanitize makes plain names. Otherwise they are stored exactly as submitted.
	Sanitize bool

	// Extensions that are allowed, in lower case, without a dot.
	Extensions map[string]bool
	// Types are the media types of extensions, in place of those that the storage knows.
	Types map[string]string
	// RenameMismatched replaces the extension of an image with that of its content, if that is
	// another one of Extensions. Otherwise the image is refused.
	RenameMismatched bool
	// MaxSize of an item in bytes.
	MaxSize int64
	// Checks are other programs that are asked about each file before it is stored, in this order.
	Checks []*check.Check
	// Imaging are the limits of images, and the metadata without which they are stored. The limits
	// hold for stored images too, when variants and renditions are made.
	Imaging imaging.Options
	// WebP are the options of variants; nil for no variants.
	WebP *render.Options
	// Renditions are the named sizes of images, sorted by name.
	Renditions []Rendition
	// Facts are what answers say of images.
	Facts Facts
	// Negotiate serves the variant under the address of its image.
	Negotiate bool
	// CacheControl is the Cache-Control header of the items.
	CacheControl string
	// RenditionCacheControl is the Cache-Control header of the renditions.
	RenditionCacheControl string
	// Private requires signed addresses; nil serves everybody.
	Private *Private
	// Redirect redirects clients to another address of the items; nil serves them.
	Redirect *Redirect
}

// Facts are how much answers say of the images of an alias.
type Facts int

// The facts. A ThumbHash needs a decoding.
const (
	NoFacts       Facts = iota
	FactsOfHeader       // sizes
	FactsWithHash       // and a ThumbHash
)

// CachedFor returns the seconds for which caches may serve an item without asking again, according
// to its Cache-Control header.
func (a *Alias) CachedFor() int64 {
	var age int64
	for directive := range strings.SplitSeq(strings.ToLower(a.CacheControl), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-cache", "no-store":
			return 0
		case "max-age", "s-maxage":
			seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
			switch {
			case errors.Is(err, strconv.ErrRange):
				age = math.MaxInt32 // RFC 9111 section 1.2.2
			case err == nil:
				age = max(age, int64(seconds))
			}
		}
	}
	return age
}

// Redirect is where clients are redirected to.
type Redirect struct {
	// Base is the public address of the storage's root, without a slash at the end. Empty:
	// the storage signs an address for each request.
	Base string
	// Lifetime of a signed address. Clients may keep the answer for half of it.
	Lifetime time.Duration
}

// Private is how the items of an alias are served with a signed address only.
type Private struct {
	// Public are the renditions that need no signature.
	Public []string
	// Step is what the end of an address is a multiple of; 0 for a second.
	Step time.Duration
	// SharedCache allows caches that visitors share to keep the items.
	SharedCache bool
	// Generation is part of each signature.
	Generation int64
}

// CacheControl returns the Cache-Control header of an item whose address is valid for rest.
func (p *Private) CacheControl(rest time.Duration) string {
	if p.SharedCache {
		return fmt.Sprintf("public, max-age=%d", rest/time.Second)
	}
	return fmt.Sprintf("private, max-age=%d", min(rest, time.Hour)/time.Second)
}

// NeedsSignature reports whether an item of the alias is served with a signed address only, or its
// rendition if that is not nil. An SVG is its own rendition, so no rendition of it is public.
func (a *Alias) NeedsSignature(filename string, r *Rendition) bool {
	return a.Private != nil && (r == nil || !slices.Contains(a.Private.Public, r.Name) || !a.IsRendered(filename))
}

// Path returns the public path of the alias: "/static/img/content".
func (a *Alias) Path() string { return "/static/" + string(a.Kind) + "/" + a.Name }

// URL returns the public address of filename (relative to the alias), each segment percent-encoded.
// base replaces the BaseURL of an alias without one.
func (a *Alias) URL(base, filename string) string {
	return a.base(base) + a.Path() + "/" + escapePath(filename)
}

// base returns the start of public addresses. base replaces the BaseURL of an alias without one.
func (a *Alias) base(base string) string {
	if a.BaseURL != "" {
		return a.BaseURL
	}
	return base
}

// URL returns the public address of an object of the storage.
func (r *Redirect) URL(key string) string { return r.Base + "/" + escapePath(key) }

// escapePath percent-encodes each segment of a path.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/")
}

// ContentType returns the media type of an item with an extension (lower case, no dot).
func (a *Alias) ContentType(ext string) string {
	return cmp.Or(a.Types[ext], storagedrivers.ContentType("."+ext))
}

// Typed returns info with the media type that the alias sets for its extension.
func (a *Alias) Typed(info storagedrivers.Info) storagedrivers.Info {
	info.ContentType = cmp.Or(a.Types[naming.Extension(info.Key)], info.ContentType)
	return info
}

// Key returns the key of filename (relative to the alias) in the storage.
func (a *Alias) Key(filename string) string {
	if a.Prefix == "" {
		return filename
	}
	return a.Prefix + "/" + filename
}

// MarkerKey returns the key of the marker of a folder (relative to the alias), which keeps it while
// it has no items; empty if no folder has this name. The marker is an empty object, since not all
// backends have empty folders.
func (a *Alias) MarkerKey(folder string) string {
	key := a.Below(folder) + naming.FolderMarker
	if folder == "" || naming.IsReserved(folder) || storagedrivers.ValidKey(key) != nil {
		return ""
	}
	return key
}

// Below returns the beginning of the keys below a folder (relative to the alias); an empty one is
// the root.
func (a *Alias) Below(folder string) string {
	if folder == "" {
		return a.Key("")
	}
	return a.Key(folder) + "/"
}

// Location returns the location of the items. It does not depend on the name of the storage.
func (a *Alias) Location() storagedrivers.Location { return a.Storage.Location().Join(a.Prefix) }

// Filename is the inverse of [Alias.Key].
func (a *Alias) Filename(key string) string { return key[len(a.Key("")):] }

// RenditionSuffix is the end of the folder names that are reserved for renditions. The items of no
// alias may be kept below such a folder.
const RenditionSuffix = "@renditions"

// HasRenditionFolder reports whether [Alias.RenditionRoot] is reserved for renditions, also if the
// alias has none at present. Otherwise it may be a folder of items.
func (a *Alias) HasRenditionFolder() bool { return a.Kind == Image && a.Prefix != "" }

// StoresRenditions reports whether renditions of an image may be stored, at least its [Thumbnail].
func (a *Alias) StoresRenditions(filename string) bool {
	return a.HasRenditionFolder() && a.IsRendered(filename)
}

// VariantKey returns the key of the variant of an image.
func (a *Alias) VariantKey(filename string) string { return a.Key(filename) + render.Suffix }

// LockName returns the name of the lock of an item.
func (a *Alias) LockName(filename string) string { return a.Location().Join(filename).String() }

// Lock locks items against commits and deletions, until unlock is called.
func (a *Alias) Lock(ctx context.Context, filenames ...string) (unlock func(), err error) {
	return a.lockAll(ctx, a.lockNames(filenames), nil)
}

// Share locks items against deletion and [Alias.Lock], until unlock is called. Several may share
// one.
func (a *Alias) Share(ctx context.Context, filenames ...string) (unlock func(), err error) {
	return a.lockAll(ctx, nil, a.lockNames(filenames))
}

// LockMove locks an item as [Alias.Lock] does, and with it items of another alias, as Lock does if
// that alias overwrites, else as [Alias.Share] does.
func (a *Alias) LockMove(ctx context.Context, filename string, to *Alias, filenames ...string) (unlock func(), err error) {
	exclusive, shared := []string{a.LockName(filename)}, to.lockNames(filenames)
	if to.Overwrite {
		exclusive, shared = append(exclusive, shared...), nil
	}
	return a.lockAll(ctx, exclusive, shared)
}

func (a *Alias) lockNames(filenames []string) []string {
	wanted := make([]string, len(filenames))
	for i, filename := range filenames {
		wanted[i] = a.LockName(filename)
	}
	return wanted
}

// lockAll takes exclusive and shared locks of names, each name once.
func (a *Alias) lockAll(ctx context.Context, exclusive, shared []string) (unlock func(), err error) {
	wanted := slices.Concat(exclusive, shared)
	slices.Sort(wanted) // one order for all, against deadlocks
	var unlocks []func()
	unlock = func() {
		for _, one := range unlocks {
			one()
		}
	}
	for _, name := range slices.Compact(wanted) {
		take := a.Locks.Share
		if slices.Contains(exclusive, name) {
			take = a.Locks.Lock
		}
		one, err := take(ctx, name)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, one)
	}
	return unlock, nil
}

// Actor uploads or deletes an item.
type Actor struct {
	Origin Origin
	// Account is the API key, or the user of the panel; empty if there is none.
	Account string
	// User is the user of a trusted account, by the ID of the login; otherwise empty.
	User string
	// Client is the address of the client; empty if there is none.
	Client string
	// Ticket is the hexadecimal ID of the ticket of the caller; empty for none.
	Ticket string
}

// Owner returns the key by which the requests of an actor share bounded resources.
func (a Actor) Owner() string {
	owner := string(a.Origin) + " " + a.Account
	if a.User != "" { // no API key has a space
		owner += " " + naming.UserFolder(a.User)
	}
	return owner
}

// Party returns the party by which the requests of an actor share bounded resources. That of a
// caller with a ticket has a client.
func (a Actor) Party() queue.Party { return PartyOf(a.Owner(), a.Ticket, a.Client) }

// PartyOf returns the party of an owner and, if ticket is not empty, of the ticket and a client.
func PartyOf(owner, ticket, client string) queue.Party {
	party := queue.Party{Owner: owner}
	if ticket != "" {
		address, _ := netip.ParseAddr(client) // invalid ones are one client
		party.Ticket, party.Client, party.Network = ticket, access.Client(address).String(), access.Network(address).String()
	}
	return party
}

// Origin is where a request comes from.
type Origin string

// The origins.
const (
	OriginHTTP  Origin = "http"  // the endpoints
	OriginS3    Origin = "s3"    // the S3 front
	OriginPanel Origin = "panel" // the administrators' panel
	OriginAdmin Origin = "admin" // Caddy's admin endpoint
	OriginGo    Origin = "go"    // code in the same process
	OriginEnd   Origin = "end"   // the end of an item, without a caller
)

// AnyExtension in place of extensions accepts all names but those that are never accepted, also
// those without one.
const AnyExtension = "*"

// TakesAnything reports whether the alias accepts all names, and all contents: it is for programs.
func (a *Alias) TakesAnything() bool { return a.Extensions[AnyExtension] }

// WithoutRules returns the alias without its rules for names, sizes, content and metadata, and
// without its checks.
func (a *Alias) WithoutRules() *Alias {
	free := *a
	free.MaxSize, free.Extensions = math.MaxInt64, map[string]bool{AnyExtension: true}
	maps.Copy(free.Extensions, a.Extensions) // which may have variants
	free.Sanitize, free.RenameMismatched, free.Imaging.Strip, free.Checks = false, false, imaging.StripOff, nil
	return &free
}
