package mediaapp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// The events of the app in Caddy's event system. Those of items carry:
//
//   - kind: "img" or "file"
//   - alias, and filename: the stored name, relative to the alias
//   - full_path: the public address
//   - size: in bytes
//   - webp: the address of the variant; empty where there is none
//   - via: "http", "panel", "admin" or "go"
//   - account: the API key, or the user of the panel; empty where there is none
//   - client: the address of the client; empty where there is none
//
// Subscribers run before the request is answered: what takes long they do later.
const (
	// EventStored is an item that was stored.
	EventStored = "media_stored"
	// EventReplaced is an item that was stored in the place of another one of its name.
	EventReplaced = "media_replaced"
	// EventDeleted is an item that was deleted. Where the alias has no address of its own
	// the host is missing in full_path and webp.
	EventDeleted = "media_deleted"
	// EventRefused is an item that was not stored, or a request of which nothing was. Requests
	// without a valid token have no event. It
	// carries kind, alias, filename (as submitted; empty for the whole request), reason (a
	// word of [ingest.Reason]), message, via, account and client.
	EventRefused = "media_refused"
	// EventStorageHealth is a storage that can be used no more, or again. It carries
	// storage, usable (true, false) and since, the time from which on it is so.
	EventStorageHealth = "media_storage_health"
)

var changeEvents = map[ingest.Action]string{
	ingest.Stored: EventStored, ingest.Replaced: EventReplaced, ingest.Deleted: EventDeleted,
}

// events tells subscribers in Caddy's event system what happened; nil tells nobody.
type events struct {
	app *caddyevents.App
	ctx caddy.Context // events belong to the configuration that emits them

	started chan struct{} // is closed, once, when all of the configuration has started
	once    sync.Once
}

func (a *App) provisionEvents(ctx caddy.Context) error {
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting the events app: %w", err)
	}
	a.events = &events{app: app.(*caddyevents.App), ctx: ctx, started: make(chan struct{})} // this is what "events" is
	if err := a.events.app.On("started", a.events); err != nil {
		return fmt.Errorf("waiting for the start: %w", err)
	}
	return nil
}

// Handle hears from Caddy that all of the configuration has started. A module may have an event
// of that name too.
func (e *events) Handle(_ context.Context, event caddy.Event) error {
	if event.Origin() == nil {
		e.once.Do(func() { close(e.started) })
	}
	return nil
}

// over tells that another configuration runs, or none.
func (e *events) over() bool { return e != nil && e.ctx.Err() != nil }

// emit tells the subscribers of an event what data gives; after a reload they are gone. Before
// the start they may only be on their way, and the events app is not to be asked for them: what
// a check of a storage finds so early waits.
func (e *events) emit(name string, data func() map[string]any) {
	if e == nil {
		return
	}
	select {
	case <-e.started:
		e.send(name, data)
	default:
		go func() {
			select {
			case <-e.started:
				e.send(name, data)
			case <-e.ctx.Done():
			}
		}()
	}
}

func (e *events) send(name string, data func() map[string]any) {
	if !e.over() && e.app.ShouldEmit(name) {
		e.app.Emit(e.ctx, name, data())
	}
}

func (e *events) changed(change ingest.Change) {
	e.emit(changeEvents[change.Action], func() map[string]any {
		return withActor(change.Actor, map[string]any{
			"kind": string(change.Alias.Kind), "alias": change.Alias.Name, "filename": change.Item.Filename,
			"full_path": change.Item.FullPath, "size": change.Item.Size, "webp": change.Item.WebP,
		})
	})
}

func (e *events) refused(req ingest.Request, failure *ingest.Failure) {
	e.emit(EventRefused, func() map[string]any {
		return withActor(req.Actor, map[string]any{
			"kind": string(req.Kind), "alias": req.Alias, "filename": failure.Filename,
			"reason": failure.Reason.String(), "message": failure.Message,
		})
	})
}

func (e *events) health(storage string, usable bool, since time.Time) {
	e.emit(EventStorageHealth, func() map[string]any {
		return map[string]any{"storage": storage, "usable": usable, "since": since}
	})
}

func withActor(actor ingest.Actor, data map[string]any) map[string]any {
	data["via"], data["account"], data["client"] = string(actor.Origin), actor.Account, actor.Client
	return data
}
