package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// The events of the app in Caddy's event system. Those of items carry:
//
//   - kind: "img" or "file"
//   - alias, and filename: the stored name, relative to the alias
//   - full_path: the public address
//   - size: in bytes
//   - webp: the address of the variant; empty if there is none
//   - unchecked: the names of the checks by other programs that it was stored without, if any
//   - via: "http", "s3", "panel", "admin" or "go"
//   - account: the API key, or the user of the panel; empty if there is none
//   - client: the address of the client; empty if there is none
//
// Subscribers run before the response, so a slow one delays it.
const (
	// EventStored is emitted for an item that was stored.
	EventStored = "media_stored"
	// EventReplaced is emitted for an item that replaced another one of its name.
	EventReplaced = "media_replaced"
	// EventDeleted is emitted for an item that was deleted. If the alias has no base URL, full_path
	// and webp have no host.
	EventDeleted = "media_deleted"
	// EventPurged is emitted after an item is removed from the trash. It carries the same values, with
	// an empty full_path and webp.
	EventPurged = "media_purged"
	// EventRefused is emitted for each failure of a request that was not stored, unless it had no
	// valid token. It carries kind, alias, filename (as submitted; empty for the whole request),
	// reason (a word of [item.Reason]), message, via, account and client.
	EventRefused = "media_refused"
	// EventStorageHealth is emitted when a storage becomes reachable or unreachable. It carries
	// storage, usable (true, false) and since (the time of the change).
	EventStorageHealth = "media_storage_health"
)

var changeEvents = map[upload.Action]string{
	upload.Stored: EventStored, upload.Replaced: EventReplaced, upload.Deleted: EventDeleted,
	upload.Purged: EventPurged,
}

// events emits events in Caddy's event system. A nil one emits none.
type events struct {
	app *caddyevents.App
	ctx caddy.Context // of the configuration that emits them

	started chan struct{} // closed, once, when all of the configuration has started
	once    sync.Once
}

func newEvents(ctx caddy.Context) (*events, error) {
	app, err := ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("getting the events app: %w", err)
	}
	e := &events{app: app.(*caddyevents.App), ctx: ctx, started: make(chan struct{})} // this is what "events" is
	if err := e.app.On("started", e); err != nil {
		return nil, fmt.Errorf("waiting for the start: %w", err)
	}
	return e, nil
}

// Handle is called by Caddy when all of the configuration has started. An event of a module may
// have the same name.
func (e *events) Handle(_ context.Context, event caddy.Event) error {
	if event.Origin() == nil {
		e.once.Do(func() { close(e.started) })
	}
	return nil
}

// ended reports whether the configuration no longer runs.
func (e *events) ended() bool { return e != nil && e.ctx.Err() != nil }

// emit emits an event with the result of data, unless the configuration has ended. An event before
// the start, of the first check of a storage, waits: some subscribers may be missing until then.
func (e *events) emit(name string, data func() map[string]any) {
	if e == nil {
		return
	}
	select {
	case <-e.started:
		e.send(name, data)
	default:
		guard.Go(func() {
			select {
			case <-e.started:
				e.send(name, data)
			case <-e.ctx.Done():
			}
		}, func(err error) { e.ctx.Slogger().Error("emitting an event", "event", name, "error", err) })
	}
}

func (e *events) send(name string, data func() map[string]any) {
	if !e.ended() && e.app.ShouldEmit(name) {
		e.app.Emit(e.ctx, name, data())
	}
}

func (e *events) changed(change upload.Change) {
	e.emit(changeEvents[change.Action], func() map[string]any {
		data := map[string]any{
			"kind": string(change.Alias.Kind), "alias": change.Alias.Name, "filename": change.Item.Filename,
			"full_path": change.Item.FullPath, "size": change.Item.Size, "webp": change.Item.WebP,
		}
		if change.Item.Unchecked != nil {
			data["unchecked"] = change.Item.Unchecked
		}
		return withActor(change.Actor, data)
	})
}

func (e *events) refused(op upload.Operation, failure *item.Failure) {
	e.emit(EventRefused, func() map[string]any {
		return withActor(op.Actor, map[string]any{
			"kind": string(op.Kind), "alias": op.Alias, "filename": failure.Filename,
			"reason": failure.Reason.String(), "message": failure.Message,
		})
	})
}

func (e *events) health(storage string, usable bool, since time.Time) {
	e.emit(EventStorageHealth, func() map[string]any {
		return map[string]any{"storage": storage, "usable": usable, "since": since}
	})
}

func withActor(actor item.Actor, data map[string]any) map[string]any {
	data["via"], data["account"], data["client"] = string(actor.Origin), actor.Account, actor.Client
	if actor.User != "" {
		data["user"] = actor.User
	}
	return data
}
