package integration

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelChangesLast: the panel reports correctly whether its changes survive a restart.
func TestPanelChangesLast(t *testing.T) {
	c := newChild(t)
	address := servers.FreeAddress(t)
	c.sites = "http://" + address + " {\n" + panelBlock + "}\n"
	p := &panel{
		site: &site{url: "http://" + address, address: address, client: &http.Client{Transport: new(http.Transport)}},
		user: "admin", seen: new([]*reply),
	}
	says := func(want string) {
		t.Helper()
		p.awaitSwitch(t)
		if r := p.must(t, http.StatusOK, http.MethodGet, "session", nil); !strings.Contains(r.body, want) {
			t.Errorf("session %s, want %s", r.body, want)
		}
	}
	c.start("tokens memory\n" + account)
	says(`"lasting":false`)
	p.put(t, http.StatusCreated, "file_aliases/first", `{"value":{"prefix":"first"}}`)
	says("--resume")
	c.kill()

	c.start("tokens memory\n" + account)
	p.awaitSwitch(t)
	p.must(t, http.StatusNotFound, http.MethodGet, "config/file_aliases/first", nil)
	p.put(t, http.StatusCreated, "file_aliases/second", `{"value":{"prefix":"second"}}`)
	c.kill()

	resume(c)
	says(`"lasting":true,"lasting_note":""`)
	p.must(t, http.StatusOK, http.MethodGet, "config/file_aliases/second", nil)
	p.put(t, http.StatusCreated, "file_aliases/third", `{"value":{"prefix":"third"}}`)
	says(`"lasting":true,"lasting_note":""`)
	c.kill()

	resume(c)
	p.awaitSwitch(t)
	p.must(t, http.StatusOK, http.MethodGet, "config/file_aliases/third", nil)
}

// resume runs a Caddy again with its saved configuration.
func resume(c *child) {
	c.t.Helper()
	binary := os.Getenv("MEDIA_TEST_CADDY")
	if binary == "" {
		binary = os.Args[0]
	}
	out, err := os.OpenFile(c.outFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(binary, "run", "--resume")
	cmd.Env, cmd.Dir = append(os.Environ(), c.env...), c.home
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.cmd, c.ended = cmd, make(chan error, 1)
	go func(ended chan<- error) { ended <- cmd.Wait() }(c.ended)
	c.waitUntilUp()
}
