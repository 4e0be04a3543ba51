// Package mediacmd implements the `caddy media` commands, with which an administrator manages
// storages and items from a shell.
//
// A command uses the storages and aliases of a configuration, from a file or from a running Caddy,
// but in its own process. It starts no site and opens no token store. Begin with the commands that
// init registers.
package mediacmd

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "media",
		Short: "Manage storages and items",
		Long: `Manage the storages and items of the media service.

Commands that need a configuration read it from the admin API of the running
Caddy at --address, or from a file with --config. Placeholders such as {env.X}
are expanded in the environment of the command.

Messages and progress bars go to the standard error. Bars are shown only on a
terminal, and not with --quiet or --json. The exit code is 0 on success and 1 if
anything failed.`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.NoArgs // so that a command that does not exist is an error
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.AddCommand(accountCommand(), probeCommand(), copyCommand(), variantsCommand(), sweepCommand(), trashCommand(), restoreCommand(), cacheCommand(),
				healthCommand(), versionCommand())
		},
	})
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of the plug-in, of Caddy and of Go",
		Long:  "Show the version of the plug-in, of Caddy and of Go in this program.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), plugin.Version())
			return err
		},
	}
}

// maxArguments is for commands that have no limit.
const maxArguments = math.MaxInt

// needs returns a check of the number of arguments, which are named in the error.
func needs(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s needs %s; see %s --help", cmd.Name(), names, cmd.CommandPath())
		}
		return nil
	}
}

// errReported ends a command with exit code 1. The failure has already been printed.
var errReported = errors.New("something failed")

// errInterrupted ends an interrupted command.
var errInterrupted = errors.New("interrupted")
