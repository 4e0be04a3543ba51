package api

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

type itemAnswer struct {
	Filename string         `json:"filename"`
	Name     string         `json:"name"`
	Size     int64          `json:"size"`
	Modified string         `json:"modified"`
	Type     string         `json:"type"`
	Address  string         `json:"address"`
	WebP     *variantAnswer `json:"webp,omitempty"`
	// Renditions are the addresses of the renditions by their names.
	Renditions map[string]string `json:"renditions,omitempty"`
	// Sizes of the image and of its renditions, in ascending order; only of a single item.
	Sizes []sizeAnswer `json:"sizes,omitempty"`
	// Srcset is the value of the attribute, with the addresses as in Address.
	Srcset string `json:"srcset,omitempty"`
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

func describeItem(alias *aliases.Alias, filename string, info storagedrivers.Info) itemAnswer {
	return itemAnswer{
		Filename: filename, Name: path.Base(filename), Size: info.Size,
		Modified: info.ModTime.UTC().Format(time.RFC3339), Type: info.ContentType,
		Address: alias.URL("", filename), Renditions: alias.RenditionURLs("", filename),
	}
}

// alias returns the alias named in the address.
func (c *call) alias() (*aliases.Alias, error) {
	alias, ok := c.service.Alias(aliases.Kind(c.args[0]), c.args[1])
	if !ok {
		return nil, failf(http.StatusNotFound, "There is no alias %.64q of this kind.", c.args[1])
	}
	return alias, nil
}

// aliasFile returns the alias and the item named in the address.
func (c *call) aliasFile() (*aliases.Alias, string, error) {
	alias, err := c.alias()
	if err != nil {
		return nil, "", err
	}
	filename := c.args[2]
	if alias.IsVariant(filename) || storagedrivers.ValidKey(alias.Key(filename)) != nil ||
		storagedrivers.ValidKey(filename) != nil {
		return nil, "", noItem()
	}
	return alias, filename, nil
}

func noItem() error { return failf(http.StatusNotFound, "There is no such item.") }

// itemFailed returns the failure for an item that cannot be read or deleted.
func (c *call) itemFailed(alias *aliases.Alias, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storagedrivers.ErrInvalidKey) {
		return noItem()
	}
	return storageFailed(c.driver(alias), err)
}

func (c *call) driver(alias *aliases.Alias) storagedrivers.Description {
	return c.app.Driver(alias.Storage.Name()).Describe()
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
	if alias.IsVariant(filename + render.Suffix) {
		made, err := alias.Storage.Stat(ctx, alias.VariantKey(filename))
		if err == nil {
			item.WebP = &variantAnswer{Address: item.Address + render.Suffix, Size: made.Size}
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrInvalidKey) {
			return c.itemFailed(alias, err)
		}
	}
	if alias.Kind == aliases.Image {
		sizes, _ := c.service.Uploader().Derived.Sizes(ctx, alias, filename) // a damaged image has none
		item.Srcset, item.Sizes = derived.Srcset(sizes), describeSizes(sizes)
	}
	return c.answer(item)
}

// describeSizes returns the sizes in pixels in ascending order, without those that have none.
func describeSizes(sizes []derived.Size) []sizeAnswer {
	slices.SortStableFunc(sizes, func(a, b derived.Size) int {
		return cmp.Or(cmp.Compare(a.Width, b.Width), cmp.Compare(a.Height, b.Height))
	})
	var described []sizeAnswer
	for _, size := range sizes {
		answer := sizeAnswer{Address: size.URL, Width: size.Width, Height: size.Height}
		if size.Rendition != nil {
			answer.Rendition = size.Rendition.Name
		}
		if size.Width > 0 {
			described = append(described, answer)
		}
	}
	return described
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
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

type itemsAnswer struct {
	Kind     aliases.Kind `json:"kind"`
	Alias    string       `json:"alias"`
	Folder   string       `json:"folder"`
	Folders  []string     `json:"folders"`
	Items    []itemAnswer `json:"items"`
	Next     string       `json:"next"`
	LookedAt int          `json:"looked_at"`
}

// Items per page.
const (
	defaultLimit = 60
	maxLimit     = 200
)

// items returns a page of the items of a folder, or of those that match a search.
func (c *call) items() error {
	alias, err := c.alias()
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
	folder := query.Get("folder")
	if folder != "" && storagedrivers.ValidKey(folder) != nil {
		return failf(http.StatusBadRequest, "The folder is none that can be: folders are separated by single slashes, without one at the ends.")
	}
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	from, err := parsePosition(query.Get("cursor"))
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	f := newFinder(alias, folder, query.Get("search"), limit)
	next, err := f.find(ctx, from)
	if err != nil {
		return storageFailed(c.driver(alias), err)
	}
	return c.answer(itemsAnswer{
		Kind: alias.Kind, Alias: alias.Name, Folder: folder,
		Folders: f.folders, Items: f.items, Next: next.String(), LookedAt: f.looked,
	})
}

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
