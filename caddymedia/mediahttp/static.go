package mediahttp

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/storagedrivers"
)

// sandbox is the Content-Security-Policy of content that a browser could run. It allows only to
// show the content.
const sandbox = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

// maxOpens is how often an item that is being replaced is opened for one request.
const maxOpens = 5

// static returns an endpoint that serves an item; rest is the path after "/static/<kind>/".
func (h *Handler) static(kind item.Kind, rest string) endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		wanted, ok := find(running, kind, rest)
		if ok && wanted.alias.NeedsSignature(wanted.filename, wanted.rendition) {
			if valid, err := h.verify(running, r, &wanted); !valid {
				return h.refuseUnsigned(running, w, r, err)
			}
		}
		var err error
		if ok && wanted.mayExist() && !encodedSlash(r.URL) {
			err = h.serveStatic(running, w, r, wanted)
		} else {
			err = staticError(w, http.StatusNotFound, fs.ErrNotExist)
		}
		if err != nil && wanted.signed != nil {
			w.Header().Set("Cache-Control", "no-store")
		}
		return err
	}
}

// serveStatic serves a target, whose rendition it makes if necessary.
func (h *Handler) serveStatic(running *service.Service, w http.ResponseWriter, r *http.Request, wanted target) error {
	ctx := r.Context()
	if !wanted.preview { // whose owner is a user
		ctx = storagedrivers.WithOwner(ctx, clientOwner(h.options.Client(r)))
	}
	r = r.WithContext(ctx)
	running.Observer().Requested(ctx, wanted.alias, wanted.filename)
	admitted := &admission{limit: running.Limits().MaxOpenItems}
	defer admitted.end()
	var err error
	before := maps.Clone(w.Header())
	for range maxOpens {
		if err = h.serve(running, w, r, wanted, admitted); err == nil {
			return nil
		}
		clear(w.Header())
		maps.Copy(w.Header(), before)
		if errors.Is(err, derived.ErrNotMade) {
			admitted.end() // making it has its own bounds
			failed := h.makeRendition(running, r, &wanted)
			if failed == nil {
				continue // with err as the error of the last attempt
			}
			if made, ok := errors.AsType[*derived.UnstoredError](failed); ok && wanted.preview {
				wanted.sendUnstored(w, r, made.File)
				return nil
			}
			err = failed
		}
		if !errors.Is(err, storagedrivers.ErrChanged) {
			break
		}
	}
	if errors.Is(err, errClientBusy) || errors.Is(err, errAllBusy) {
		return h.tooMany(running, w, r, err)
	}
	return storageFailed(running, w, r, err)
}

// serve sends an item after its admission, or a redirect, which needs no admission because it reads
// no source. The admission ends early if the source is closed early. On an error nothing was sent.
func (h *Handler) serve(
	running *service.Service, w http.ResponseWriter, r *http.Request, wanted target, admitted *admission,
) error {
	alias := wanted.alias
	if alias.Redirect == nil {
		if err := h.enter(admitted, r); err != nil {
			return err
		}
	}
	object, err := wanted.open(w.Header(), r)
	if err != nil {
		return err
	}
	defer object.Close()
	redirects := alias.Redirect != nil && !active(mediaType(object.Info)) // as the storage would serve it
	object.Info = alias.Typed(object.Info)
	if redirects {
		sent, err := h.elsewhere(w, r, wanted, object.Info)
		if sent || err != nil {
			return err
		}
	}
	if err := h.enter(admitted, r); err != nil {
		return err
	}
	setHeaders(w.Header(), wanted, object.Info)
	out := newItemWriter(w, object, admitted.end)
	http.ServeContent(out, wanted.conditions(oneRange(r, object.Info.Size)), "", object.Info.ModTime, object)
	if err := out.finish(); err != nil {
		return wanted.changed(err)
	}
	running.Observer().Served(r.Context(), alias, out.sent)
	if out.short(r.Method) {
		h.abort(r.Context(), running, out)
	}
	return nil
}

// storageFailed responds with the status of a storage's error.
func storageFailed(running *service.Service, w http.ResponseWriter, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return nil //nolint:nilerr // the client is gone
	}
	status := staticStatus(err)
	if slow, ok := errors.AsType[*derived.SlowError](err); ok {
		httpx.RetryAfter(w, slow.RetryAfter)
	} else if errors.Is(err, render.ErrBusy) {
		httpx.RetryAfter(w, httpx.BusyRetry)
	}
	if status >= http.StatusInternalServerError {
		running.Observer().Failed(r.Context(), "static", strconv.Itoa(status))
	}
	return staticError(w, status, err)
}

// abort closes the connection, or the stream, of a response that cannot be completed; a compressed
// response would otherwise look complete to the client. The service has not failed if the client
// has disconnected or does not read.
func (h *Handler) abort(ctx context.Context, running *service.Service, out *itemWriter) {
	status, level := "broken", slog.LevelError
	if out.aborted(ctx) {
		status, level = "aborted", slog.LevelDebug
	}
	running.Observer().Failed(ctx, "static", status)
	h.options.Log.Log(ctx, level, "sending an item", "key", out.object.Info.Key,
		"sent", out.sent, "promised", out.promised, "error", out.err)
	panic(http.ErrAbortHandler)
}

// staticError leaves the response to the caller of [Handler.Serve], such as a site's handle_errors.
func staticError(w http.ResponseWriter, status int, err error) error {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return &Error{Status: status, Err: err}
}

// encodedSlash reports whether a path contains %2F, which some servers decode as a separator and
// others do not. No item has such an address.
func encodedSlash(u *url.URL) bool {
	return strings.Contains(strings.ToLower(u.EscapedPath()), "%2f")
}

// staticStatus returns the status for an error. It distinguishes a missing item from an unreachable
// storage.
func staticStatus(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, storagedrivers.ErrInvalidKey):
		return http.StatusNotFound
	case errors.Is(err, storagedrivers.ErrUnavailable), errors.Is(err, storagedrivers.ErrClosed),
		errors.Is(err, storagedrivers.ErrChanged), errors.Is(err, render.ErrBusy), errors.Is(err, derived.ErrNotMade):
		return http.StatusServiceUnavailable
	case errors.Is(err, storagedrivers.ErrNoSpace):
		return http.StatusInsufficientStorage
	case derived.IsUnrenderable(err):
		return http.StatusUnsupportedMediaType
	default:
		return http.StatusBadGateway
	}
}

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
