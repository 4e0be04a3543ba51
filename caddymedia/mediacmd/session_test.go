package mediacmd

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestReasons: a failure of a storage has its reason in plain words, before the error itself.
func TestReasons(t *testing.T) {
	config := configured(t)
	const reason = "The root is not a folder, or a part of its path is a file. Name a folder."
	for name, command := range map[string]struct {
		cmd     *cobra.Command
		args    []string
		json    string // in the document
		message string // in the messages, or in the error of a command that prints none
	}{
		"probe": {probeCommand(), []string{"broken"}, `","reason":"` + reason, "broken: find the folder: " + reason + "\n  check on storage"},
		"copy":  {copyCommand(), []string{"main", "broken"}, "", `storage "broken" cannot be used: ` + reason + "\n  check on storage"},
		"sweep": {sweepCommand(), []string{"broken"}, `","reason":"` + reason, "broken: " + reason + "\n  "},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(command.args, "--config", config)
			_, messages, err := run(t, command.cmd, args...)
			if err == nil || !strings.Contains(messages+err.Error(), command.message) {
				t.Errorf("%q and error %v, want %q", messages, err, command.message)
			}
			out, _, err := run(t, command.cmd, append(args, "--json")...)
			if err == nil || !strings.Contains(out, command.json) {
				t.Errorf("%q and error %v, want %q", out, err, command.json)
			}
		})
	}
}

// TestMissingArguments: a command names the arguments that it needs.
func TestMissingArguments(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		cmd  *cobra.Command
		args []string
	}{
		"copy needs <from> and <to>":                 {copyCommand(), []string{"main"}},
		"variants needs <alias>":                     {variantsCommand(), []string{"a", "b"}},
		"upload needs at least one <file or folder>": {uploadCommand(), nil},
	} {
		if _, _, err := run(t, test.cmd, test.args...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
