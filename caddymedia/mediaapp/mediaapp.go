// Package mediaapp is for Go code in the same Caddy, such as a handler of your own: it returns the
// media service that runs there. It is not for programs without Caddy, which make a service by
// package media. Begin with [Acquire].
package mediaapp

import (
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/media"
)

// Acquire returns the service of the running configuration. It stays open, through any reload,
// until release is called; a reload makes another service, so call Acquire each time. Items are
// ascribed to the client of the request that a context belongs to. The error means that none is
// running.
func Acquire() (service *media.Service, release func(), err error) {
	app, err := plugin.Active()
	if err != nil {
		return nil, nil, err
	}
	return app.Acquire()
}
