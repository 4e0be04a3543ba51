package mediacmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/media"
)

func accountCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "account <name>",
		Short: "Make a password for an account, and its line in the Caddyfile",
		Long: `Make a random password and print it, as a comment, with the line of the
account, which has only its hash. Paste the output into the global option
media, and remove the comment. The command changes no configuration.

The hash is for a user of the panel too, in the option login of media_admin.

With --hash-file, make a password only if there is no such file, and write its
hash there, for the placeholder {file.<path>} in the configuration.`,
		Args: needs(1, 1, "<name>"),
	}
	cmd.Flags().StringVar(&file, "hash-file", "", "File for the hash, which stays as it is if it is there")
	return withOutput(cmd, func(_ context.Context, o *output, args []string) error { return o.account(args[0], file) })
}

// accountResult is the JSON of a new password.
type accountResult struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Hash     string `json:"hash,omitempty"`
}

// account prints a new password for an account. If file is not empty, the hash goes there.
func (o *output) account(name, file string) error {
	if err := media.APIKeys.Check(name); err != nil {
		return fmt.Errorf("account %q: %w", name, err)
	}
	if file != "" {
		return o.firstAccount(name, file)
	}
	password, hash, err := plugin.NewPassword()
	if err != nil {
		return err
	}
	o.sayf("# The password of %s: keep it, and remove these two lines.\n#   %s\naccount %s %s", name, password, name, hash)
	return o.document(accountResult{name, password, hash})
}

// firstAccount prints the password of an account if no file has its hash yet.
func (o *output) firstAccount(name, file string) error {
	password, err := plugin.FirstPassword(file)
	switch {
	case err != nil:
		return fmt.Errorf("account %q: %w", name, err)
	case password == "":
		o.sayf("%s is there: the password of %s stays as it is", file, name)
	default:
		o.sayf("The password of %s: keep it. Only its hash is stored, in %s\n    %s", name, file, password)
	}
	return o.document(accountResult{Name: name, Password: password})
}
