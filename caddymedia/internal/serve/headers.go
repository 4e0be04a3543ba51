package serve

import (
	"cmp"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// sandbox is the Content-Security-Policy of content that a browser could run. It allows only to
// show the content.
const sandbox = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

func setHeaders(header http.Header, wanted target, info storagedrivers.Info) {
	header.Set("Content-Type", info.ContentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", wanted.cacheControl())
	if tag := wanted.entityTag(info); tag != "" {
		header.Set("ETag", tag)
	}
	if active(mediaType(info)) {
		header.Set("Content-Security-Policy", sandbox)
	}
	if !inline(mediaType(info)) {
		header.Set("Content-Disposition", attachment(path.Base(info.Key)))
	}
	if wanted.signed != nil {
		wanted.signed.setHeaders(header)
	}
	if wanted.preview {
		setPreviewHeaders(header, info)
	}
}

// mediaType returns the content type of an object without parameters.
func mediaType(info storagedrivers.Info) string {
	name, _, _ := strings.Cut(info.ContentType, ";")
	return name
}

// active reports whether a browser may run a type, or render it with links to other sites: HTML,
// SVG and all other XML.
func active(mediaType string) bool {
	return mediaType == "text/html" || strings.HasSuffix(mediaType, "xml")
}

// inlineTypes are the types that are safe for a browser to show on the site, SVG with its policy.
var inlineTypes = map[string]bool{
	"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true,
	"image/avif": true, "image/heic": true, "image/heif": true, "image/bmp": true,
	"image/tiff": true, "image/svg+xml": true, "image/vnd.microsoft.icon": true,
	"application/pdf": true, "text/plain": true,
}

func inline(mediaType string) bool {
	return inlineTypes[mediaType] || strings.HasPrefix(mediaType, "audio/") || strings.HasPrefix(mediaType, "video/")
}

// attachment returns a Content-Disposition that makes a browser save the item under its name, RFC
// 6266. Programs such as wget know the plain form alone, so it stands before an extended one.
func attachment(name string) string {
	value := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	extended, ok := strings.CutPrefix(value, "attachment; filename*=")
	if !ok {
		return cmp.Or(value, "attachment")
	}
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '%' {
			return '_'
		}
		return r
	}, name)
	return mime.FormatMediaType("attachment", map[string]string{"filename": plain}) + "; filename*=" + extended
}

// singleRange matches a Range header with one range that is not empty. The unit has no case.
var singleRange = regexp.MustCompile(`(?i)^bytes=[ \t]*(\d{1,18}-\d{0,18}|-0*[1-9]\d{0,17})[ \t]*$`)

// oneRange returns a request for at most one range of an item of a size. It ignores a Range header
// with another unit or without a valid range, and all ranges of an empty item. It also ignores
// several ranges, RFC 9110 section 14.2: the whole item is cheaper than many small ones.
func oneRange(r *http.Request, size int64) *http.Request {
	const unit = "bytes="
	ranges := r.Header["Range"]
	isOne := len(ranges) == 1 && size > 0 && singleRange.MatchString(ranges[0])
	if ranges == nil || isOne && strings.HasPrefix(ranges[0], unit) {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Del("Range")
	if isOne {
		r.Header.Set("Range", unit+ranges[0][len(unit):])
	}
	return r
}

const pdfType = "application/pdf"

// isPreviewed reports whether pages show a media type.
func isPreviewed(mediaType string) bool {
	class, _, _ := strings.Cut(mediaType, "/")
	return class == "image" || class == "audio" || class == "video" || mediaType == pdfType || isText(mediaType)
}

// isText reports whether a media type is shown as plain text, like HTML and XML.
func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || mediaType == "application/json" || mediaType == "application/xml" ||
		mediaType == "application/x-subrip"
}

// setPreviewHeaders sets the headers of a preview. A PDF is shown in a frame of the page: the viewers of
// Chromium and Firefox work with a sandbox in the header, but not with one in the attribute of the frame.
func setPreviewHeaders(header http.Header, info storagedrivers.Info) {
	framedBy := "'none'"
	switch name := mediaType(info); {
	case isText(name):
		header.Set("Content-Type", "text/plain; charset=utf-8")
	case name == pdfType:
		framedBy = "'self'"
	}
	header.Set("Content-Security-Policy", sandbox+"; frame-ancestors "+framedBy)
	header.Del("Content-Disposition")
}
