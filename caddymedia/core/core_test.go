package core_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	_ "github.com/caddymedia/media/caddymedia/core"
	"github.com/caddymedia/media/caddymedia/internal/testcaddy"
)

func TestMain(m *testing.M) { os.Exit(testcaddy.Run(m)) }

// TestMissingDriver: the error names the package that is missing in the build.
func TestMissingDriver(t *testing.T) {
	t.Parallel()
	for driver, want := range map[string]string{
		"s3":     `this build has no driver "s3": build it with the package github.com/caddymedia/media/caddymedia/drivers/s3; there are local`,
		"floppy": `unknown driver "floppy"; there are local`,
	} {
		text := "{\n\tmedia {\n\t\tstorage default {\n\t\t\tdriver " + driver + " x\n\t\t}\n\t}\n}\n"
		_, _, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt([]byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", driver, err, want)
		}
	}
}

// TestSlim: a build without a driver does not link its library.
func TestSlim(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "github.com/caddymedia/media/caddymedia/core").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, library := range []string{"aws-sdk-go-v2", "azure-sdk-for-go", "cloud.google.com/go/storage", "pkg/sftp", "jlaffaye/ftp"} {
		if strings.Contains(string(out), library) {
			t.Errorf("it links %s", library)
		}
	}
}
