// Package observe records the work of the service where administrators look for it: metrics,
// events, the audit log and the placeholders of requests. Packages upload and storagedrivers make
// the trace spans themselves. Begin with [Observer].
package observe

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// Observer is the [service.Observer] of one configuration of Caddy.
type Observer struct {
	*metrics
	audit   *zap.Logger
	changes *Changes
	events  *events
	active  func() (*Observer, error)
}

// New returns the observer of the configuration that ctx belongs to. active returns the one of the
// configuration that runs.
func New(ctx caddy.Context, active func() (*Observer, error)) (*Observer, error) {
	events, err := newEvents(ctx)
	if err != nil {
		return nil, err
	}
	return &Observer{newMetrics(ctx.GetMetricsRegistry()), ctx.Logger().Named("audit"), changes, events, active}, nil
}

// current returns the observer whose metrics and audit log are in use: the work of an earlier
// configuration may go on while the next one runs.
func (o *Observer) current() *Observer {
	if o.events.ended() {
		if active, err := o.active(); err == nil {
			return active
		}
	}
	return o
}

// Observe implements [media.Observer]. Its methods of [service.Observer] receive more.
func (o *Observer) Observe(context.Context, media.Event) {}

// LoggedIn implements [service.Observer].
func (o *Observer) LoggedIn(ctx context.Context, apiKey string, result service.LoginResult) {
	o.current().logins.WithLabelValues(string(result)).Inc()
	noteAccount(ctx, apiKey)
}

// TicketIssued implements [service.Observer].
func (o *Observer) TicketIssued(ctx context.Context, apiKey string, result service.TicketResult) {
	o.current().tickets.WithLabelValues(string(result)).Inc()
	noteAccount(ctx, apiKey)
}

// Signed implements [service.Observer].
func (*Observer) Signed(ctx context.Context, apiKey string, _ int) { noteAccount(ctx, apiKey) }

// Failed implements [service.Observer].
func (o *Observer) Failed(_ context.Context, endpoint, status string) {
	o.current().failures.WithLabelValues(endpoint, status).Inc()
}

// ResumableEvent implements [service.Observer].
func (o *Observer) ResumableEvent(kind item.Kind, event resumable.Event) {
	o.current().resumable.WithLabelValues(string(kind), string(event)).Inc()
}

// ResumableReceived implements [service.Observer].
func (o *Observer) ResumableReceived(kind item.Kind, bytes int64, resumed bool) {
	current := o.current()
	current.resumableBytes.WithLabelValues(string(kind)).Add(float64(bytes))
	if resumed {
		current.resumed.WithLabelValues(string(kind)).Inc()
	}
}

// ResumableOpen implements [service.Observer].
func (o *Observer) ResumableOpen(storage string, open resumable.Open) {
	o.unfinished.WithLabelValues(storage).Set(float64(open.Uploads))
	o.unfinishedBytes.WithLabelValues(storage).Set(float64(open.Bytes))
}

// TrashHeld implements [service.Observer].
func (o *Observer) TrashHeld(alias *item.Alias, in service.Count) {
	labels := []string{string(alias.Kind), alias.Name}
	o.trash.WithLabelValues(labels...).Set(float64(in.Objects))
	o.trashBytes.WithLabelValues(labels...).Set(float64(in.Bytes))
}

// Terminated implements [service.Observer].
func (o *Observer) Terminated(ctx context.Context, upload *resumable.Record, actor item.Actor, err error) {
	noteAccount(ctx, actor.Account)
	o.current().auditTermination(upload, actor, err)
}

// Requested implements [service.Observer].
func (o *Observer) Requested(ctx context.Context, alias *item.Alias, filename string) {
	noteItem(ctx, alias.Kind, alias.Name, filename)
}

// Served implements [service.Observer].
func (o *Observer) Served(_ context.Context, alias *item.Alias, bytes int64) {
	o.current().served.WithLabelValues(string(alias.Kind), alias.Name).Add(float64(bytes))
}

