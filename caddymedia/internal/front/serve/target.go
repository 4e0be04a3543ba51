package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// target is the item, or the rendition of an item, that a path names. The item may not exist.
type target struct {
	alias     *item.Alias
	maker     *derived.Maker
	rendition *item.Rendition // nil for the item itself
	filename  string
	plain     bool           // the rendition cannot be made as WebP
	signed    *signed        // nil for a target that needs no signature
	preview   bool           // for a user of the panel
	object    *ObjectOptions // for another protocol; nil for HTTP
	rest      time.Duration  // until the item expires; 0 if it does not
}

// targetOf returns the target that is an item.
func targetOf(running *service.Service, alias *item.Alias, filename string) target {
	return target{alias: alias, maker: running.Uploader().Derived, filename: filename}
}

// find returns the target of the path after "/static/<kind>/", and false if its alias or rendition
// is unknown.
func find(running *service.Service, kind item.Kind, rest string) (target, bool) {
	name, filename, _ := strings.Cut(rest, "/")
	name, rendition, isRendition := strings.Cut(name, "@")
	alias, ok := running.Alias(kind, name)
	t := targetOf(running, alias, filename)
	if ok && isRendition {
		t.rendition, ok = alias.Rendition(rendition)
	}
	return t, ok
}

// mayExist reports whether the name of the target is one that an item or a rendition may have.
func (t target) mayExist() bool {
	return storagedrivers.ValidKey(t.filename) == nil && !naming.IsReserved(t.filename) &&
		(t.rendition == nil || !t.alias.IsVariant(t.filename))
}

// cacheControl returns the Cache-Control header.
func (t target) cacheControl() string {
	header := t.alias.CacheControl
	switch {
	case t.signed != nil:
		header = t.alias.Private.CacheControl(t.signed.rest())
	case t.rendition != nil:
		header = t.alias.RenditionCacheControl
	}
	if t.rest > 0 {
		return item.BoundAge(header, t.rest)
	}
	return header
}

// redirectCacheControl returns the Cache-Control header of a redirect to an address of that
// lifetime. A rendition has another address in the storage when its image or its settings change,
// and the old one is removed.
func (t target) redirectCacheControl(lifetime time.Duration) string {
	if t.rendition != nil {
		return "private, no-cache"
	}
	return fmt.Sprintf("private, max-age=%d", int(lifetime.Seconds()/2))
}

// redirectLifetime returns the lifetime of the address in the storage, which does not outlive that
// of the request, nor the item.
func (t target) redirectLifetime() time.Duration {
	lifetime := t.alias.Redirect.Lifetime
	if t.signed != nil {
		lifetime = min(lifetime, t.signed.rest())
	}
	if t.rest > 0 {
		lifetime = min(lifetime, t.rest)
	}
	return lifetime
}

// entityTag returns the entity tag of an object of the target. That of a rendition depends on its
// settings, its format and the generation of its image, which are all in the key.
func (t target) entityTag(info storagedrivers.Info) string {
	tag := caller.EntityTag(t.alias, info)
	if t.object != nil {
		return t.object.Tag(tag, info.Size)
	}
	if t.rendition == nil || tag == "" {
		return tag
	}
	sum := sha256.Sum256([]byte(t.rendition.Fingerprint() + " " + info.Key))
	return fmt.Sprintf(`%s-%x"`, strings.TrimSuffix(tag, `"`), sum[:6])
}

// conditions returns a request with the conditions that the target can answer, as http.ServeContent
// reads them: the first line of each header. The settings of a rendition may change without a later
// time.
func (t target) conditions(r *http.Request) *http.Request {
	dropped := t.rendition != nil && r.Header.Get("If-Modified-Since") != ""
	tagged := r.Header.Get("If-Match") != "" || len(r.Header["If-None-Match"]) > 1
	if !dropped && !tagged {
		return r
	}
	r = r.Clone(r.Context())
	if dropped {
		r.Header.Del("If-Modified-Since")
	}
	for _, name := range [...]string{"If-Match", "If-None-Match"} {
		if r.Header[name] != nil {
			r.Header.Set(name, caller.TagsOf(r.Header, name))
		}
	}
	return r
}

// changed returns the error of reading an open object. A rendition is removed when its image is
// replaced, and another one is at its address then.
func (t target) changed(err error) error {
	if t.rendition != nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", storagedrivers.ErrChanged, err)
	}
	return err
}

// request returns the rendition that suits the client.
func (t target) request(r *http.Request) *derived.RenditionRequest {
	return &derived.RenditionRequest{Alias: t.alias, Rendition: t.rendition, Filename: t.filename, WebP: t.negotiated(r)}
}

