// Command caddy is stock Caddy with the media plug-in.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddymedia/media/caddymedia"
)

func main() { caddycmd.Main() }
