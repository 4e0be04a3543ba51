package core_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	_ "github.com/caddymedia/media/caddymedia/core"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
)

func TestMain(m *testing.M) { os.Exit(testcaddy.Run(m)) }

// TestMissing: the error names the package that is missing in the build.
func TestMissing(t *testing.T) {
	t.Parallel()
	const packages = "github.com/caddymedia/media/caddymedia/drivers/"
	for lines, want := range map[string]string{
		"storage default {\ndriver s3 x\n}":     `this build has no driver "s3": build it with the package ` + packages + `s3; there are local`,
		"storage default {\ndriver floppy x\n}": `unknown driver "floppy"; there are local`,
		"tokens redis":                          `this build has no token store "redis": build it with the package ` + packages + `redis; there are bolt, memory`,
	} {
		text := "{\nmedia {\n" + lines + "\n}\n}\n"
		_, _, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt([]byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", lines, err, want)
		}
	}
}

// TestSlim: a build without a driver or a token store does not link its library. A container may
// have no time zones, so programs have their own.
func TestSlim(t *testing.T) {
	t.Parallel()
	libraries := []string{"aws-sdk-go-v2", "azure-sdk-for-go", "cloud.google.com/go/storage", "pkg/sftp", "jlaffaye/ftp", "go-redis"}
	for name, parts := range map[string][]string{
		"core": nil, "caddy/slim": {"caddymedia/drivers/local\n", "time/tzdata\n"}, "caddy": append([]string{"time/tzdata\n"}, libraries...),
	} {
		out, err := exec.Command("go", "list", "-deps", "github.com/caddymedia/media/caddymedia/"+name).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, part := range slices.Concat(libraries, parts) {
			if want := slices.Contains(parts, part); strings.Contains(string(out), part) != want {
				t.Errorf("%s links %q: %t, want %t", name, part, !want, want)
			}
		}
	}
}
