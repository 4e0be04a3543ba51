// Package core is the plug-in for xcaddy without storage drivers: the app, its handlers and
// commands, the panel, and the token stores that need no server. A build adds the drivers that it
// needs, and the token store redis, from the folder drivers; package caddymedia has all. It is only
// imported, so begin with the packages that it imports.
package core

import (
	// The parts that register themselves with Caddy.
	_ "github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	_ "github.com/caddymedia/media/caddymedia/internal/caddy/panel"
	_ "github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	_ "github.com/caddymedia/media/caddymedia/mediacmd"
)
