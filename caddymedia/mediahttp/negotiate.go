package mediahttp

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

const webpType = "image/webp"

// open gives the item, or where the alias negotiates and the client likes it as well, its
// variant.
func open(header http.Header, r *http.Request, alias *ingest.Alias, filename string) (*storagedrivers.Object, error) {
	item, err := alias.Storage.OpenSeeker(r.Context(), alias.Key(filename))
	if err != nil || !alias.Negotiate || !hasVariants[item.Info.ContentType] {
		return item, err
	}
	header.Add("Vary", "Accept") // whichever it will be
	if !prefersWebP(r.Header["Accept"], item.Info.ContentType) {
		return item, nil
	}
	variant, err := openVariant(r.Context(), alias, filename, item.Info)
	if errors.Is(err, fs.ErrNotExist) {
		return item, nil
	}
	_ = item.Close() // nothing of it was read
	return variant, err
}

// hasVariants are the types that a variant is made of.
var hasVariants = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true}

// openVariant gives the variant unless there is none, or it is that of an earlier item of
// the name and the new one's is still on its way: fs.ErrNotExist.
func openVariant(ctx context.Context, alias *ingest.Alias, filename string, item storagedrivers.Info) (*storagedrivers.Object, error) {
	variant, err := alias.Storage.OpenSeeker(ctx, alias.VariantKey(filename))
	if err != nil {
		return nil, err
	}
	if variant.Info.ModTime.Before(item.ModTime) {
		return nil, errors.Join(fs.ErrNotExist, variant.Close())
	}
	return variant, nil
}

// prefersWebP tells whether an Accept header names WebP and gives it no less weight than
// the item's own type. One that merely accepts any image does not: such clients were there
// before WebP.
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

// weight reads the q of a media range; without a readable one it is 1.
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
