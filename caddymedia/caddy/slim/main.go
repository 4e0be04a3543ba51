// Command slim is stock Caddy with the media plug-in, and of the storage drivers with that of local
// folders only.
package main

import (
	_ "github.com/caddymedia/media/caddymedia/core"
	_ "github.com/caddymedia/media/caddymedia/drivers/local"
	"github.com/caddymedia/media/caddymedia/internal/caddy/program"
)

func main() { program.Main() }
