package features_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/testcaddy"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// twoStorages has a usable and an unusable storage.
const twoStorages = `
storage good {
	driver local $ROOT
}
storage away {
	driver sftp {env.AWAY} {
		user nobody
		password {env.SECRET}
		insecure_skip_host_key on
		timeout 5s
	}
}
file_alias content {
	storage good
}
`

// awaySecret is the password of the unusable storage.
const awaySecret = "the-secret-of-nobody"

func newAwayChild(t *testing.T) *site.Child {
	t.Helper()
	return site.NewChild(t, "AWAY="+servers.FreeAddress(t), "SECRET="+awaySecret)
}

// TestProbeCommand probes the storages of a file: a table, a JSON document, or failures only.
func TestProbeCommand(t *testing.T) {
	t.Parallel()
	c := newAwayChild(t)
	config := c.WriteConfig(twoStorages)

	all := c.Media("probe", "--config", config)
	if all.Code != 1 || !strings.Contains(all.Out, "good (local) can be used") ||
		!strings.Contains(all.Out, "away (sftp) CANNOT") || !strings.Contains(all.Out, "refuse a second object") ||
		strings.Index(all.Out, "away (sftp)") > strings.Index(all.Out, "good (local)") {
		t.Errorf("exit code %d\n%s\n%s", all.Code, all.Out, all.Err)
	}
	if !strings.Contains(all.Err, "away: connect, log in and find the folder: ") || !strings.Contains(all.Err, "connection refused") {
		t.Errorf("the failure is reported as %q", all.Err)
	}
	if one := c.Media("probe", "good", "--config", config); one.Code != 0 || one.Err != "" {
		t.Errorf("only the good one: %+v", one)
	}
	quiet := c.Media("probe", "--quiet", "--config", config)
	if quiet.Code != 1 || quiet.Out != "" || quiet.Err != all.Err {
		t.Errorf("--quiet: %+v", quiet)
	}
	none := c.Media("probe", "nowhere", "--config", config)
	if none.Code != 1 || !strings.Contains(none.Err, `no storage "nowhere"`) {
		t.Errorf("an unknown storage: %+v", none)
	}
	for _, r := range []site.CommandReply{all, quiet} {
		if strings.Contains(r.Out+r.Err, awaySecret) {
			t.Error("the password is shown")
		}
	}
	for _, folder := range []string{"config", "data"} { // of saved configurations, and of tokens
		if _, err := os.Stat(filepath.Join(c.Home, folder)); !os.IsNotExist(err) {
			t.Errorf("the folder %s was made: %v", folder, err)
		}
	}
}

// TestUnknownCommand is an error, and a missing command prints a list.
func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	if r := c.Media("prob"); r.Code != 1 || !strings.Contains(r.Err, `unknown command "prob"`) {
		t.Errorf("%+v", r)
	}
	if r := c.Media().Must(t); !strings.Contains(r.Out, "probe") || !strings.Contains(r.Out, "copy") {
		t.Errorf("%+v", r)
	}
}

// TestProbeCommandAsJSON: the document has every storage with its steps.
func TestProbeCommandAsJSON(t *testing.T) {
	t.Parallel()
	c := newAwayChild(t)
	r := c.Media("probe", "--json", "--config", c.WriteConfig(twoStorages))
	var got struct {
		OK       bool
		Storages []struct {
			Name, Driver string
			OK           bool
			Steps        []struct {
				Name, Error string
				OK          bool
			}
			Features map[string]any
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil || r.Code != 1 || r.Err != "" {
		t.Fatalf("%v: %+v", err, r)
	}
	if got.OK || len(got.Storages) != 2 {
		t.Fatalf("%+v", got)
	}
	away, good := got.Storages[0], got.Storages[1]
	if away.Name != "away" || away.OK || len(away.Steps) != 1 || away.Steps[0].Error == "" {
		t.Errorf("%+v", away)
	}
	if good.Name != "good" || good.Driver != "local" || !good.OK || len(good.Steps) != 9 || good.Features["create"] != "atomic" {
		t.Errorf("%+v", good)
	}
}

// TestProbeOfRunningCaddy: the command reads the configuration of a running Caddy and does not open
// its locked token file.
func TestProbeOfRunningCaddy(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(site.OnBolt)
	client := c.HTTP1()
	token := client.MustLogin(t)
	if r := c.Media("probe", "--address", c.Admin).Must(t); !strings.Contains(r.Out, "keep (local) can be used") || r.Err != "" {
		t.Errorf("%+v", r)
	}
	if r, _ := client.Put(t, token, "content", "after.bin", []byte("x")); r.Status != http.StatusOK {
		t.Errorf("an upload after the probe: %v", r)
	}
	site.MustHaveOnly(t, c.Root, slices.DeleteFunc(site.FilesBelow(t, c.Root), func(name string) bool {
		return strings.Contains(name, "media-probe")
	})...)
	c.Stop()
	if r := c.Media("probe", "--address", c.Admin); r.Code != 1 || !strings.Contains(r.Err, "--config") {
		t.Errorf("of a Caddy that does not run: %+v", r)
	}
}

// TestProbeOverSocket: the admin API may be a Unix socket.
func TestProbeOverSocket(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Admin = "unix/" + filepath.Join(testcaddy.SocketFolder(t), "admin.sock")
	c.Start("tokens memory\n" + site.Account + site.Binaries)
	c.Media("probe", "--address", c.Admin).Must(t)
}
