package integration

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// child is a Caddy in a child process, which a test may reload, stop, kill and restart. Its
// addresses and folders stay the same.
type child struct {
	t     *testing.T
	home  string // the parent of all its folders
	root  string // $ROOT, the folder of its storage
	admin string // address of the admin API
	plain string // address of the site over HTTP/1.1
	tls   string // address of the site over HTTP/2 and HTTP/3, if it has one
	env   []string

	global string // further global options
	sites  string // further sites

	opened []*childClient // all clients so far
	cmd    *exec.Cmd      // nil while it does not run
	ended  chan error
}

const (
	patience  = time.Minute // for events expected soon, on a busy machine
	exitLimit = time.Minute
)

// newChild prepares a Caddy. env are additional environment variables ("NAME=value").
func newChild(t *testing.T, env ...string) *child {
	t.Helper()
	if runtime.GOOS == "windows" {
		skip(t, "no signals to stop a process with")
	}
	home := t.TempDir()
	c := &child{
		t: t, home: home, root: filepath.Join(home, "storage"),
		admin: servers.FreeAddress(t), plain: servers.FreeAddress(t),
		env: append([]string{
			runCaddy + "=1",
			"XDG_DATA_HOME=" + filepath.Join(home, "data"),
			"XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		}, env...),
	}
	t.Cleanup(c.finish)
	return c
}

// newTLSChild prepares a Caddy with HTTP/2 and HTTP/3.
func newTLSChild(t *testing.T) *child {
	t.Helper()
	c := newChild(t)
	c.tls = servers.FreeAddress(t)
	return c
}

// caddyfile returns the whole configuration. media are the lines inside the global option media.
func (c *child) caddyfile(media string) string {
	config := `{
` + c.global + `
	admin $ADMIN
	default_bind 127.0.0.1
	skip_install_trust
	local_certs
	auto_https disable_redirects
	log {
		format json
	}
	servers {
		expected_underscore_headers HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN
	}
	media {
` + media + `
	}
}
http://$PLAIN {
	media
	respond /alive "alive"
}
`
	if c.tls != "" {
		config += "https://$TLS {\n\tmedia\n\trespond /alive \"alive\"\n}\n"
	}
	config += c.sites
	return strings.NewReplacer("$ROOT", c.root, "$ADMIN", c.admin, "$PLAIN", c.plain, "$TLS", c.tls).Replace(config)
}

// start runs the Caddy and waits until its sites answer.
func (c *child) start(media string) {
	c.t.Helper()
	config := filepath.Join(c.home, "Caddyfile")
	if err := os.WriteFile(config, []byte(c.caddyfile(media)), 0o600); err != nil {
		c.t.Fatal(err)
	}
	out, err := os.OpenFile(c.outFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	binary := os.Getenv("MEDIA_TEST_CADDY")
	if binary == "" {
		if binary, err = os.Executable(); err != nil {
			c.t.Fatal(err)
		}
	}
	c.cmd = exec.Command(binary, "run", "--config", config, "--adapter", "caddyfile")
	c.cmd.Env = append(os.Environ(), c.env...)
	c.cmd.Dir = c.home
	c.cmd.Stdout, c.cmd.Stderr = out, out
	if err := c.cmd.Start(); err != nil {
		c.cmd = nil
		c.t.Fatal(err)
	}
	c.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(c.cmd, c.ended)
	c.waitUntilUp()
}

func (c *child) waitUntilUp() {
	c.t.Helper()
	for _, client := range c.clients() {
		eventually(c.t, "the site answers", func() bool {
			select {
			case err := <-c.ended:
				c.cmd = nil
				c.t.Fatalf("Caddy ended at its start: %v", err)
			default:
			}
			r, err := client.Get(client.base + "/alive")
			if err != nil {
				return false
			}
			defer r.Body.Close()
			return r.StatusCode == http.StatusOK
		})
		client.CloseIdleConnections()
	}
}

// load loads another configuration into the running Caddy, and returns the answer.
func (c *child) load(media string) (status int, body string) {
	c.t.Helper()
	defer c.forgetIdle()
	return c.ask(http.MethodPost, "/load", c.caddyfile(media), "Content-Type", "text/caddyfile")
}

// change changes a part of the configuration. value is JSON.
func (c *child) change(method, path, value string, headers ...string) (status int, body string) {
	c.t.Helper()
	defer c.forgetIdle()
	return c.ask(method, "/config/apps/media/"+path, value, append(headers, "Content-Type", "application/json")...)
}

// forgetIdle closes the idle connections of all clients. Caddy closes them at a reload, and an
// upload sent at that moment would fail.
func (c *child) forgetIdle() {
	for _, client := range c.opened {
		client.CloseIdleConnections()
	}
}

// mustLoad is load, but the configuration must be accepted.
func (c *child) mustLoad(media string) {
	c.t.Helper()
	if status, body := c.load(media); status != http.StatusOK {
		c.t.Fatalf("the configuration is refused: %d %s\n%s", status, body, media)
	}
}

// adminClient keeps no connection, because a reload ends them.
var adminClient = &http.Client{
	Timeout:   patience,
	Transport: &http.Transport{DisableKeepAlives: true},
}

// ask sends a request to the admin API. headers are names and values in turn.
func (c *child) ask(method, path, body string, headers ...string) (status int, answer string) {
	c.t.Helper()
	r := c.request(method, path, body, headers...)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func (c *child) request(method, path, body string, headers ...string) *http.Response {
	c.t.Helper()
	r, err := again(func() (*http.Response, error) {
		req, err := http.NewRequest(method, "http://"+c.admin+path, strings.NewReader(body))
		if err != nil {
			c.t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		r, err := adminClient.Do(req)
		if err != nil {
			err = unansweredError{err}
		}
		return r, err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// kill sends SIGKILL to the Caddy and waits for its end.
func (c *child) kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Fatal(err)
	}
	<-c.ended
	c.cmd = nil
}

// terminate sends the signal to end; waitForExit waits for the end. A Caddy that has just started
// may not handle signals yet.
func (c *child) terminate() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) waitForExit() {
	c.t.Helper()
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Errorf("Caddy ended with %v", err)
		}
		c.cmd = nil
	case <-time.After(exitLimit):
		c.t.Fatal("Caddy does not end")
	}
}

// stop terminates the Caddy and waits for its end.
func (c *child) stop() {
	c.t.Helper()
	if status, answer := c.ask(http.MethodPost, "/stop", ""); status != http.StatusOK {
		c.t.Errorf("stopping: %d %s", status, answer)
	}
	c.waitForExit()
}

// finish ends a running Caddy at the end of the test, and checks its output.
func (c *child) finish() {
	if c.cmd != nil {
		c.kill()
	}
	out := c.output()
	for _, bad := range []string{"DATA RACE", "panic", "fatal error"} {
		if strings.Contains(out, bad) {
			c.t.Errorf("Caddy wrote %q", bad)
		}
	}
	if c.t.Failed() {
		c.t.Logf("Caddy wrote:\n%s", out[max(0, len(out)-20_000):])
	}
}

func (c *child) outFile() string { return filepath.Join(c.home, "output") }

// output returns the output of all runs of the Caddy, including the log.
func (c *child) output() string {
	b, err := os.ReadFile(c.outFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Error(err)
	}
	return string(b)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