// isNegotiated reports whether the answer depends on the Accept header.
func (t target) isNegotiated() bool {
	if t.rendition != nil {
		return t.alias.Negotiates(t.rendition, t.filename)
	}
	return t.alias.Negotiate && t.alias.MayHaveVariant(t.filename)
}

// negotiated reports whether the client gets WebP instead of the other format of the rendition.
func (t target) negotiated(r *http.Request) bool {
	return !t.plain && t.alias.Negotiates(t.rendition, t.filename) &&
		prefersWebP(r.Header["Accept"], t.rendition.FileOf(t.filename, false).ContentType())
}

// makeRendition makes the rendition that suits the client. If it cannot be made as WebP, t becomes
// the one in the other format.
func (s *Server) makeRendition(ctx context.Context, running *service.Service, r *http.Request, t *target) error {
	request := t.request(r)
	request.Owner = storagedrivers.Owner(ctx)
	request.Hold = func() (func(), error) {
		_, release, err := running.Acquire()
		return release, err
	}
	err := running.Uploader().Derived.MakeRendition(ctx, request)
	if request.WebP && derived.IsUnrenderable(err) {
		t.plain = true
		return nil
	}
	return err
}

const webpType = "image/webp"

// open returns the item, or its variant if the alias negotiates, the client prefers WebP and the
// item is no HDR photo. It transfers nothing yet if the response may have no body or only a part of
// it. It also returns the item, as far as it was found, also with an error.
func (t target) open(ctx context.Context, r *http.Request) (object *storagedrivers.Object, found storagedrivers.Info, err error) {
	alias, filename := t.alias, t.filename
	from := alias.Storage.OpenSeeker
	if isPartial(r) || alias.Redirect != nil {
		from = alias.Storage.OpenLazy
	}
	if t.rendition != nil {
		return t.request(r).OpenRendition(ctx, from)
	}
	if image, ok := strings.CutSuffix(filename, render.Suffix); ok && (alias.Overwrite || alias.Expires > 0) && alias.IsVariant(filename) {
		if found, err = alias.Storage.Stat(ctx, alias.Key(image)); err == nil {
			object, err = alias.OpenVariant(ctx, image, found, from)
		}
		return object, found, err
	}
	liked := alias.Negotiate && alias.MayHaveVariant(filename) && prefersWebP(r.Header["Accept"], storagedrivers.ContentType(filename))
	first := from
	if liked {
		first = alias.Storage.OpenLazy
	}
	if object, err = first(ctx, alias.Key(filename)); err != nil {
		return nil, found, err
	}
	if found = object.Info; !liked {
		return object, found, nil
	}
	hdr, err := t.maker.IsHDR(ctx, alias, filename, found)
	if err != nil {
		return nil, found, errors.Join(err, object.Close())
	}
	if hdr {
		return object, found, nil
	}
	webp, err := alias.OpenVariant(ctx, filename, found, from)
	if errors.Is(err, fs.ErrNotExist) {
		return object, found, nil
	}
	_ = object.Close() // nothing of it was read
	return webp, found, err
}

// isPartial reports whether the response may contain less than the whole item.
func isPartial(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return true
	}
	for _, name := range [...]string{"Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// prefersWebP reports whether an Accept header names WebP with at least the weight of the item's
// own type. A header that only accepts any image does not count: clients older than WebP send such
// ones.
func prefersWebP(accept []string, itemType string) bool {
	weights := map[string]float64{}
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			mediaRange, params, _ := strings.Cut(element, ";")
			weights[strings.ToLower(strings.TrimSpace(mediaRange))] = weight(params)
		}
	}
	webp := weights[webpType]
	if webp == 0 {
		return false
	}
	for _, mediaRange := range []string{itemType, "image/*", "*/*"} { // the most specific counts, RFC 9110 section 12.5.1
		if item, named := weights[mediaRange]; named {
			return webp >= item
		}
	}
	return true
}

// weight returns the q of a media range; 1 if there is none or it is invalid.
func weight(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			if q, err := strconv.ParseFloat(value, 64); err == nil {
				return q
			}
		}
	}
	return 1
}

// previewOf returns a target that is served here, whatever the alias does with its public
// addresses.
func previewOf(running *service.Service, alias *item.Alias, filename string) target {
	shown := *alias
	shown.Redirect = nil
	shown.CacheControl = "private, max-age=300"
	if alias.Overwrite {
		shown.CacheControl = "private, no-cache"
	}
	shown.RenditionCacheControl = shown.CacheControl
	t := targetOf(running, &shown, filename)
	t.preview = true
	return t
}

// thumbnailOf returns the rendition for lists: a WebP if there is an encoder.
func thumbnailOf(running *service.Service) *item.Rendition {
	thumbnail := item.Thumbnail
	if running.Uploader().Derived.Images.EncodesWebP() {
		thumbnail.Format = imaging.WebP
	}
	return &thumbnail
}
