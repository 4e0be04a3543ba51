package mediacmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/plugin"
	"github.com/caddymedia/media/caddymedia/media"
)

func accountCommand() *cobra.Command {
	return withOutput(&cobra.Command{
		Use:   "account <name>",
		Short: "Make a password for an account, and its line in the Caddyfile",
		Long: `Make a random password and print it, as a comment, with the line of the
account, which has only its hash. Paste the output into the global option
media, and remove the comment. The command changes no configuration.

The hash is for a user of the panel too, in the option login of media_admin.`,
		Args: needs(1, 1, "<name>"),
	}, func(_ context.Context, o *output, args []string) error { return o.account(args[0]) })
}

// accountResult is the JSON of a new password.
type accountResult struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Hash     string `json:"hash"`
}

// account prints a new password for an account.
func (o *output) account(name string) error {
	if err := media.APIKeys.Check(name); err != nil {
		return fmt.Errorf("account %q: %w", name, err)
	}
	password, hash, err := plugin.NewPassword()
	if err != nil {
		return err
	}
	o.sayf("# The password of %s: keep it, and remove these two lines.\n#   %s\naccount %s %s", name, password, name, hash)
	return o.document(accountResult{name, password, hash})
}
