package mediacmd

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

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
			cmd.AddCommand(probeCommand(), copyCommand(), uploadCommand(), variantsCommand(), sweepCommand())
		},
	})
}

// errReported ends a command with exit code 1 that has said what failed.
var errReported = errors.New("something failed")

// errInterrupted ends a command that was asked to end.
var errInterrupted = errors.New("interrupted")

// run gives what a command does, in the form that cobra takes. The context of f ends at
// the first interrupt or SIGTERM; the second one ends the process.
func run(f func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		err := f(ctx, cmd, args)
		switch {
		case errors.Is(err, errReported):
			cmd.SilenceErrors = true
		case err != nil && ctx.Err() != nil:
			return errInterrupted // not what that did to a storage
		}
		return new(output).hideIn(err)
	}
}
