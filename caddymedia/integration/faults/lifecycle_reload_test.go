package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestReloadUnderLoad: during repeated reloads no upload or download is interrupted, and every
// answer is good.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	c.Start(site.InMemory)
	plain := c.HTTP1()
	token := plain.MustLogin(t)
	content := sample.Described(5, 100_000)
	plain.MustPut(t, token, "over", "fixed.bin", content)
	form, err := io.ReadAll(site.StreamForm("content", site.StreamPart{Name: "new.bin", Body: bytes.NewReader(content)}))
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var clients sync.WaitGroup
	var good, closed atomic.Int64
	for _, client := range append(c.Clients(), c.Clients()...) {
		clients.Go(func() {
			for !stop.Load() {
				err := readWhole(client, "over", "fixed.bin")
				if err == nil {
					var r site.Answer
					r, err = client.Send(t.Context(), token, "file", bytes.NewReader(form))
					if err == nil && r.Status != http.StatusOK {
						err = statusError(r.Status)
					}
				}
				switch _, unanswered := errors.AsType[site.UnansweredError](err); {
				case err == nil:
					good.Add(1)
				case unanswered:
					closed.Add(1) // servers close connections between two requests
				default:
					t.Errorf("over %s: %v", client.Version, err)
				}
			}
		})
	}
	for i := range 20 {
		before := good.Load()
		c.LoadOnly(strings.ReplaceAll(site.InMemory, "prefix /", fmt.Sprintf("cache_control max-age=%d\nprefix /", i)))
		site.Eventually(t, "uploads succeed after the reload", func() bool { return good.Load() > before+10 })
	}
	stop.Store(true)
	clients.Wait()
	t.Logf("%d uploads, %d connections closed while idle", good.Load(), closed.Load())
	stored := site.FilesBelow(t, c.Root)
	if want := int(good.Load()) + 1; len(stored) != want {
		t.Errorf("%d files are stored, want %d: a request was cut after it had begun", len(stored), want)
	}
	for _, name := range stored {
		if b, err := os.ReadFile(filepath.Join(c.Root, name)); err != nil || sample.Verify(b) != nil {
			t.Errorf("%s: %v %v", name, err, sample.Verify(b))
		}
	}
	if log := c.Output(); strings.Contains(log, `"logger":"http.handlers.media"`) {
		t.Error("the log has failed requests")
	}
}

// slowUpload is an upload that continues on request.
type slowUpload struct {
	name    string
	content []byte
	sent    int
	w       *io.PipeWriter
	done    chan error
	answer  site.Answer
}

// beginUpload sends the head of an upload over a client and the first bytes of its first file. A
// small second one follows when the first is complete.
func beginUpload(t *testing.T, client *site.Client, token, name string) *slowUpload {
	t.Helper()
	r, w := io.Pipe()
	u := &slowUpload{name: name, content: sample.Described(uint64(len(name)), 3_000_000), w: w, done: make(chan error, 1)}
	go func() {
		var err error
		u.answer, err = client.Upload(t.Context(), token, "content",
			site.StreamPart{Name: name, Body: r}, site.StreamPart{Name: "second-" + name, Body: strings.NewReader(name)})
		r.CloseWithError(io.ErrClosedPipe) // so that a failed upload blocks nothing
		u.done <- err
	}()
	u.resume(t)
	return u
}

// resume sends the next bytes.
func (u *slowUpload) resume(t *testing.T) {
	t.Helper()
	n, err := u.w.Write(u.content[u.sent:min(u.sent+200_000, len(u.content))])
	u.sent += n
	if err != nil {
		t.Errorf("upload %s is cut after %d bytes: %v", u.name, u.sent, err)
	}
}

// finish sends the rest and expects both files to be stored.
func (u *slowUpload) finish(t *testing.T) {
	t.Helper()
	_, _ = u.w.Write(u.content[u.sent:]) // a failure shows in the answer
	u.w.Close()
	if err := <-u.done; err != nil || u.answer.Status != http.StatusOK ||
		u.answer.Result[0].Filename != u.name || u.answer.Result[1].Filename != "second-"+u.name {
		t.Errorf("upload %s: %v %v", u.name, u.answer, err)
	}
}

