package mediaapp

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// eventStored is the event of an item that was stored. Its data: kind ("img", "file"),
// alias, filename, full_path, size in bytes, and webp, the address of the variant or
// empty.
const eventStored = "media_stored"

// events tells subscribers in Caddy's event system what happened.
type events struct {
	app *caddyevents.App
	ctx caddy.Context // events belong to the configuration that emits them
}

func (a *App) provisionEvents(ctx caddy.Context) error {
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting the events app: %w", err)
	}
	a.events = &events{app: app.(*caddyevents.App), ctx: ctx} // this is what "events" is
	return nil
}

func (e *events) stored(_ context.Context, alias *ingest.Alias, item ingest.Item) {
	if e.ctx.Err() != nil || !e.app.ShouldEmit(eventStored) {
		return // after a reload the subscribers are gone
	}
	e.app.Emit(e.ctx, eventStored, map[string]any{
		"kind": string(alias.Kind), "alias": alias.Name, "filename": item.Filename,
		"full_path": item.FullPath, "size": item.Size, "webp": item.WebP,
	})
}
