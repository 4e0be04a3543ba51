package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// took is the time of a step in the output of a probe, and the spaces after it.
var took = regexp.MustCompile(`[0-9.]+(µs|ms|s) +`)

// TestDocsProbe: a probe of a local folder prints what the documentation shows, except for the times.
func TestDocsProbe(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	config := filepath.Join(folder, "Caddyfile")
	site.PutFile(t, config, "{\n\tmedia {\n\t\tstorage default {\n\t\t\tdriver local "+folder+"/media\n\t\t}\n\t}\n}\n")
	cmd := exec.CommandContext(t.Context(), program, "media", "probe", "--config", config)
	cmd.Env = append(os.Environ(), site.RunCaddy+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, want := took.ReplaceAllString(string(out), ""), took.ReplaceAllString(pages.Example(t, "commands.md", "", "can be used"), "")
	if got != want {
		t.Errorf("it prints\n%s\nThe documentation shows\n%s", got, want)
	}
}
