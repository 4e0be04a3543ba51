package mediacmd

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "media",
		Short: "Looks after the storages and items of the media service",
		Long: `Looks after the storages and items of the media service.

Commands that need a configuration take the one of the running Caddy, from its
admin API at --address, or with --config that of a file. Placeholders such as
{env.X} in it are expanded in the environment of the command.

Messages and progress bars go to the standard error; there are no bars where
it is no terminal, nor with --quiet or --json. The exit code is 0 if all is
well and 1 if anything failed.`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.NoArgs // so that a command that does not exist is an error
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.AddCommand(probeCommand(), copyCommand(), uploadCommand(), variantsCommand(), sweepCommand(),
				lsCommand(), duCommand(), rmCommand())
		},
	})
}

// maxArguments is for commands that have no limit.
const maxArguments = math.MaxInt

// needs checks the number of arguments; what names them.
func needs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s needs %s; %s --help says more", cmd.Name(), what, cmd.CommandPath())
		}
		return nil
	}
}

// errReported ends a command with exit code 1. The failure has already been printed.
var errReported = errors.New("something failed")

// errInterrupted ends an interrupted command.
var errInterrupted = errors.New("interrupted")
