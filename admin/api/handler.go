// Package api is the JSON API for administrators: what the media app is made of and how it
// is, probes of storages, and the stored items. It deletes items and ends tokens, and
// never writes configuration.
//
// Caddy's admin endpoint has it below /media/, and the panel among its pages. An answer
// never has a secret of the configuration in it.
package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/mediaapp"
)

// Handler answers the routes of the API, relative to "/". It asks for the running app at
// each request, so it may outlive any configuration.
type Handler struct {
	probes  chan struct{} // one is taken by each probe that runs
	maxTime time.Duration // of a request that waits for a storage
}

const (
	// Probes at a time, in this process.
	maxProbes = 4
	// How long a request may wait for a storage.
	maxTime = time.Minute
)

// running are the probes of all handlers: each has a host to wait for.
var running = make(chan struct{}, maxProbes)

// New gives a handler.
func New() *Handler {
	return &Handler{probes: running, maxTime: maxTime}
}

// ServeHTTP answers a request; the media app stays open until the answer is out.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.serve(w, r, func(c *call) error { return c.route() })
}

// serve answers with what f does on the running app.
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
	if err == nil || r.Context().Err() != nil { // nobody is there to be answered
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
