package features_test

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelChangesLast: the panel reports correctly whether its changes survive a restart.
func TestPanelChangesLast(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	address := servers.FreeAddress(t)
	c.Sites = "http://" + address + " {\n" + site.PanelBlock + "}\n"
	p := &site.Panel{
		Site: &site.Site{URL: "http://" + address, Address: address, Client: &http.Client{Transport: new(http.Transport)}},
		User: "admin", Seen: new([]*site.Reply),
	}
	says := func(want string) {
		t.Helper()
		p.AwaitSwitch(t)
		if r := p.Must(t, http.StatusOK, http.MethodGet, "session", nil); !strings.Contains(r.Body, want) {
			t.Errorf("session %s, want %s", r.Body, want)
		}
	}
	c.Start("tokens memory\n" + site.Account)
	says(`"lasting":false`)
	p.Put(t, http.StatusCreated, "file_aliases/first", `{"value":{"prefix":"first"}}`)
	says("--resume")
	c.Kill()

	c.Start("tokens memory\n" + site.Account)
	p.AwaitSwitch(t)
	p.Must(t, http.StatusNotFound, http.MethodGet, "config/file_aliases/first", nil)
	p.Put(t, http.StatusCreated, "file_aliases/second", `{"value":{"prefix":"second"}}`)
	c.Kill()

	resume(c)
	says(`"lasting":true,"lasting_note":""`)
	p.Must(t, http.StatusOK, http.MethodGet, "config/file_aliases/second", nil)
	p.Put(t, http.StatusCreated, "file_aliases/third", `{"value":{"prefix":"third"}}`)
	says(`"lasting":true,"lasting_note":""`)
	c.Kill()

	resume(c)
	p.AwaitSwitch(t)
	p.Must(t, http.StatusOK, http.MethodGet, "config/file_aliases/third", nil)
}

// resume runs a Caddy again with its saved configuration.
func resume(c *site.Child) {
	c.T.Helper()
	binary := os.Getenv("MEDIA_TEST_CADDY")
	if binary == "" {
		binary = os.Args[0]
	}
	out, err := os.OpenFile(c.OutFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		c.T.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(binary, "run", "--resume")
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Home
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	c.Cmd, c.Ended = cmd, make(chan error, 1)
	go func(ended chan<- error) { ended <- cmd.Wait() }(c.Ended)
	c.WaitUntilUp()
}
