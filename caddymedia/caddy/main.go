// Command caddy is stock Caddy with the media plug-in.
package main

import (
	_ "github.com/caddymedia/media/caddymedia"
	"github.com/caddymedia/media/caddymedia/internal/caddy/program"
)

func main() { program.Main() }
