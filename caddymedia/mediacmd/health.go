package mediacmd

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"
)

func healthCommand() *cobra.Command {
	var address string
	cmd := withOutput(&cobra.Command{
		Use:   "health",
		Short: "Show whether the running Caddy can use its storages and its token store",
		Long: `Show whether the running Caddy can use its storages, from its last check of
each, and its token store, which it asks now, and whether the programs of its
checks answered when they were last asked. The command uses no storage. The exit
code is 1 if one cannot be used, or if no Caddy answers.

With --json the result is one document.`,
		Args: cobra.NoArgs,
	}, func(_ context.Context, o *output, _ []string) error { return o.health(address) })
	cmd.Flags().StringVar(&address, "address", "", "Address of the admin API of the running Caddy")
	return cmd
}

// healthResult is the part of the answer of the API that is shown.
type healthResult struct {
	Storages []struct {
		Name   string `json:"name"`
		Health struct {
			State   string `json:"state"` // "up", "down", or "unknown" before the first check
			Since   string `json:"since"`
			Message string `json:"message"`
		} `json:"health"`
	} `json:"storages"`
	Checks []struct {
		Kind   string `json:"kind"`
		Alias  string `json:"alias"`
		Name   string `json:"name"`
		Health struct {
			State   string `json:"state"`
			Checked string `json:"checked"`
			Message string `json:"message"`
		} `json:"health"`
	} `json:"checks,omitempty"`
	Tokens struct {
		OK      bool   `json:"ok"`
		Message string `json:"message"`
	} `json:"tokens"`
}

// health shows the health of the running Caddy. It returns errReported if something cannot be used.
func (o *output) health(address string) error {
	var result healthResult
	if err := askRunning(address, http.MethodGet, "/media/health", &result); err != nil {
		return err
	}
	var err error
	rows := make([][]string, 0, len(result.Storages))
	for _, s := range result.Storages {
		rows = append(rows, []string{s.Name, s.Health.State, s.Health.Since})
		if s.Health.State == "down" {
			o.failf("%s: %s", s.Name, s.Health.Message)
			err = errReported
		}
	}
	for _, c := range result.Checks {
		name := c.Kind + "/" + c.Alias + " " + c.Name
		rows = append(rows, []string{name, c.Health.State, c.Health.Checked})
		if c.Health.State == "down" {
			o.failf("%s: %s", name, c.Health.Message)
			err = errReported
		}
	}
	if !result.Tokens.OK {
		o.failf("%s", result.Tokens.Message)
		err = errReported
	}
	return errors.Join(o.document(result), o.table(rows), err)
}
