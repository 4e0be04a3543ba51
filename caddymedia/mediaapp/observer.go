package mediaapp

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// LoginResult is what became of a request for a token.
type LoginResult string

// What can become of a request for a token.
const (
	LoginOK          LoginResult = "ok"
	LoginRefused     LoginResult = "refused"     // a wrong API key or password
	LoginThrottled   LoginResult = "throttled"   // after too many attempts
	LoginUnavailable LoginResult = "unavailable" // the token store cannot be used
	LoginFailed      LoginResult = "failed"      // by a fault of the service itself
)

// underWay counts the uploads of all configurations: those of an earlier one go on.
var underWay = map[ingest.Kind]*atomic.Int64{ingest.Image: new(atomic.Int64), ingest.File: new(atomic.Int64)}

// lasting is the app in whose metrics and audit log something is noted: this one, or that of
// the running configuration for what goes on in an earlier one, whose own nobody reads.
func (a *App) lasting() *App {
	if a.events.over() {
		if running, err := Active(); err == nil {
			return running
		}
	}
	return a
}

// CountFailure counts a request that was refused or failed. endpoint is one of a fixed
// few: "token", "image", "file", "static".
func (a *App) CountFailure(endpoint, status string) {
	a.lasting().metrics.failures.WithLabelValues(endpoint, status).Inc()
}

// CountLogin counts a request for a token.
func (a *App) CountLogin(result LoginResult) {
	a.lasting().metrics.logins.WithLabelValues(string(result)).Inc()
}

// CountServed counts the bytes that were sent of an item.
func (a *App) CountServed(alias *ingest.Alias, bytes int64) {
	a.lasting().metrics.served.WithLabelValues(string(alias.Kind), alias.Name).Add(float64(bytes))
}

// recorder records uploads and changes of items in metrics, audit log, events and placeholders.
type recorder struct{ app *App }

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
	NoteAccount(ctx, change.Actor.Account)
	NoteItem(ctx, change.Alias.Kind, change.Alias.Name, change.Item.Filename)
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
	NoteAccount(ctx, req.Actor.Account)
	NoteItem(ctx, req.Kind, req.Alias, "")
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