// slowDownload is a download that continues on request. It is so large that most of it is not sent
// yet.
type slowDownload struct {
	version string
	want    []byte
	got     bytes.Buffer
	body    io.Reader
}

func beginDownload(t *testing.T, client *site.Client, alias, name string, want []byte) *slowDownload {
	t.Helper()
	r, err := client.Get(client.Base + "/static/file/" + alias + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK || r.Proto != client.Version {
		t.Fatalf("download over %s: %s %s", client.Version, r.Proto, r.Status)
	}
	t.Cleanup(func() { r.Body.Close() })
	d := &slowDownload{version: client.Version, want: want, body: r.Body}
	d.resume(t)
	return d
}

func (d *slowDownload) resume(t *testing.T) {
	t.Helper()
	if _, err := io.CopyN(&d.got, d.body, 100_000); err != nil {
		t.Errorf("download over %s is cut after %d bytes: %v", d.version, d.got.Len(), err)
	}
}

func (d *slowDownload) finish(t *testing.T) {
	t.Helper()
	if _, err := d.got.ReadFrom(d.body); err != nil || !bytes.Equal(d.got.Bytes(), d.want) {
		t.Errorf("download over %s: got %d bytes, want the %d of the file; error %v",
			d.version, d.got.Len(), len(d.want), err)
	}
}

// beginBoth begins an upload and a download over every version of HTTP.
func beginBoth(t *testing.T, c *site.Child, token, name string, want []byte) ([]*slowUpload, []*slowDownload) {
	t.Helper()
	before := c.Staged()
	clients := c.Clients()
	uploads, downloads := make([]*slowUpload, len(clients)), make([]*slowDownload, len(clients))
	for i, client := range clients {
		uploads[i] = beginUpload(t, client, token, "slow-"+client.Version[5:6]+".bin")
		downloads[i] = beginDownload(t, client, "content", name, want)
	}
	site.Eventually(t, "all uploads are being stored", func() bool { return c.Staged() == before+float64(len(uploads)) })
	return uploads, downloads
}

// rooted returns a configuration whose files are in a folder below the root.
func rooted(folder string) string { return strings.ReplaceAll(site.InMemory, "$ROOT", "$ROOT/"+folder) }

// TestReload changes the configuration in many ways during an upload and a download over every
// version of HTTP. All transfers succeed, with the configuration with which they began.
func TestReload(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	oldRoot, newRoot := filepath.Join(c.Root, "old"), filepath.Join(c.Root, "new")
	c.Start(rooted("old"))
	plain := c.HTTP1()
	token := plain.MustLogin(t)
	large := sample.Described(9, 40_000_000)
	if err := os.MkdirAll(filepath.Join(oldRoot, "keep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(oldRoot, "keep", "large.bin"), large, 0o600); err != nil {
		t.Fatal(err)
	}
	uploads, downloads := beginBoth(t, c, token, "large.bin", large)
	for _, step := range reloadSteps {
		step.load(t, c)
		for i := range uploads {
			uploads[i].resume(t)
			downloads[i].resume(t)
		}
		for _, client := range c.Clients() { // new ones live in the new configuration
			r, stored := client.Put(t, token, "content", "short.bin", sample.Described(3, 10))
			if r.Status != step.status {
				t.Errorf("%s: an upload over %s is answered with %v, want %d", step.name, client.Version, r, step.status)
			}
			if at := filepath.Join(newRoot, "keep", stored); stored != "" && step.inNewRoot != site.Exists(at) {
				t.Errorf("%s: %s exists: %t", step.name, at, site.Exists(at))
			}
		}
		if t.Failed() {
			t.Fatalf("after the step: %s", step.name)
		}
	}
	if open, ok := c.OpenFiles(oldRoot); ok && len(open) == 0 {
		t.Error("nothing below the old root is open, although uploads go on")
	}
	for i := range uploads {
		uploads[i].finish(t)
		downloads[i].finish(t)
		b, err := os.ReadFile(filepath.Join(oldRoot, "keep", uploads[i].name))
		if err != nil || !bytes.Equal(b, uploads[i].content) {
			t.Errorf("%s in the old root: %d bytes, want %d; error %v", uploads[i].name, len(b), len(uploads[i].content), err)
		}
		if !site.Exists(filepath.Join(oldRoot, "keep", "second-"+uploads[i].name)) {
			t.Errorf("the second file of %s is not in the old root", uploads[i].name)
		}
	}
	site.Eventually(t, "nothing below the old root is open", func() bool {
		open, _ := c.OpenFiles(oldRoot)
		return len(open) == 0
	})
}

// reloadStep is a change of the configuration and the expected result of an upload after it.
type reloadStep struct {
	name      string
	load      func(*testing.T, *site.Child)
	status    int
	inNewRoot bool
}

var reloadSteps = []reloadStep{
	{"another alias", func(_ *testing.T, c *site.Child) {
		c.MustLoad(rooted("old") + "storage other {\ndriver local $ROOT/other\n}\n" +
			"file_alias more {\nstorage other\n}")
	}, http.StatusOK, false},
	{"another root", func(_ *testing.T, c *site.Child) { c.MustLoad(rooted("new")) }, http.StatusOK, true},
	{"a rejected configuration", func(t *testing.T, c *site.Child) {
		if status, body := c.Load(rooted("old") + "storage bad {\ndriver local {env.MEDIA_TEST_NOT_SET}\n}"); status < 400 {
			t.Errorf("an unset variable is accepted: %d %s", status, body)
		}
	}, http.StatusOK, true},
	{"without the alias", func(_ *testing.T, c *site.Child) {
		c.MustLoad(strings.ReplaceAll(rooted("new"), "file_alias content", "file_alias other"))
	}, http.StatusBadRequest, false},
	{"without accounts", func(_ *testing.T, c *site.Child) {
		c.MustLoad(strings.ReplaceAll(rooted("new"), site.Account, ""))
	}, http.StatusUnauthorized, false},
	{"the command reload", func(t *testing.T, c *site.Child) {
		t.Helper()
		reload(c, rooted("new"))
	}, http.StatusOK, true},
}

// reload runs the command `caddy reload` with another configuration.
func reload(c *site.Child, media string) {
	c.T.Helper()
	config := filepath.Join(c.Home, "Caddyfile")
	if err := os.WriteFile(config, []byte(c.Caddyfile(media)), 0o600); err != nil {
		c.T.Fatal(err)
	}
	cmd := exec.Command(c.Cmd.Path, "reload", "--config", config, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), c.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.T.Fatalf("caddy reload: %v\n%s", err, out)
	}
	c.ForgetIdle()
}

// TestReloadKeepsClients: clients keep connections from before a reload, and one of them is busy
// with a download. Their next request is served with the new configuration.
func TestReloadKeepsClients(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	c.Start(rooted("old"))
	clients := c.Clients()
	token := clients[0].MustLogin(t)
	large := sample.Described(2, 20_000_000)
	name := clients[0].MustPut(t, token, "content", "large.bin", large)
	for _, client := range clients {
		download := beginDownload(t, client, "content", name, large)
		c.LoadOnly(rooted("new"))
		if status, _ := client.Fetch(t, "content", name); status != http.StatusNotFound {
			t.Errorf("%s: a download from the new root answers %d", client.Version, status)
		}
		stored := client.MustPut(t, token, "content", "after.bin", large[:1000])
		client.MustFetch(t, "content", stored, large[:1000])
		if !site.Exists(filepath.Join(c.Root, "new", "keep", stored)) {
			t.Errorf("%s: the upload went into the old configuration", client.Version)
		}
		c.LoadOnly(rooted("old"))
		client.MustFetch(t, "content", name, large)
		download.finish(t)
	}
}

// TestConfigurationThatCannotStart: in a new configuration another app fails after the media app
// has started. The old configuration continues, and nothing of the new one stays open.
func TestConfigurationThatCannotStart(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(rooted("old"))
	client := c.HTTP1()
	token := client.MustLogin(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c.Sites = "http://" + taken.Addr().String() + " {\n\trespond \"taken\"\n}\n"
	for range 5 {
		tokens := "tokens bolt " + filepath.Join(c.Root, "new", "tokens.db") + "\n"
		if status, body := c.Load(strings.Replace(rooted("new"), "tokens memory\n", tokens, 1)); status < 400 {
			t.Fatalf("an address in use is accepted: %d %s", status, body)
		}
		client.MustPut(t, token, "content", "file.bin", []byte("x"))
	}
	if got := len(site.FilesBelow(t, filepath.Join(c.Root, "old"))); got != 5 {
		t.Errorf("%d files are in the old root, want 5", got)
	}
	site.Eventually(t, "nothing below the new root is open", func() bool {
		open, _ := c.OpenFiles(filepath.Join(c.Root, "new"))
		return len(open) == 0
	})
}

// readWhole fetches a file that must be complete.
func readWhole(c *site.Client, alias, name string) error {
	r, err := c.Get(c.Base + "/static/file/" + alias + "/" + name)
	if err != nil {
		return site.UnansweredError{Err: err}
	}
	defer r.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return statusError(r.StatusCode)
	}
	return sample.Verify(b.Bytes())
}

// statusError is an unexpected status of an answer.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// TestTerminate terminates a Caddy during an upload and a download over every version of HTTP. It
// refuses new connections, and exits when the transfers are done.
func TestTerminate(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	c.Start(site.InMemory)
	plain := c.HTTP1()
	token := plain.MustLogin(t)
	large := sample.Described(1, 20_000_000)
	plain.MustPut(t, token, "content", "large.bin", large)
	plain.MustPut(t, token, "over", "replaced.bin", sample.Described(2, 1000)) // needs the scratch folder
	uploads, downloads := beginBoth(t, c, token, "large.bin", large)
	c.Terminate()
	site.Eventually(t, "new connections are refused", func() bool {
		conn, err := net.Dial("tcp", c.Plain)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	for i := range uploads {
		uploads[i].resume(t)
		downloads[i].resume(t)
		uploads[i].finish(t)
		downloads[i].finish(t)
	}
	c.WaitForExit()
	site.MustHaveOnly(t, c.Root, "keep/large.bin", "replace/replaced.bin",
		"keep/slow-1.bin", "keep/slow-2.bin", "keep/slow-3.bin",
		"keep/second-slow-1.bin", "keep/second-slow-2.bin", "keep/second-slow-3.bin")
	if left := site.Hidden(t, c.Root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
	for _, u := range uploads {
		if b, err := os.ReadFile(filepath.Join(c.Root, "keep", u.name)); err != nil || !bytes.Equal(b, u.content) {
			t.Errorf("%s has %d bytes, want %d; error %v", u.name, len(b), len(u.content), err)
		}
	}
	if strings.Contains(c.Output(), `"level":"error"`) {
		t.Error("there are errors in the log")
	}
}

// TestGracePeriodEnds terminates a Caddy whose grace period is shorter than an upload. The upload
// is cut and leaves nothing behind, and the item that it would replace is unchanged.
func TestGracePeriodEnds(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Global = "grace_period 300ms"
	c.Start(site.OnBolt)
	client := c.HTTP1()
	token := client.MustLogin(t)
	old := sample.Described(1, 1000)
	client.MustPut(t, token, "over", "old.bin", old)
	before := c.Staged()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, err := client.Upload(t.Context(), token, "over", site.StreamPart{Name: "old.bin", Body: r})
		if err == nil && answer.Status == http.StatusOK {
			t.Error("a cut upload is answered as stored")
		}
	}()
	if _, err := w.Write(sample.Described(2, 300_000)); err != nil {
		t.Error(err)
	}
	site.Eventually(t, "the upload is being stored", func() bool { return c.Staged() > before })
	c.Terminate()
	c.WaitForExit()
	w.Close()
	<-done
	site.MustHaveOnly(t, filepath.Join(c.Root, "replace"), "old.bin")
	c.Start(site.OnBolt)
	site.Eventually(t, "nothing hidden is left", func() bool { return len(site.Hidden(t, c.Root)) == 0 })
	client.MustFetch(t, "over", "old.bin", old)
}
