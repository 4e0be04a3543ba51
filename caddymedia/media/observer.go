package media

import (
	"context"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Observer receives the events of items, logins and storages. Observe may be called concurrently,
// in the goroutine of a request, and must return soon.
type Observer interface {
	Observe(ctx context.Context, event Event)
}

// EventName says what has happened.
type EventName string

// The events. An item that is moved or copied is stored; one that is moved is deleted too.
const (
	Stored   EventName = "stored"
	Replaced EventName = "replaced"
	Deleted  EventName = "deleted" // or could not be: see Event.Err
	Purged   EventName = "purged"  // from the trash, or could not be
	Refused  EventName = "refused" // a file, or a request
	LoggedIn EventName = "login"   // or could not: see Event.Result
	Checked  EventName = "storage" // a storage became reachable or unreachable: see Event.Err
)

// Event is something that has happened. Fields that do not belong to its Name are empty.
type Event struct {
	Name EventName
	// Kind of the alias, "image" or "file".
	Kind, Alias string
	// Filename as stored, relative to the alias, and the Size of the item in bytes. For a refused file
	// it is the name as submitted, which is not safe to show.
	Filename string
	Size     int64
	// Account is the API key of the caller, User one of its users, and Client its address.
	Account, User, Client string
	// Origin is how the request came: "http", "panel", "admin", "go" or "command".
	Origin string
	// Result of a login: "ok", "refused", "throttled", "unavailable" or "failed".
	Result string
	// Message is why a file was refused, as its caller has read it.
	Message string
	// Storage that became reachable or unreachable, since At.
	Storage string
	At      time.Time
	// Err has details that no caller sees; nil if there are none.
	Err error
}

// observer returns the observer of the service; nil for none. That of the Caddy plug-in is one
// itself.
func (c *Config) observer() service.Observer {
	switch o := c.Observer.(type) {
	case nil:
		return nil
	case service.Observer:
		return o
	default:
		return events{observer: o}
	}
}

// events makes events for an Observer.
type events struct {
	service.NopObserver
	observer Observer
}

func kindName(kind item.Kind) string {
	if kind == "" {
		return ""
	}
	return kind.Name()
}

// eventOf returns an event that an actor has caused.
func eventOf(name EventName, kind item.Kind, alias string, actor item.Actor) Event {
	return Event{
		Name: name, Kind: kindName(kind), Alias: alias,
		Account: actor.Account, User: actor.User, Client: actor.Client, Origin: string(actor.Origin),
	}
}

// Changed implements [service.Observer].
func (e events) Changed(ctx context.Context, change upload.Change) {
	if change.Action == upload.Unchanged {
		return
	}
	event := eventOf(EventName(change.Action), change.Alias.Kind, change.Alias.Name, change.Actor)
	event.Filename, event.Size, event.Err = change.Item.Filename, change.Item.Size, change.Err
	e.observer.Observe(ctx, event)
}

// Refused implements [service.Observer].
func (e events) Refused(ctx context.Context, op upload.Operation, failures item.Failures) {
	for _, failure := range failures {
		event := eventOf(Refused, op.Kind, op.Alias, op.Actor)
		event.Filename, event.Message, event.Err = failure.Filename, failure.Message, failure.Err
		e.observer.Observe(ctx, event)
	}
}

// LoggedIn implements [service.Observer].
func (e events) LoggedIn(ctx context.Context, apiKey string, result service.LoginResult) {
	e.observer.Observe(ctx, Event{Name: LoggedIn, Account: apiKey, Result: string(result)})
}

// StorageChecked implements [service.Observer].
func (e events) StorageChecked(storage string, health service.Health, changed bool) {
	if changed {
		e.observer.Observe(context.Background(), Event{Name: Checked, Storage: storage, At: health.Since, Err: health.Err})
	}
}
