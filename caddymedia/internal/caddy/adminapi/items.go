package adminapi

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/items"
	"github.com/caddymedia/media/caddymedia/internal/front/serve"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// alias returns the alias named in the address. A user must not learn which others exist.
func (c *call) alias() (*item.Alias, error) {
	alias, ok := c.service.Alias(item.Kind(c.args[0]), c.args[1])
	if !ok || c.account != nil && !c.account.Allows(alias.Name) {
		return nil, failf(http.StatusNotFound, "There is no alias %.64q of this kind.", c.args[1])
	}
	return alias, nil
}

// below returns the escaped path below a route, and the kind before it.
func (c *call) below(route string) (kind item.Kind, path string) {
	word, path, _ := strings.Cut(strings.TrimPrefix(c.r.URL.EscapedPath(), "/"+route+"/"), "/")
	return item.Kind(word), path
}

// items serves a request of Caddy's admin endpoint, which grants all rights, as clients send it
// below /api/items/.
func (c *call) items() error {
	kind, path := c.below("items")
	known := caller.Known{Account: access.Account{Rights: access.Rights()}, Origin: item.OriginAdmin}
	err := items.Serve(caller.New(c.app, caller.Options{Log: c.app.Log()}), c.w, c.r, kind, path, known)
	if failed, ok := errors.AsType[*httpx.Error](err); ok {
		return failf(failed.Status, "%s", notRunning)
	}
	return nil
}

// preview serves a form of an item for a page, with the query "thumbnail" one for a list of items.
func (c *call) preview() error {
	kind, path := c.below("preview")
	server := serve.New(caller.New(c.app, caller.Options(plugin.HandlerOptions(c.app.Log()))))
	err := server.Preview(c.w, c.r, kind, path, c.r.URL.Query().Has("thumbnail"))
	failed, ok := errors.AsType[*httpx.Error](err)
	switch {
	case !ok:
		return nil
	case failed.Status == http.StatusNotFound:
		return failf(failed.Status, "There is no such item.")
	case failed.Status == http.StatusUnsupportedMediaType:
		return failf(failed.Status, "This image cannot be decoded.")
	case c.w.Header().Get("Retry-After") != "":
		return failf(failed.Status, "Too many images are being worked on. Try again in a few seconds.")
	}
	alias, err := c.alias()
	if err != nil {
		return err
	}
	return storageFailed(c.app.Driver(alias.Storage.Name()).Describe(), failed.Err)
}

// factsAnswer is what a page shows of an item beside its entry in a list.
type factsAnswer struct {
	// Sizes of the image and of its renditions, in ascending order.
	Sizes []sizeAnswer `json:"sizes,omitempty"`
	// Srcset is the value of the attribute.
	Srcset string `json:"srcset,omitempty"`
	// Query makes the addresses of a private item valid for an hour; empty if they cannot be signed.
	Query string `json:"query,omitempty"`
}

type sizeAnswer struct {
	Rendition string `json:"rendition"` // empty for the image itself
	Address   string `json:"address"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
}

// facts returns the sizes of an image, and what makes the addresses of a private item valid.
func (c *call) facts() error {
	alias, err := c.alias()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	var answer factsAnswer
	sizes, srcset, _ := c.service.ImageSizes(ctx, alias, c.args[2])
	for _, size := range sizes {
		described := sizeAnswer{Address: size.URL, Width: size.Width, Height: size.Height}
		if size.Rendition != nil {
			described.Rendition = size.Rendition.Name
		}
		if size.Width > 0 { // an SVG has no size in pixels
			answer.Sizes = append(answer.Sizes, described)
		}
	}
	slices.SortStableFunc(answer.Sizes, func(a, b sizeAnswer) int {
		return cmp.Or(cmp.Compare(a.Width, b.Width), cmp.Compare(a.Height, b.Height))
	})
	answer.Srcset = srcset
	if alias.Private != nil && (c.account == nil || c.account.May(access.Sign)) {
		signed, err := c.service.Sign(ctx, service.SignRequest{Kind: alias.Kind, Alias: alias.Name, Filenames: []string{c.args[2]}})
		if err == nil { // otherwise the token store is down, which the page of the storages shows
			_, answer.Query, _ = strings.Cut(signed[0].URL, "?")
		}
	}
	return c.answer(answer)
}
