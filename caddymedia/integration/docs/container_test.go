package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// recipe finds the container image, and the configuration after it.
var recipe = regexp.MustCompile("(?s)```dockerfile\n(.*?)```.*?```caddyfile\n(.*?)```")

// TestContainer builds the image of the recipes, and stores objects in a container with the rights of
// its user. It is skipped without a running docker.
func TestContainer(t *testing.T) {
	docker := servers.Installed("docker")
	if testing.Short() || docker == "" || exec.Command(docker, "info").Run() != nil {
		t.Skip("docker is not running")
	}
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := recipe.FindStringSubmatch(string(page))
	if blocks == nil {
		t.Fatal("the recipes have no container")
	}
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(docker, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("docker %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}

	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(blocks[2]), 0o644); err != nil {
		t.Fatal(err)
	}
	const image = "caddymedia-recipe-test"
	run(blocks[1], "build", "-q", "-t", image, "-f", "-", "../../..")
	// The hash is that of Caddyfile.example.
	container := run("", "run", "-d", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"-v", config+":/etc/caddy/Caddyfile:ro",
		"-e", "SHOP_PASSWORD_HASH=$argon2id$v=19$m=47104,t=1,p=1$A4jf1aqXBp1xxJ37lPh12A$WaFuBSrB5SmdEcA4byiDJ83t54g74DSO4UiWcMTjXHQ", image)
	t.Cleanup(func() { run("", "rm", "-f", "-v", container) })
	if out := run("", "exec", container, "caddy", "media", "probe", "--config", "/etc/caddy/Caddyfile"); !strings.Contains(out, "default (local) can be used") {
		t.Errorf("probe: %s", out)
	}
}
