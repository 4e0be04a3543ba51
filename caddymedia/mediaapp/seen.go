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

// began counts an upload as under way until ended is called.
func (a *App) began(req ingest.Request) (ended func(error)) {
	underWay[req.Kind].Add(1)
	start := time.Now() //nolint:forbidigo // how long it takes is by no other clock
	return func(err error) {
		underWay[req.Kind].Add(-1)
		result := "ok"
		if err != nil {
			result = "refused"
		}
		took := time.Since(start)
		a.lasting().metrics.uploads.WithLabelValues(string(req.Kind), result).Observe(took.Seconds())
	}
}

func (a *App) countVariant(alias *ingest.Alias, result ingest.VariantResult, took time.Duration) {
	a.lasting().metrics.variant(alias, result, took)
}

// changed notes a change of an item, and tells the subscribers of its event.
func (a *App) changed(ctx context.Context, change ingest.Change) {
	NoteAccount(ctx, change.By.Account)
	NoteItem(ctx, change.Alias.Kind, change.Alias.Name, change.Item.Filename)
	lasting := a.lasting()
	lasting.auditChange(change)
	if change.Err != nil {
		return
	}
	lasting.metrics.changed(change)
	a.events.changed(change)
}

// Refused notes why nothing of an upload was stored, and tells the subscribers of its event.
// The gate does so by itself; this is for uploads that do not come so far.
func (a *App) Refused(ctx context.Context, req ingest.Request, failures ingest.Failures) {
	req.Alias = fmt.Sprintf("%.64s", req.Alias) // no name is longer; any text may stand there
	NoteAccount(ctx, req.By.Account)
	NoteItem(ctx, req.Kind, req.Alias, "")
	lasting := a.lasting()
	unknown := req.By.Via == ingest.ViaHTTP && req.By.Account == ""
	for _, failure := range failures {
		lasting.metrics.refusals.WithLabelValues(string(req.Kind), failure.Reason.String()).Inc()
		if unknown { // strangers fill no audit log, and send no mail
			continue
		}
		lasting.auditRefusal(req, failure)
		a.events.refused(req, failure)
	}
}
