// Package api is the JSON API for administrators. It describes the configuration and the state of
// the media app, probes storages and lists the stored items. It deletes items and revokes tokens,
// and never writes configuration.
//
// Caddy's admin endpoint serves the API below /media/, and the panel serves it below its own
// address. No answer contains a secret of the configuration.
package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/mediaapp"
)

// Handler serves the routes of the API, relative to "/". It acquires the running app for each
// request, so a Handler may outlive any configuration.
type Handler struct {
	probes  chan struct{} // one is taken by each probe that runs
	maxTime time.Duration // of a request that waits for a storage
}

const (
	// Simultaneous probes in this process.
	maxProbes = 4
	// The maximum time of a request that uses a storage.
	maxTime = time.Minute
)

// running limits the probes of all handlers, because each may wait for a slow host.
var running = make(chan struct{}, maxProbes)

// New returns a handler.
func New() *Handler {
	return &Handler{probes: running, maxTime: maxTime}
}

// ServeHTTP serves a request. The media app stays open until the answer is written.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.serve(w, r, func(c *call) error { return c.route() })
}

// serve calls f with the running app and writes the failure if f returns an error.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, f func(*call) error) {
	c := &call{handler: h, w: w, r: r}
	app, release, err := mediaapp.AcquireActive()
	if err != nil {
		err = failf(http.StatusServiceUnavailable, "The media app is not running: the configuration has none.")
	} else {
		defer release()
		c.app, c.service = app, app.Service()
		err = f(c)
	}
	if err == nil || r.Context().Err() != nil { // the client is gone
		return
	}
	refusal, ok := errors.AsType[*failure](err)
	if !ok {
		refusal = failf(http.StatusInternalServerError, "The answer could not be made.")
	}
	_ = c.write(refusal.status, refusal) // texts can be encoded
}

// Interface guard
var _ http.Handler = (*Handler)(nil)
