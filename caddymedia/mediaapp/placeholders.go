package mediaapp

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// The placeholders of a request that has to do with items, for access logs. Names are what
// callers chose: they are data, and never expanded again.
const (
	// PlaceholderAccount is the API key that was logged in with, or the user of the panel.
	PlaceholderAccount = "http.media.account"
	// PlaceholderAlias is kind and name of the alias: "img/content".
	PlaceholderAlias = "http.media.alias"
	// PlaceholderFilenames are the names of the items that were stored, deleted or asked for,
	// relative to the alias: a list.
	PlaceholderFilenames = "http.media.filenames"
)

// noteAccount sets the placeholder for the account of a request, given its context.
func noteAccount(ctx context.Context, account string) {
	if replacer, ok := replacerOf(ctx); ok && account != "" {
		replacer.Set(PlaceholderAccount, account)
	}
}

// noting lets one at a time add to a list: code in the same process may store several items for
// one request at once.
var noting sync.Mutex

// noteItem sets the placeholders for the alias and an item of a request, given its context;
// both may be empty. Several items make a list.
func noteItem(ctx context.Context, kind ingest.Kind, alias, filename string) {
	replacer, ok := replacerOf(ctx)
	if !ok || alias == "" {
		return
	}
	replacer.Set(PlaceholderAlias, string(kind)+"/"+alias)
	if filename != "" {
		noting.Lock()
		defer noting.Unlock()
		noted, _ := replacer.Get(PlaceholderFilenames)
		names, _ := noted.([]string) // nil at first
		replacer.Set(PlaceholderFilenames, append(names, filename))
	}
}

func replacerOf(ctx context.Context) (*caddy.Replacer, bool) {
	replacer, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	return replacer, ok
}
