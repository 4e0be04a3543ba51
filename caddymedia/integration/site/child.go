package site

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// Child is a Caddy in a child process, which a test may reload, stop, kill and restart. Its
// addresses and folders stay the same.
type Child struct {
	T     *testing.T
	Home  string // the parent of all its folders
	Root  string // $ROOT, the folder of its storage
	Admin string // address of the admin API
	Plain string // address of the site over HTTP/1.1
	TLS   string // address of the site over HTTP/2 and HTTP/3, if it has one
	Env   []string

	Global string // further global options
	Sites  string // further sites

	mu     *sync.Mutex // of opened
	opened []*Client   // all clients so far
	Cmd    *exec.Cmd   // nil while it does not run
	Ended  chan error
}

// Patience is how long a test waits for events expected soon, on a busy machine.
const Patience = time.Minute

const exitLimit = time.Minute

// NewChild prepares a Caddy. env are additional environment variables ("NAME=value"). With -short
// the test is skipped.
func NewChild(t *testing.T, env ...string) *Child {
	t.Helper()
	if testing.Short() {
		t.Skip("starting a Caddy takes seconds")
	}
	if runtime.GOOS == "windows" {
		Skip(t, "no signals to stop a process with")
	}
	home := t.TempDir()
	c := &Child{
		mu: new(sync.Mutex),
		T:  t, Home: home, Root: filepath.Join(home, "storage"),
		Admin: servers.FreeAddress(t), Plain: servers.FreeAddress(t),
		Env: append([]string{
			RunCaddy + "=1",
			"XDG_DATA_HOME=" + filepath.Join(home, "data"),
			"XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
			"XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		}, env...),
	}
	t.Cleanup(c.finish)
	return c
}

// NewTLSChild prepares a Caddy with HTTP/2 and HTTP/3.
func NewTLSChild(t *testing.T) *Child {
	t.Helper()
	c := NewChild(t)
	c.TLS = servers.FreeAddress(t)
	return c
}

// Caddyfile returns the whole configuration. media are the lines inside the global option media.
func (c *Child) Caddyfile(media string) string {
	config := `{
` + c.Global + `
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
	if c.TLS != "" {
		config += "https://$TLS {\n\tmedia\n\trespond /alive \"alive\"\n}\n"
	}
	config += c.Sites
	return strings.NewReplacer("$ROOT", c.Root, "$ADMIN", c.Admin, "$PLAIN", c.Plain, "$TLS", c.TLS).Replace(config)
}

// Start runs the Caddy and waits until its sites answer.
func (c *Child) Start(media string) {
	c.T.Helper()
	c.run("--config", c.WriteConfig(media), "--adapter", "caddyfile")
}

// Resume is Start with the configuration that an earlier run has saved.
func (c *Child) Resume() {
	c.T.Helper()
	c.run("--resume")
}

func (c *Child) run(args ...string) {
	c.T.Helper()
	out, err := os.OpenFile(c.OutFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		c.T.Fatal(err)
	}
	defer out.Close()
	c.Cmd = c.Program(append([]string{"run"}, args...)...)
	c.Cmd.Stdout, c.Cmd.Stderr = out, out
	if err := c.Cmd.Start(); err != nil {
		c.Cmd = nil
		c.T.Fatal(err)
	}
	c.Ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(c.Cmd, c.Ended)
	c.WaitUntilUp()
}

// Program returns a command of the program that runs Caddy, in the home of the child: this one, or
// MEDIA_TEST_CADDY.
func (c *Child) Program(args ...string) *exec.Cmd {
	c.T.Helper()
	binary := os.Getenv("MEDIA_TEST_CADDY")
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			c.T.Fatal(err)
		}
	}
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Home
	return cmd
}

// WaitUntilUp waits until the whole configuration runs and every site answers.
func (c *Child) WaitUntilUp() {
	c.T.Helper()
	for _, client := range c.Clients() {
		Eventually(c.T, "the site answers", func() bool {
			select {
			case err := <-c.Ended:
				c.Cmd = nil
				c.T.Fatalf("Caddy ended at its start: %v", err)
			default:
			}
			r, err := client.Get(client.Base + "/alive")
			if err != nil {
				return false
			}
			defer r.Body.Close()
			return r.StatusCode == http.StatusOK
		})
		client.CloseIdleConnections()
	}
	if c.Sites != "" {
		// Caddy begins to listen on one address after the other, and shows its configuration when all are
		// ready.
		c.Ask(http.MethodGet, "/config/admin", "")
	}
}

// Load loads another configuration into the running Caddy, and returns the answer.
func (c *Child) Load(media string) (status int, body string) {
	c.T.Helper()
	defer c.ForgetIdle()
	return c.Ask(http.MethodPost, "/load", c.Caddyfile(media), "Content-Type", "text/caddyfile")
}

// Change changes a part of the configuration. value is JSON.
func (c *Child) Change(method, path, value string, headers ...string) (status int, body string) {
	c.T.Helper()
	defer c.ForgetIdle()
	return c.Ask(method, "/config/apps/media/"+path, value, append(headers, "Content-Type", "application/json")...)
}

// ForgetIdle closes the idle connections of all clients. Caddy closes them at a reload, and an
// upload sent at that moment would fail.
func (c *Child) ForgetIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.opened {
		client.CloseIdleConnections()
	}
}

// MustLoad is Load, but the configuration must be accepted.
func (c *Child) MustLoad(media string) {
	c.T.Helper()
	if status, body := c.Load(media); status != http.StatusOK {
		c.T.Fatalf("the configuration is refused: %d %s\n%s", status, body, media)
	}
}

// AdminClient keeps no connection, because a reload ends them.
var AdminClient = &http.Client{
	Timeout:   Patience,
	Transport: &http.Transport{DisableKeepAlives: true},
}

// Ask sends a request to the admin API. headers are names and values in turn.
func (c *Child) Ask(method, path, body string, headers ...string) (status int, answer string) {
	c.T.Helper()
	r := c.Request(method, path, body, headers...)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// Request sends a request to the admin API and returns the answer, whose body the caller closes.
func (c *Child) Request(method, path, body string, headers ...string) *http.Response {
	c.T.Helper()
	r, err := Retry(func() (*http.Response, error) {
		req, err := http.NewRequest(method, "http://"+c.Admin+path, strings.NewReader(body))
		if err != nil {
			c.T.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		r, err := AdminClient.Do(req)
		if err != nil {
			err = UnansweredError{err}
		}
		return r, err
	})
	if err != nil {
		c.T.Fatal(err)
	}
	return r
}

// Kill sends SIGKILL to the Caddy and waits for its end.
func (c *Child) Kill() {
	c.T.Helper()
	if err := c.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.T.Fatal(err)
	}
	<-c.Ended
	c.Cmd = nil
}

// Terminate sends the signal to end; WaitForExit waits for the end. A Caddy that has just started
// may not handle signals yet.
func (c *Child) Terminate() {
	c.T.Helper()
	if err := c.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.T.Fatal(err)
	}
}

// WaitForExit waits for the end of the Caddy, which must succeed.
func (c *Child) WaitForExit() {
	c.T.Helper()
	select {
	case err := <-c.Ended:
		if err != nil {
			c.T.Errorf("Caddy ended with %v", err)
		}
		c.Cmd = nil
	case <-time.After(exitLimit):
		c.T.Fatal("Caddy does not end")
	}
}

// Stop terminates the Caddy and waits for its end.
func (c *Child) Stop() {
	c.T.Helper()
	if status, answer := c.Ask(http.MethodPost, "/stop", ""); status != http.StatusOK {
		c.T.Errorf("stopping: %d %s", status, answer)
	}
	c.WaitForExit()
}

// finish ends a running Caddy at the end of the test, and checks its output.
func (c *Child) finish() {
	if c.Cmd != nil {
		c.Kill()
	}
	out := c.Output()
	for _, bad := range []string{"DATA RACE", "panic", "fatal error"} {
		if strings.Contains(out, bad) {
			c.T.Errorf("Caddy wrote %q", bad)
		}
	}
	if c.T.Failed() {
		c.T.Logf("Caddy wrote:\n%s", out[max(0, len(out)-20_000):])
	}
}

// OutFile returns the path of the file with the output of the Caddy.
func (c *Child) OutFile() string { return filepath.Join(c.Home, "output") }

// Output returns the output of all runs of the Caddy, including the log.
func (c *Child) Output() string {
	b, err := os.ReadFile(c.OutFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.T.Error(err)
	}
	return string(b)
}

// Eventually waits for a condition.
func Eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// LoadOnly loads another configuration and leaves all connections open.
func (c *Child) LoadOnly(media string) {
	c.T.Helper()
	status, answer := c.Ask(http.MethodPost, "/load", c.Caddyfile(media), "Content-Type", "text/caddyfile")
	if status != http.StatusOK {
		c.T.Fatalf("the configuration is refused: %d %s", status, answer)
	}
}
