package api

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/storagedrivers"
)

type itemAnswer struct {
	Filename string `json:"filename"`
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	Modified string `json:"modified"`
	// ETag is empty if it is no condition, and in a list of a storage without tags that lists
	// rounded times.
	ETag    string         `json:"etag,omitempty"`
	Type    string         `json:"type"`
	Address string         `json:"address"`
	WebP    *variantAnswer `json:"webp,omitempty"`
	// Renditions are the addresses of the renditions by their names.
	Renditions map[string]string `json:"renditions,omitempty"`
	// Sizes of the image and of its renditions, in ascending order; only of a single item.
	Sizes []sizeAnswer `json:"sizes,omitempty"`
	// Srcset is the value of the attribute, with the addresses as in Address.
	Srcset  string `json:"srcset,omitempty"`
	Private bool   `json:"private,omitempty"`
	// Query makes the addresses of a private item valid for an hour; only of a single item, and empty
	// if they cannot be signed.
	Query string `json:"query,omitempty"`
}

type sizeAnswer struct {
	Rendition string `json:"rendition"` // empty for the image itself
	Address   string `json:"address"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
}

type variantAnswer struct {
	Address string `json:"address"`
	Size    int64  `json:"size"`
}

func describeItem(alias *media.Alias, filename string, info storagedrivers.Info) itemAnswer {
	answer := itemAnswer{
		Filename: filename, Name: path.Base(filename), Size: info.Size,
		Modified: stamp(info.ModTime), Type: alias.Typed(info).ContentType,
		Address: alias.URL("", filename), Renditions: alias.RenditionURLs("", filename),
		Private: alias.Private != nil,
	}
	if tag := mediahttp.EntityTag(alias, info); mediahttp.Identifies(alias, tag) {
		answer.ETag = tag
	}
	return answer
}

// alias returns the alias named in the address.
func (c *call) alias() (*media.Alias, error) {
	alias, ok := c.service.Alias(media.Kind(c.args[0]), c.args[1])
	if !ok {
		return nil, failf(http.StatusNotFound, "There is no alias %.64q of this kind.", c.args[1])
	}
	return alias, nil
}

// aliasFile returns the alias and the item named in the address.
func (c *call) aliasFile() (*media.Alias, string, error) {
	alias, err := c.alias()
	if err != nil {
		return nil, "", err
	}
	filename := c.args[2]
	if !alias.MayBeItem(filename) {
		return nil, "", noItem()
	}
	return alias, filename, nil
}

func noItem() error { return failf(http.StatusNotFound, "There is no such item.") }

// itemFailed returns the failure for an item that cannot be read or deleted.
func (c *call) itemFailed(alias *media.Alias, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storagedrivers.ErrInvalidKey) {
		return noItem()
	}
	return storageFailed(c.app.Driver(alias.Storage.Name()).Describe(), err)
}

// item returns one item with its variant and sizes.
func (c *call) item() error {
	alias, filename, err := c.aliasFile()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	info, err := alias.Storage.Stat(ctx, alias.Key(filename))
	if err != nil {
		return c.itemFailed(alias, err)
	}
	item := describeItem(alias, filename, info)
	if alias.MayHaveVariant(filename) {
		made, err := alias.Storage.Stat(ctx, alias.VariantKey(filename))
		if err == nil {
			item.WebP = &variantAnswer{Address: item.Address + media.VariantSuffix, Size: made.Size}
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrInvalidKey) {
			return c.itemFailed(alias, err)
		}
	}
	sizes, srcset := c.service.ImageSizes(ctx, alias, filename)
	for _, size := range sizes {
		answer := sizeAnswer{Address: size.URL, Width: size.Width, Height: size.Height}
		if size.Rendition != nil {
			answer.Rendition = size.Rendition.Name
		}
		if size.Width > 0 { // an SVG has no size in pixels
			item.Sizes = append(item.Sizes, answer)
		}
	}
	slices.SortStableFunc(item.Sizes, func(a, b sizeAnswer) int {
		return cmp.Or(cmp.Compare(a.Width, b.Width), cmp.Compare(a.Height, b.Height))
	})
	item.Srcset = srcset
	if alias.Private != nil {
		signed, err := c.service.Sign(ctx, media.SignRequest{Kind: alias.Kind, Alias: alias.Name, Filenames: []string{filename}})
		if err == nil { // otherwise the token store is down, which the page of the storages shows
			_, item.Query, _ = strings.Cut(signed[0].URL, "?")
		}
	}
	return c.answer(item)
}

// deleteItem deletes an item and its variant.
func (c *call) deleteItem() error {
	alias, filename, err := c.aliasFile()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	if err := c.service.Uploader().Delete(ctx, alias, filename, c.actor()); err != nil {
		return c.itemFailed(alias, err)
	}
	return c.noContent()
}

const (
	cachePreview = "private, max-age=300"
	cacheAsk     = "private, no-cache"
	plainText    = "text/plain; charset=utf-8"
	pdf          = "application/pdf"

	previewSandbox = mediahttp.Sandbox + "; frame-ancestors 'none'"
	// A PDF is shown in a frame of the page. The viewers of Chromium and Firefox work with a sandbox
	// in the header, but not with one in the attribute of the frame.
	framedSandbox = mediahttp.Sandbox + "; frame-ancestors 'self'"
)

// previewType returns the media type of the preview of a file, "" if there is none. All texts are
// plain, also HTML and XML.
func previewType(filename string) string {
	contentType := storagedrivers.ContentType(filename)
	name, _, _ := strings.Cut(contentType, ";")
	class, _, _ := strings.Cut(name, "/")
	switch {
	case class == "image", class == "audio", class == "video", name == pdf:
		return contentType
	case class == "text", name == "application/json", name == "application/xml", name == "application/x-subrip":
		return plainText
	}
	return ""
}

// preview serves a small form of an image for a page, with the query "thumbnail" one for a list of
// items. A film, a sound, a PDF or a text is served as it is.
func (c *call) preview() error {
	alias, filename, err := c.aliasFile()
	if err != nil {
		return err
	}
	contentType := previewType(filename)
	if contentType == "" {
		return noItem()
	}
	content, err := c.openPreview(alias, filename, contentType)
	if errors.Is(err, media.ErrBusy) {
		c.w.Header().Set("Retry-After", "5")
		return failf(http.StatusServiceUnavailable, "Too many images are being worked on. Try again in a few seconds.")
	}
	if err != nil {
		return c.itemFailed(alias, err)
	}
	defer content.Close()
	if strings.HasPrefix(contentType, "image/") {
		contentType = content.Info.ContentType // that of the variant, rendition or thumbnail
	}
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", previewSandbox)
	if contentType == pdf {
		h.Set("Content-Security-Policy", framedSandbox)
	}
	h.Set("Cache-Control", cachePreview)
	if alias.Overwrite {
		h.Set("Cache-Control", cacheAsk)
	}
	if tag := mediahttp.EntityTag(alias, content.Info); tag != "" {
		h.Set("ETag", tag)
	}
	if strings.Contains(c.r.Header.Get("Range"), ",") { // no player needs several ranges
		c.r.Header.Del("Range")
	}
	sent := &sentPreview{ReadSeeker: content}
	// Without the writer's ReadFrom, for which Caddy allocates a buffer per 64 KiB.
	http.ServeContent(struct{ http.ResponseWriter }{c.w}, c.r, "", content.Info.ModTime, sent)
	if sent.err != nil {
		c.abort("sending a preview", alias, sent.err, zap.String("filename", filename))
	}
	return nil
}

// sentPreview records the first error of reading a preview, which http.ServeContent does not return.
type sentPreview struct {
	io.ReadSeeker
	err error
}

func (p *sentPreview) Read(b []byte) (int, error) {
	n, err := p.ReadSeeker.Read(b)
	if p.err == nil && !errors.Is(err, io.EOF) {
		p.err = err
	}
	return n, err
}

// openPreview opens the content of a preview.
func (c *call) openPreview(alias *media.Alias, filename, contentType string) (*media.PreviewContent, error) {
	if !strings.HasPrefix(contentType, "image/") {
		object, err := alias.Storage.OpenLazy(c.r.Context(), alias.Key(filename))
		if err != nil {
			return nil, err
		}
		return &media.PreviewContent{ReadSeekCloser: object, Info: object.Info}, nil
	}
	return c.service.OpenPreview(c.r.Context(), media.Preview{
		Alias: alias, Filename: filename, Thumbnail: c.r.URL.Query().Has("thumbnail"),
		Owner: "panel " + c.actor().Client,
	})
}

type itemsAnswer struct {
	Kind     media.Kind   `json:"kind"`
	Alias    string       `json:"alias"`
	Folder   string       `json:"folder"`
	Folders  []string     `json:"folders"`
	Items    []itemAnswer `json:"items"`
	Next     string       `json:"next"`
	LookedAt int          `json:"looked_at"`
}

const (
	// Entries per page.
	defaultLimit = 60
	maxLimit     = 200
	// The maximum number of objects examined for one answer to a search.
	maxLooked = 5000
	// The maximum number of objects examined for another order than by name.
	maxOrdered = 100_000
	// The maximum time for one page of everything below a folder.
	maxSearchTime = 5 * time.Second
)

// limitOf returns the maximum number of entries of a page.
func limitOf(query url.Values) (int, error) {
	raw := query.Get("limit")
	if raw == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(raw)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, failf(http.StatusBadRequest, "The limit is a number from 1 to %d.", maxLimit)
	}
	return limit, nil
}

func badCursor() error {
	return failf(http.StatusBadRequest, "The cursor is not from an earlier answer.")
}

// items returns a page of the items of a folder, or of those below it.
func (c *call) items() error {
	alias, err := c.alias()
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
	folder := query.Get("folder")
	if folder != "" && storagedrivers.ValidKey(folder) != nil {
		return failf(http.StatusBadRequest, "The folder is invalid: separate folders by single slashes, without a slash at the beginning or the end.")
	}
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	order := media.Order(cmp.Or(query.Get("order"), string(media.ByName)))
	if !slices.Contains(media.Orders(), order) {
		return failf(http.StatusBadRequest, "The order is name, -name, modified or -modified.")
	}
	recursive := query.Get("recursive")
	if recursive != "" && recursive != "0" && recursive != "1" {
		return failf(http.StatusBadRequest, "The parameter recursive is 1 or 0.")
	}
	maxExamined := maxLooked
	if order != media.ByName { // each page needs the whole list
		maxExamined = maxOrdered
	}
	ctx, cancel := c.bounded()
	defer cancel()
	page, err := media.ListItems(ctx, media.ItemQuery{
		Alias: alias, Folder: folder, Search: query.Get("search"), Recursive: recursive == "1", Order: order, Limit: limit,
		Cursor: query.Get("cursor"), MaxExamined: maxExamined, MaxTime: maxSearchTime,
	})
	switch {
	case errors.Is(err, media.ErrCursor):
		return badCursor()
	case errors.Is(err, media.ErrUnordered):
		return failf(http.StatusBadRequest, "This list has the order name only: it has more than 10,000 items or 100,000 objects, or its storage is slow.")
	case err != nil:
		return storageFailed(c.app.Driver(alias.Storage.Name()).Describe(), err)
	}
	answer := itemsAnswer{
		Kind: alias.Kind, Alias: alias.Name, Folder: folder, Folders: make([]string, len(page.Folders)),
		Items: make([]itemAnswer, len(page.Items)), Next: page.Next, LookedAt: page.Examined,
	}
	for i, below := range page.Folders {
		answer.Folders[i] = path.Base(below)
	}
	listsTags := alias.Storage.Features().ListTimes // of which the tags are made
	for i, info := range page.Items {
		answer.Items[i] = describeItem(alias, alias.Filename(info.Key), info)
		if info.ETag == "" && !listsTags {
			answer.Items[i].ETag = ""
		}
	}
	return c.answer(answer)
}