// StorageOperation implements [service.Observer].
func (o *Observer) StorageOperation(storage, op string, took time.Duration, err error) {
	o.current().operation(storage, op, took, err)
}

// StorageChecked implements [service.Observer].
func (o *Observer) StorageChecked(storage string, health service.Health, changed bool) {
	o.up(storage, health.Err == nil)
	if changed {
		o.events.health(storage, health.Err == nil, health.Since)
	}
}

// Began implements [upload.Observer].
func (o *Observer) Began(op upload.Operation) (ended func(stored bool)) {
	uploads[op.Kind].Add(1)
	start := time.Now() //nolint:forbidigo // a duration depends on no other clock
	return func(stored bool) {
		uploads[op.Kind].Add(-1)
		o.current().uploaded(op.Kind, stored, time.Since(start))
	}
}

// Variant implements [upload.Observer].
func (o *Observer) Variant(alias *item.Alias, result item.VariantResult, took time.Duration) {
	o.current().variant(alias, result, took)
}

// Checked implements [upload.Observer].
func (o *Observer) Checked(alias *item.Alias, name string, result check.Result, took time.Duration) {
	current, labels := o.current(), []string{string(alias.Kind), alias.Name, name}
	current.checks.WithLabelValues(labels[0], labels[1], labels[2], string(result)).Inc()
	up := 1.0
	if result == check.Unanswered {
		up = 0
	}
	if result != check.TooLarge { // the program may not have been asked
		current.checkUp.WithLabelValues(labels...).Set(up)
		current.checkTimes.WithLabelValues(labels...).Observe(took.Seconds())
	}
}

// Rendered implements [upload.Observer].
func (o *Observer) Rendered(alias *item.Alias, r *item.Rendition, result derived.RenditionResult, took time.Duration) {
	o.current().rendered(alias, r, result, took)
}

// Changed implements [upload.Observer].
func (o *Observer) Changed(ctx context.Context, change upload.Change) {
	noteAccount(ctx, change.Actor.Account)
	current := o.current()
	isSource := change.Transfer != nil && change.Action == upload.Deleted
	if !isSource { // the new item counts for the request
		noteItem(ctx, change.Alias.Kind, change.Alias.Name, change.Item.Filename)
	}
	if !change.InSet && !isSource {
		current.auditChange(change)
	}
	if change.Err != nil || change.Action == upload.Unchanged {
		return
	}
	current.changed(change)
	o.events.changed(change)
}

// DeletionEnded implements [service.Observer].
func (o *Observer) DeletionEnded(ctx context.Context, deletion service.Deletion) {
	deletion.Alias = fmt.Sprintf("%.64s", deletion.Alias) // as in Refused
	noteAccount(ctx, deletion.Actor.Account)
	noteItem(ctx, deletion.Kind, deletion.Alias, deletion.Filename)
	if deletion.Actor.Account != "" || deletion.Actor.Origin != item.OriginHTTP { // strangers must not fill the audit log
		o.current().auditDeletion(deletion)
	}
}

// Refused implements [upload.Observer].
func (o *Observer) Refused(ctx context.Context, op upload.Operation, failures item.Failures) {
	op.Alias = fmt.Sprintf("%.64s", op.Alias) // a caller may send any text; no alias is longer
	noteAccount(ctx, op.Actor.Account)
	noteItem(ctx, op.Kind, op.Alias, "")
	current := o.current()
	unknown := op.Actor.Origin == item.OriginHTTP && op.Actor.Account == ""
	for _, failure := range failures {
		current.refusals.WithLabelValues(string(op.Kind), failure.Reason.String()).Inc()
		if unknown { // strangers must not fill the audit log, nor trigger subscribers
			continue
		}
		current.auditRefusal(op, failure)
		o.events.refused(op, failure)
	}
}
