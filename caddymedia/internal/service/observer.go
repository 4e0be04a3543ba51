package service

import (
	"context"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/upload"
)

// LoginResult is the outcome of a request for a token.
type LoginResult string

// Outcomes of a request for a token.
const (
	LoginOK          LoginResult = "ok"
	LoginRefused     LoginResult = "refused"     // a wrong API key or password
	LoginThrottled   LoginResult = "throttled"   // after too many attempts
	LoginUnavailable LoginResult = "unavailable" // the token store is unreachable
	LoginFailed      LoginResult = "failed"      // by a fault of the service itself
)

// LoginResults returns all outcomes of a request for a token.
func LoginResults() []LoginResult {
	return []LoginResult{LoginOK, LoginRefused, LoginThrottled, LoginUnavailable, LoginFailed}
}

// TicketResult is the outcome of a request for a ticket.
type TicketResult string

// Outcomes of a request for a ticket.
const (
	TicketOK          TicketResult = "ok"
	TicketRefused     TicketResult = "refused"     // a wrong token, or a ticket that it cannot have
	TicketUnavailable TicketResult = "unavailable" // the token store is unreachable
	TicketFailed      TicketResult = "failed"      // by a fault of the service itself
)

// TicketResults returns all outcomes of a request for a ticket.
func TicketResults() []TicketResult {
	return []TicketResult{TicketOK, TicketRefused, TicketUnavailable, TicketFailed}
}

// Observer receives the events of a service. Its methods may be called concurrently. Those with a
// context are called in the goroutine of a request and must return soon.
type Observer interface {
	upload.Observer
	// LoggedIn is called with the outcome of a request for a token. The API key is empty unless it is
	// LoginOK.
	LoggedIn(ctx context.Context, apiKey string, result LoginResult)
	// TicketIssued is called with the outcome of a request for a ticket. The API key is empty unless it
	// is TicketOK.
	TicketIssued(ctx context.Context, apiKey string, result TicketResult)
	// Signed is called with the number of addresses that were signed for an account.
	Signed(ctx context.Context, apiKey string, addresses int)
	// DeletionEnded is called after a request to delete a set of items, and for a refused one to delete
	// items. Its items are also reported one by one.
	DeletionEnded(ctx context.Context, deletion Deletion)
	// Failed is called for a request that was refused or failed. The endpoint is "token", "ticket",
	// "sign", "image", "file", "items" or "static". The status is that of the response, or "broken"
	// or "aborted".
	Failed(ctx context.Context, endpoint, status string)
	// ResumableEvent is called when a resumable upload is created or ends.
	ResumableEvent(kind item.Kind, event resumable.Event)
	// ResumableReceived is called after a request that added bytes to a resumable upload. resumed means
	// that the upload had some before.
	ResumableReceived(kind item.Kind, bytes int64, resumed bool)
	// ResumableOpen is called with the unfinished resumable uploads of a storage, about twice a minute
	// if there are any.
	ResumableOpen(storage string, open resumable.Open)
	// Terminated is called after a resumable upload was ended on request of an actor, or could not be.
	Terminated(ctx context.Context, upload *resumable.Record, actor item.Actor, err error)
	// Requested is called when a client requests an item, which may not exist.
	Requested(ctx context.Context, alias *item.Alias, filename string)
	// Served is called with the number of bytes of an item that were sent.
	Served(ctx context.Context, alias *item.Alias, bytes int64)
	// StorageOperation is called after every operation of a storage, with its name as in
	// storagedrivers.OpError, its duration and its error.
	StorageOperation(storage, op string, took time.Duration, err error)
	// StorageChecked is called after every check of a storage. changed reports whether the storage
	// became reachable or unreachable.
	StorageChecked(storage string, health Health, changed bool)
}

// Deletion is a request to delete items.
type Deletion struct {
	Kind item.Kind
	// Alias and Filename as in the request. The filename is empty for a set.
	Alias, Filename string
	// IsSet means that the request names a set of items.
	IsSet bool
	// Folder of a set; empty if the request names its items.
	Folder string
	// Number of items of a set that were deleted.
	Number int
	Actor  item.Actor
	// Failure is why the request was refused, or why some items of a set are left; nil otherwise.
	Failure *item.Failure
}

// NopObserver is an [Observer] that does nothing.
type NopObserver struct{ upload.NopObserver }

// LoggedIn implements [Observer].
func (NopObserver) LoggedIn(context.Context, string, LoginResult) {}

// TicketIssued implements [Observer].
func (NopObserver) TicketIssued(context.Context, string, TicketResult) {}

// Signed implements [Observer].
func (NopObserver) Signed(context.Context, string, int) {}

// DeletionEnded implements [Observer].
func (NopObserver) DeletionEnded(context.Context, Deletion) {}

// Failed implements [Observer].
func (NopObserver) Failed(context.Context, string, string) {}

// ResumableEvent implements [Observer].
func (NopObserver) ResumableEvent(item.Kind, resumable.Event) {}

// ResumableReceived implements [Observer].
func (NopObserver) ResumableReceived(item.Kind, int64, bool) {}

// ResumableOpen implements [Observer].
func (NopObserver) ResumableOpen(string, resumable.Open) {}

// Terminated implements [Observer].
func (NopObserver) Terminated(context.Context, *resumable.Record, item.Actor, error) {}

// Requested implements [Observer].
func (NopObserver) Requested(context.Context, *item.Alias, string) {}

// Served implements [Observer].
func (NopObserver) Served(context.Context, *item.Alias, int64) {}

// StorageOperation implements [Observer].
func (NopObserver) StorageOperation(string, string, time.Duration, error) {}

// StorageChecked implements [Observer].
func (NopObserver) StorageChecked(string, Health, bool) {}
