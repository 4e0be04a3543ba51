package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/testcaddy"
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

func newAwayChild(t *testing.T) *child {
	t.Helper()
	return newChild(t, "AWAY="+servers.FreeAddress(t), "SECRET="+awaySecret)
}

// TestProbeCommand probes the storages of a file: a table, a JSON document, or failures only.
func TestProbeCommand(t *testing.T) {
	t.Parallel()
	c := newAwayChild(t)
	config := c.write(twoStorages)

	all := c.media("probe", "--config", config)
	if all.code != 1 || !strings.Contains(all.out, "good (local) can be used") ||
		!strings.Contains(all.out, "away (sftp) CANNOT") || !strings.Contains(all.out, "refuse a second object") ||
		strings.Index(all.out, "away (sftp)") > strings.Index(all.out, "good (local)") {
		t.Errorf("exit code %d\n%s\n%s", all.code, all.out, all.err)
	}
	if !strings.Contains(all.err, "away: connect, log in and find the root: ") || !strings.Contains(all.err, "connection refused") {
		t.Errorf("the failure is reported as %q", all.err)
	}
	if one := c.media("probe", "good", "--config", config); one.code != 0 || one.err != "" {
		t.Errorf("only the good one: %+v", one)
	}
	quiet := c.media("probe", "--quiet", "--config", config)
	if quiet.code != 1 || quiet.out != "" || quiet.err != all.err {
		t.Errorf("--quiet: %+v", quiet)
	}
	none := c.media("probe", "nowhere", "--config", config)
	if none.code != 1 || !strings.Contains(none.err, `no storage "nowhere"`) {
		t.Errorf("an unknown storage: %+v", none)
	}
	for _, r := range []commandReply{all, quiet} {
		if strings.Contains(r.out+r.err, awaySecret) {
			t.Error("the password is shown")
		}
	}
	for _, folder := range []string{"config", "data"} { // of saved configurations, and of tokens
		if _, err := os.Stat(filepath.Join(c.home, folder)); !os.IsNotExist(err) {
			t.Errorf("the folder %s was made: %v", folder, err)
		}
	}
}

// TestUnknownCommand is an error, and a missing command prints a list.
func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	if r := c.media("prob"); r.code != 1 || !strings.Contains(r.err, `unknown command "prob"`) {
		t.Errorf("%+v", r)
	}
	if r := c.media().must(t); !strings.Contains(r.out, "probe") || !strings.Contains(r.out, "copy") {
		t.Errorf("%+v", r)
	}
}

// TestProbeCommandAsJSON: the document has every storage with its steps.
func TestProbeCommandAsJSON(t *testing.T) {
	t.Parallel()
	c := newAwayChild(t)
	r := c.media("probe", "--json", "--config", c.write(twoStorages))
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
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 1 || r.err != "" {
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
	c := newChild(t)
	c.start(onBolt)
	client := c.http1()
	token := client.mustLogin(t)
	if r := c.media("probe", "--address", c.admin).must(t); !strings.Contains(r.out, "keep (local) can be used") || r.err != "" {
		t.Errorf("%+v", r)
	}
	if r, _ := client.put(t, token, "content", "after.bin", []byte("x")); r.status != http.StatusOK {
		t.Errorf("an upload after the probe: %v", r)
	}
	mustHaveOnly(t, c.root, slices.DeleteFunc(filesBelow(t, c.root), func(name string) bool {
		return strings.Contains(name, "media-probe")
	})...)
	c.stop()
	if r := c.media("probe", "--address", c.admin); r.code != 1 || !strings.Contains(r.err, "--config") {
		t.Errorf("of a Caddy that does not run: %+v", r)
	}
}

// TestProbeOverSocket: the admin API may be a Unix socket.
func TestProbeOverSocket(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.admin = "unix/" + filepath.Join(testcaddy.SocketFolder(t), "admin.sock")
	c.start("tokens memory\n" + account + binaries)
	c.media("probe", "--address", c.admin).must(t)
}
