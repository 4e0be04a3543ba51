package browser_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

func TestMain(m *testing.M) { site.Main(m) }

// browserModules is the folder whose node_modules contains playwright-core and axe-core.
const browserModules = "MEDIA_TEST_BROWSER"

// facts are the facts about a site that a script needs.
type facts struct {
	// Panel is the address of the panel, with a trailing slash.
	Panel string `json:"panel"`
	// Service is the address of the service, without a slash at the end, if the page is of another site.
	Service  string `json:"service,omitempty"`
	User     string `json:"user"`
	Password string `json:"password"`
	// Secrets must not reach the browser.
	Secrets []string `json:"secrets"`
	// Flags are further flags of Chromium.
	Flags []string `json:"flags,omitempty"`
	// More is for a single script.
	More any `json:"more"`
}

// browse runs a script of the folder browser, which operates Chromium like a user. If
// MEDIA_TEST_SHOTS names a folder, it saves screenshots there.
func browse(t *testing.T, script string, f facts) {
	t.Helper()
	needsBrowser(t)
	node, chromium := servers.Program(t, "node"), servers.Program(t, "chromium")
	encoded, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "facts.json")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script+".mjs")
	cmd.Env = append(os.Environ(), "MEDIA_TEST_CHROMIUM="+chromium, "MEDIA_TEST_FACTS="+file)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	} else if len(out) > 0 {
		t.Logf("%s", out)
	}
}

// needsBrowser skips a test, before any preparation, if browse would skip it.
func needsBrowser(t *testing.T) {
	t.Helper()
	if os.Getenv(browserModules) == "" {
		site.Skip(t, "%s is not set", browserModules)
	}
	servers.Program(t, "chromium")
}
