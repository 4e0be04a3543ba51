package observe

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// The placeholders of a request for items, for access logs. Callers chose the names in them, so
// they are never expanded again.
const (
	placeholderAccount   = "http.media.account"   // the API key, or the user of the panel
	placeholderAlias     = "http.media.alias"     // kind and name: "img/content"
	placeholderFilenames = "http.media.filenames" // a list of names, relative to the alias
)

// noteAccount sets the placeholder for the account of a request, given its context.
func noteAccount(ctx context.Context, account string) {
	if replacer, ok := replacerOf(ctx); ok && account != "" {
		replacer.Set(placeholderAccount, account)
	}
}

// noting guards the lists of filenames: code in the same process may store several items for one
// request at once.
var noting sync.Mutex

// noteItem sets the placeholder for the alias of a request, given its context, and adds to the list
// of filenames. Both may be empty.
func noteItem(ctx context.Context, kind item.Kind, alias, filename string) {
	replacer, ok := replacerOf(ctx)
	if !ok || alias == "" {
		return
	}
	replacer.Set(placeholderAlias, string(kind)+"/"+alias)
	if filename != "" {
		noting.Lock()
		defer noting.Unlock()
		noted, _ := replacer.Get(placeholderFilenames)
		names, _ := noted.([]string) // nil at first
		replacer.Set(placeholderFilenames, append(names, filename))
	}
}

func replacerOf(ctx context.Context) (*caddy.Replacer, bool) {
	replacer, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	return replacer, ok
}
