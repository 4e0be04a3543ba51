// Package program is the main function of the programs of this module: Caddy with its standard
// modules, which names the version of this module beside its own. A program chooses its parts by
// imports. A Caddy that xcaddy builds has a main function of its own. Begin with [Main].
package program

import (
	_ "time/tzdata" // a container may have no time zones

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
)

// Main runs Caddy with the arguments of the process.
func Main() {
	caddy.CustomVersion = "caddymedia " + plugin.OwnVersion() + ", Caddy" // its own version follows
	caddycmd.Main()
}
