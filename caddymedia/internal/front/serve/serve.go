// Package serve answers GET requests of stored items, their variants and their renditions: whole or
// in parts, by signed addresses, as previews of the panel, or by a redirect to the storage. It
// changes nothing but renditions that are made on request; lists and changes of items are in
// package items. Begin with [Server.Static] and its target.
package serve

import (
	"bytes"
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
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// maxOpens is how often an item that is being replaced is opened for one request.
const maxOpens = 5

// Server serves the items of the services of a gate.
type Server struct {
	*caller.Gate

	admissions *admissions
	unsigned   sync.Map // paths of aliases that should redirect and were found not to
}

// New returns a server. All servers of the process share the bound of open items.
func New(gate *caller.Gate) *Server {
	return &Server{Gate: gate, admissions: allAdmissions()}
}

// Static returns an endpoint that serves an item; rest is the path after "/static/<kind>/".
func (s *Server) Static(kind item.Kind, rest string) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		wanted, ok := find(running, kind, rest)
		if ok && wanted.alias.NeedsSignature(wanted.filename, wanted.rendition) {
			if valid, err := s.verify(running, r, &wanted); !valid {
				return s.refuseUnsigned(running, w, r, err)
			}
		}
		if !ok || !wanted.mayExist() || encodedSlash(r.URL) {
			return staticError(w, http.StatusNotFound, fs.ErrNotExist)
		}
		return s.serveStatic(running, w, r, wanted)
	}
}

// Preview serves an item to a page of the panel: an image, a film, a sound, a PDF or a text, which
// is plain text then. With thumbnail it serves the thumbnail of an image, and makes it if
// necessary. No browser runs the answer or keeps it for others. The request is authenticated, so it
// needs no signature. path is the escaped path after the kind: "<alias>/<filename>". The error is
// an *[httpx.Error]; then nothing was written.
func (s *Server) Preview(w http.ResponseWriter, r *http.Request, kind item.Kind, path string, thumbnail bool) error {
	return s.Answer(w, r, func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		address, problem := caller.AddressBelow(path)
		alias, ok := running.Alias(kind, address.Alias)
		if problem != "" || !ok {
			return staticError(w, http.StatusNotFound, fs.ErrNotExist)
		}
		wanted := previewOf(running, alias, address.Filename)
		if thumbnail {
			wanted.rendition = thumbnailOf(running)
		}
		if !wanted.mayExist() || !isPreviewed(mediaType(alias.Typed(storagedrivers.Info{
			Key: address.Filename, ContentType: storagedrivers.ContentType(address.Filename),
		}))) {
			return staticError(w, http.StatusNotFound, fs.ErrNotExist)
		}
		return s.serveStatic(running, w, r, wanted)
	})
}

// ObjectOptions are how another protocol than HTTP answers with an item.
type ObjectOptions struct {
	// Tag returns the entity tag of an item, of that of HTTP and the size.
	Tag func(tag string, size int64) string
	// Header changes the header of the answer.
	Header func(http.Header)
	// IsVisitor means that the caller has the item's address only, so its client counts and not the
	// owner.
	IsVisitor bool
}

// Object serves an item to a caller that is authenticated, never its variant and never by a
// redirect. The context of r has the owner. The error is an *[httpx.Error]; then nothing was
// written.
func (s *Server) Object(running *service.Service, w http.ResponseWriter, r *http.Request, alias *item.Alias, filename string, options ObjectOptions) error {
	shown := *alias
	shown.Redirect, shown.Negotiate, shown.CacheControl = nil, false, "private"
	wanted := targetOf(running, &shown, filename)
	wanted.object = &options
	return s.serveStatic(running, w, r, wanted)
}

