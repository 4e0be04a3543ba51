package mediahttp

import (
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

const webpType = "image/webp"

// open returns the item, or its variant if the alias negotiates, the client prefers WebP and the item
// is no HDR photo. It transfers nothing yet if the response may have no body or only a part of it.
func (t target) open(header http.Header, r *http.Request) (*storagedrivers.Object, error) {
	alias, filename := t.alias, t.filename
	from := alias.Storage.OpenSeeker
	if isPartial(r) || alias.Redirect != nil {
		from = alias.Storage.OpenLazy
	}
	if t.rendition != nil {
		return t.openRendition(header, r, from)
	}
	if image, ok := strings.CutSuffix(filename, render.Suffix); ok && alias.Overwrite && alias.IsVariant(filename) {
		info, err := alias.Storage.Stat(r.Context(), alias.Key(image))
		if err != nil {
			return nil, err
		}
		return alias.OpenVariant(r.Context(), image, info, from)
	}
	liked := alias.Negotiate && prefersWebP(r.Header["Accept"], storagedrivers.ContentType(filename))
	first := from
	if liked {
		first = alias.Storage.OpenLazy
	}
	item, err := first(r.Context(), alias.Key(filename))
	if err != nil || !alias.Negotiate || !alias.MayHaveVariant(filename) {
		return item, err
	}
	header.Add("Vary", "Accept") // whichever it will be
	if !liked {
		return item, nil
	}
	hdr, err := derived.IsHDR(r.Context(), alias, filename, item.Info)
	if err != nil {
		return nil, errors.Join(err, item.Close())
	}
	if hdr {
		return item, nil
	}
	webp, err := alias.OpenVariant(r.Context(), filename, item.Info, from)
	if errors.Is(err, fs.ErrNotExist) {
		return item, nil
	}
	_ = item.Close() // nothing of it was read
	return webp, err
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
