// Package integration tests the media service end to end. Every test uses a whole Caddy, configured
// by a Caddyfile, over real connections.
package integration