// serveStatic serves a target, whose rendition it makes if necessary.
func (s *Server) serveStatic(running *service.Service, w http.ResponseWriter, r *http.Request, wanted target) error {
	ctx := r.Context()
	if !wanted.preview && (wanted.object == nil || wanted.object.IsVisitor) { // others have a user or an account
		ctx = storagedrivers.WithOwner(ctx, clientOwner(s.Client(r)))
	}
	running.Observer().Requested(ctx, wanted.alias, wanted.filename)
	admitted := &admission{limit: running.Limits().MaxOpenItems}
	defer admitted.end()
	if wanted.isNegotiated() {
		w.Header().Add("Vary", "Accept") // also without the item, and whichever it will be
	}
	var err error
	before := maps.Clone(w.Header())
	for range maxOpens {
		if err = s.serve(ctx, running, w, r, wanted, admitted); err == nil {
			return nil
		}
		clear(w.Header())
		maps.Copy(w.Header(), before)
		if errors.Is(err, derived.ErrNotMade) {
			admitted.end() // making it has its own bounds
			failed := s.makeRendition(ctx, running, r, &wanted)
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
		return s.tooMany(running, w, r, err)
	}
	return storageFailed(running, w, r, err)
}

// serve sends an item after its admission, or a redirect, which needs no admission because it reads
// no source. The admission ends early if the source is closed early. On an error nothing was sent.
func (s *Server) serve(
	ctx context.Context, running *service.Service, w http.ResponseWriter, r *http.Request, wanted target, admitted *admission,
) error {
	alias := wanted.alias
	if alias.Redirect == nil {
		if err := s.enter(ctx, admitted, r.Method); err != nil {
			return err
		}
	}
	object, found, err := wanted.open(ctx, r)
	if object != nil {
		defer object.Close()
	}
	if alias.Expires > 0 {
		rest, ends := alias.Rest(found, running.Uploader().Now())
		if ends && rest <= 0 {
			return item.ErrExpired
		}
		wanted.rest = rest
	}
	if err != nil {
		return err
	}
	redirects := alias.Redirect != nil && !active(mediaType(object.Info)) // as the storage would serve it
	object.Info = alias.Typed(object.Info)
	if redirects {
		sent, err := s.elsewhere(ctx, w, r, wanted, object.Info)
		if sent || err != nil {
			return err
		}
	}
	if err := s.enter(ctx, admitted, r.Method); err != nil {
		return err
	}
	setHeaders(w.Header(), wanted, object.Info)
	out := newItemWriter(w, object, admitted.end)
	http.ServeContent(out, wanted.conditions(oneRange(r, object.Info.Size)), "", object.Info.ModTime, object)
	if err := out.finish(); err != nil {
		return wanted.changed(err)
	}
	running.Observer().Served(ctx, alias, out.sent)
	if out.short(r.Method) {
		s.abort(ctx, running, out)
	}
	return nil
}

// elsewhere redirects a GET request of an alias that redirects to the storage, and reports whether
// it did. HEAD is not redirected, because a signature is for one method.
func (s *Server) elsewhere(
	ctx context.Context, w http.ResponseWriter, r *http.Request, wanted target, info storagedrivers.Info,
) (bool, error) {
	alias := wanted.alias
	if r.Method != http.MethodGet || active(mediaType(info)) {
		return false, nil
	}
	lifetime := wanted.redirectLifetime()
	if lifetime < time.Second && (wanted.signed != nil || wanted.rest > 0) {
		return false, nil // the address, or the item, has just expired
	}
	address, err := location(ctx, wanted, info, lifetime)
	if errors.Is(err, errors.ErrUnsupported) {
		if _, known := s.unsigned.LoadOrStore(alias.Path(), true); !known {
			s.Log.Warn("serving an item instead of redirecting", "kind", alias.Kind.Name(), "alias", alias.Name, "error", err)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Location contains a signature, so shared caches must not store it.
	w.Header().Set("Cache-Control", wanted.redirectCacheControl(lifetime))
	w.Header().Set("Location", address)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusFound)
	return true, nil
}

// location returns the address of an item in the storage, which serves it with the same headers.
func location(ctx context.Context, wanted target, info storagedrivers.Info, lifetime time.Duration) (string, error) {
	alias := wanted.alias
	if alias.Redirect.Base != "" {
		return alias.Redirect.URL(info.Key), nil
	}
	opts := storagedrivers.PresignOptions{
		Lifetime: lifetime, ContentType: info.ContentType, CacheControl: wanted.cacheControl(),
	}
	if !wanted.isShown(info) {
		opts.Disposition = Attachment(path.Base(info.Key))
	}
	if wanted.signed != nil && wanted.signed.download != "" {
		opts.Disposition = Attachment(wanted.signed.download)
	}
	return alias.Storage.Presign(ctx, info.Key, opts)
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
func (s *Server) abort(ctx context.Context, running *service.Service, out *itemWriter) {
	status, level := "broken", slog.LevelError
	if out.aborted(ctx) {
		status, level = "aborted", slog.LevelDebug
	}
	running.Observer().Failed(ctx, "static", status)
	s.Log.Log(ctx, level, "sending an item", "key", out.object.Info.Key,
		"sent", out.sent, "promised", out.promised, "error", out.err)
	panic(http.ErrAbortHandler)
}

// staticError leaves the response to the caller of mediahttp.Handler.Serve, such as a site's
// handle_errors. No cache stores it: without Cache-Control, one may keep a 404 for hours, while the
// item of an address that was asked for too early is uploaded a moment later.
func staticError(w http.ResponseWriter, status int, err error) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return &httpx.Error{Status: status, Err: err}
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
	case errors.Is(err, item.ErrExpired):
		return http.StatusGone
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

// sendUnstored sends a thumbnail that was made but cannot be stored. It has no tag, and is made
// again for the next request.
func (t target) sendUnstored(w http.ResponseWriter, r *http.Request, file []byte) {
	extension := t.rendition.FileOf(t.filename, false).Format.Extension()
	setHeaders(w.Header(), t, storagedrivers.Info{ContentType: storagedrivers.ContentType("." + extension)})
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
}

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
	if wanted.object != nil {
		wanted.object.Header(header)
	}
	sent := header.Get("Content-Type")
	if active(mediaType(info)) || wanted.isOpaque() || sent != info.ContentType && !isSafe(sent) {
		header.Set("Content-Security-Policy", sandbox)
	}
	if !wanted.isShown(info) && header.Get("Content-Disposition") == "" {
		header.Set("Content-Disposition", Attachment(path.Base(info.Key)))
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
// SVG and all other XML, which XSL is too for some.
func active(mediaType string) bool {
	return mediaType == "text/html" || mediaType == "text/xsl" || strings.HasSuffix(mediaType, "xml")
}

// isSafe reports whether a browser only shows a type that a client has chosen. All others may be
// active: browsers forgive much, sniff what is no type at all, and take the parts of a multipart
// type for pages.
func isSafe(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && inline(kind) && !active(kind)
}

// inlineTypes are the types that are safe for a browser to show on the site, SVG with its policy.
var inlineTypes = map[string]bool{
	"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true,
	"image/avif": true, "image/heic": true, "image/heif": true, "image/bmp": true,
	"image/tiff": true, "image/svg+xml": true, "image/vnd.microsoft.icon": true,
	"application/pdf": true, "text/plain": true,
}

// isShown reports whether a browser may show an object of the target in place of saving it.
// Unchecked content is saved.
func (t target) isShown(info storagedrivers.Info) bool {
	return !t.isOpaque() && inline(mediaType(info))
}

// isOpaque reports whether the content is unchecked. Programs of S3 choose its headers.
func (t target) isOpaque() bool { return t.alias.TakesAnything() && t.object == nil }

func inline(mediaType string) bool {
	return inlineTypes[mediaType] || strings.HasPrefix(mediaType, "audio/") || strings.HasPrefix(mediaType, "video/")
}

// Attachment returns a Content-Disposition that makes a browser save the item under its name, RFC
// 6266. Programs such as wget know the plain form alone, so it stands before an extended one.
func Attachment(name string) string {
	if plainName(name) {
		return "attachment; filename=" + name
	}
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

// plainName reports whether a name needs no quotes in a header.
func plainName(name string) bool {
	return name != "" && strings.TrimFunc(name, func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_'
	}) == ""
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

// setPreviewHeaders sets the headers of a preview. A PDF is shown in a frame of the page: the
// viewers of Chromium and Firefox work with a sandbox in the header, but not with one in the
// attribute of the frame.
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
