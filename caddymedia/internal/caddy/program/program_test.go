package program

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

const runMain = "MEDIA_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		Main()
		return
	}
	os.Exit(m.Run())
}

// TestVersion: the program names its version before that of Caddy, which is unknown in a test.
func TestVersion(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"version":   `^caddymedia (unknown build|commit .*), Caddy( v2\S+ h1:\S+)?\n$`,
		"--version": `^caddymedia (unknown build|commit .*), Caddy( v2\S+ h1:\S+)?\n$`,
		"environ":   `\ncaddy\.Version=caddymedia `,
	} {
		cmd := exec.Command(os.Args[0], command)
		cmd.Env = append(os.Environ(), runMain+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}
