package mediaapp

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
)

// underWay counts the uploads of all configurations: those of an earlier one go on.
var underWay = map[ingest.Kind]*atomic.Int64{ingest.Image: new(atomic.Int64), ingest.File: new(atomic.Int64)}

// lasting is the app in whose metrics and audit log something is noted: this one, or that of
// the running configuration for what goes on in an earlier one, which are read no longer.
func (a *App) lasting() *App {
	if a.events.over() {
		if running, err := Active(); err == nil {
			return running
		}
	}
	return a
}

// recorder records in the metrics, the audit log, the events and the placeholders of an app.
type recorder struct{ app *App }

// LoggedIn implements media.Observer.
func (r recorder) LoggedIn(ctx context.Context, apiKey string, result media.LoginResult) {
	r.app.lasting().metrics.logins.WithLabelValues(string(result)).Inc()
	noteAccount(ctx, apiKey)
}

// Failed implements media.Observer.
func (r recorder) Failed(_ context.Context, endpoint, status string) {
	r.app.lasting().metrics.failures.WithLabelValues(endpoint, status).Inc()
}

// Requested implements media.Observer.
func (r recorder) Requested(ctx context.Context, alias *ingest.Alias, filename string) {
	noteItem(ctx, alias.Kind, alias.Name, filename)
}

// Served implements media.Observer.
func (r recorder) Served(_ context.Context, alias *ingest.Alias, bytes int64) {
	r.app.lasting().metrics.served.WithLabelValues(string(alias.Kind), alias.Name).Add(float64(bytes))
}

// StorageOperation implements media.Observer.
func (r recorder) StorageOperation(storage, op string, took time.Duration, err error) {
	r.app.lasting().metrics.operation(storage, op, took, err)
}

// StorageChecked implements media.Observer.
func (r recorder) StorageChecked(storage string, health media.Health, changed bool) {
	r.app.metrics.up(storage, health.Err == nil)
	if changed {
		r.app.events.health(storage, health.Err == nil, health.Since)
	}
}

// Began implements [ingest.Observer].
func (r recorder) Began(req ingest.Request) (ended func(stored bool)) {
	underWay[req.Kind].Add(1)
	start := time.Now() //nolint:forbidigo // how long it takes is by no other clock
	return func(stored bool) {
		underWay[req.Kind].Add(-1)
		result := "refused"
		if stored {
			result = "ok"
		}
		took := time.Since(start)
		r.app.lasting().metrics.uploads.WithLabelValues(string(req.Kind), result).Observe(took.Seconds())
	}
}

// Variant implements [ingest.Observer].
func (r recorder) Variant(alias *ingest.Alias, result ingest.VariantResult, took time.Duration) {
	r.app.lasting().metrics.variant(alias, result, took)
}

// Changed implements [ingest.Observer].
func (r recorder) Changed(ctx context.Context, change ingest.Change) {
	noteAccount(ctx, change.Actor.Account)
	noteItem(ctx, change.Alias.Kind, change.Alias.Name, change.Item.Filename)
	lasting := r.app.lasting()
	lasting.auditChange(change)
	if change.Err != nil {
		return
	}
	lasting.metrics.changed(change)
	r.app.events.changed(change)
}

// Refused implements [ingest.Observer].
func (r recorder) Refused(ctx context.Context, req ingest.Request, failures ingest.Failures) {
	req.Alias = fmt.Sprintf("%.64s", req.Alias) // no name is longer; any text may stand there
	noteAccount(ctx, req.Actor.Account)
	noteItem(ctx, req.Kind, req.Alias, "")
	lasting := r.app.lasting()
	unknown := req.Actor.Origin == ingest.OriginHTTP && req.Actor.Account == ""
	for _, failure := range failures {
		lasting.metrics.refusals.WithLabelValues(string(req.Kind), failure.Reason.String()).Inc()
		if unknown { // strangers fill no audit log, and send no mail
			continue
		}
		lasting.auditRefusal(req, failure)
		r.app.events.refused(req, failure)
	}
}
