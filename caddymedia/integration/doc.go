// Package integration tests the media service end to end: every test talks to a whole Caddy,
// configured by a Caddyfile, over real connections.
package integration
