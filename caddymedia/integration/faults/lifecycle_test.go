package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// cutter breaks a connection on which the Caddy is storing an upload, over HTTP/1.1.
type cutter func(t *testing.T, conn *net.TCPConn)

var cutters = map[string]cutter{
	"closed": func(*testing.T, *net.TCPConn) {},
	"reset": func(t *testing.T, conn *net.TCPConn) {
		if err := conn.SetLinger(0); err != nil {
			t.Error(err)
		}
	},
	"half-closed": func(t *testing.T, conn *net.TCPConn) {
		if err := conn.CloseWrite(); err != nil {
			t.Error(err)
		}
		if answer, err := io.ReadAll(conn); err == nil && bytes.Contains(answer, []byte("200 OK")) {
			t.Errorf("half a request is answered with %q", answer)
		}
	},
	"cancelled over HTTP/2": nil,
	"cancelled over HTTP/3": nil,
}

// sendPart sends the head of an upload and the first bytes of its body.
func sendPart(t *testing.T, c *site.Child, token string, form []byte, part int) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", c.Plain)
	if err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("POST /api/upload/file?sub_folder=%%2F HTTP/1.1\r\nHost: %s\r\n"+
		"HTTP_SERVICE_API_KEY: %s\r\nHTTP_SERVICE_ACCESS_TOKEN: %s\r\n"+
		"Content-Type: multipart/form-data; boundary=%s\r\nContent-Length: %d\r\n\r\n",
		c.Plain, site.APIKey, token, site.StreamBoundary, len(form))
	if _, err := conn.Write(append([]byte(head), form[:part]...)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// cancelled cancels the request while the Caddy stores its data. The refusal may still arrive, for
// example over HTTP/3.
func cancelled(t *testing.T, client *site.Client, token string, form []byte, part int, staged func()) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, w := io.Pipe()
	done := make(chan error)
	go func() {
		r, err := client.Send(ctx, token, "file", body)
		switch {
		case err == nil && (r.Status == http.StatusOK || ctx.Err() == nil):
			err = fmt.Errorf("half a request is answered with %v", r)
		case ctx.Err() != nil:
			err = nil
		}
		done <- err
	}()
	if _, err := w.Write(form[:part]); err != nil {
		t.Error(err)
	}
	staged()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.Close()
}

// TestConnectionCut: uploads cut at several positions leave nothing behind, and an item that they
// would replace is unchanged.
func TestConnectionCut(t *testing.T) { //nolint:tparallel // its subtests count what one server does
	t.Parallel()
	c := site.NewTLSChild(t)
	c.Start(site.InMemory)
	client := c.HTTP1()
	token := client.MustLogin(t)
	old := sample.Described(1, 1_000_000)
	client.MustPut(t, token, "over", "old.bin", old)
	for name, cut := range cutters {
		for _, alias := range []string{"content", "over"} {
			form, err := io.ReadAll(site.StreamForm(alias, site.StreamPart{Name: "first.bin", Body: bytes.NewReader(sample.Described(2, 500_000))},
				site.StreamPart{Name: "old.bin", Body: bytes.NewReader(sample.Described(3, 2_000_000))}))
			if err != nil {
				t.Fatal(err)
			}
			for where, part := range map[string]int{
				"in the first file": 300_000, "in the second": len(form) / 2, "before the last boundary": len(form) - 5,
			} {
				t.Run(fmt.Sprintf("%s %s of %s", name, where, alias), func(t *testing.T) {
					stagedBefore, refusedBefore := c.Staged(), c.Refused()
					staged := func() {
						site.Eventually(t, "the upload is being stored", func() bool { return c.Staged() > stagedBefore })
					}
					switch {
					case strings.HasSuffix(name, "HTTP/2"):
						cancelled(t, c.HTTP2(), token, form, part, staged)
					case strings.HasSuffix(name, "HTTP/3"):
						cancelled(t, c.HTTP3(), token, form, part, staged)
					default:
						conn := sendPart(t, c, token, form, part)
						staged()
						cut(t, conn)
						conn.Close()
					}
					site.Eventually(t, "the upload is given up", func() bool { return c.Refused() > refusedBefore })
					client.MustFetch(t, "over", "old.bin", old)
					if status, _ := client.Fetch(t, alias, "first.bin"); status != http.StatusNotFound {
						t.Errorf("the first file of a cut upload answers %d", status)
					}
					site.MustHaveOnly(t, c.Root, "replace/old.bin")
				})
			}
		}
	}
	if open, ok := c.OpenFiles(c.Root); ok && slices.ContainsFunc(open, site.IsNoFolder(c)) {
		t.Errorf("files stay open: %q", open)
	}
	c.Stop()
	site.MustHaveOnly(t, c.Root, "replace/old.bin")
	if left, err := filepath.Glob(filepath.Join(c.Root, "*", ".*")); err != nil || left != nil {
		t.Errorf("leftovers: %q %v", left, err)
	}
}

// TestStartBesideOthers repeatedly starts a Caddy on the folder of another one and kills it. The
// sweep at its start must not touch data that the other one uses.
func TestStartBesideOthers(t *testing.T) {
	t.Parallel()
	one, two := site.NewChild(t), site.NewChild(t)
	two.Root = one.Root
	one.Start(site.InMemory)
	client := one.HTTP1()
	token := client.MustLogin(t)
	var stop atomic.Bool
	var stored atomic.Int64
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			for n := uint64(0); !stop.Load(); n++ {
				r, err := client.Upload(t.Context(), token, "over", site.StreamPart{
					Name: fmt.Sprintf("file-%d.bin", i), Body: bytes.NewReader(sample.Described(n, 300_000)),
				})
				if err != nil || r.Status != http.StatusOK {
					t.Errorf("beside a Caddy that starts: %v %v", r, err)
					return
				}
				stored.Add(1)
			}
		})
	}
	for range 4 {
		before := stored.Load()
		two.Start(site.InMemory)
		other := two.HTTP1()
		other.MustPut(t, other.MustLogin(t), "over", "other.bin", sample.Described(1, 1000))
		two.Kill() // its scratch folder stays, for its next start to sweep
		site.Eventually(t, "uploads succeed", func() bool { return stored.Load() > before+5 || t.Failed() })
	}
	stop.Store(true)
	clients.Wait()
	two.Start(site.InMemory)
	site.Eventually(t, "only the folder that is in use is left", func() bool { return len(site.Hidden(t, one.Root)) == 1 })
	two.Stop()
	one.Stop()
	site.MustHaveOnly(t, filepath.Join(one.Root, "replace"), "file-0.bin", "file-1.bin", "file-2.bin", "other.bin")
	if left := site.Hidden(t, one.Root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
}

// TestSecretsStayHidden: the values of secrets that are configured as placeholders are in no
// output.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const secret = "the-password-of-redis"
	c := site.NewChild(t, "MEDIA_TEST_REDIS="+secret, "MEDIA_TEST_HASH="+site.CheapHash)
	c.Env = append(c.Env, "MEDIA_TEST_ROOT="+filepath.Join(c.Root, "from-the-environment"))
	config := strings.ReplaceAll(site.Binaries, "$ROOT/keep", "{env.MEDIA_TEST_ROOT}") +
		"account " + site.APIKey + " {env.MEDIA_TEST_HASH}\n"
	redis := "tokens redis {\naddresses 127.0.0.1:1\nusername somebody\npassword {env.MEDIA_TEST_REDIS}\n}\n"
	c.Start(redis + config)
	client := c.HTTP1()
	if r := client.Login(t, site.Password); r.Status != http.StatusServiceUnavailable {
		t.Errorf("a login without Redis: %v", r)
	}
	hides := func(where, text string) {
		t.Helper()
		for _, hidden := range []string{secret, site.CheapHash} {
			if strings.Contains(text, hidden) {
				t.Errorf("%s shows %q", where, hidden)
			}
		}
	}
	_, shown := c.Ask(http.MethodGet, "/config/", "")
	hides("/config/", shown)
	for _, name := range []string{"{env.MEDIA_TEST_REDIS}", "{env.MEDIA_TEST_HASH}", "{env.MEDIA_TEST_ROOT}"} {
		if !strings.Contains(shown, name) {
			t.Errorf("/config/ has no %s", name)
		}
	}
	if strings.Contains(shown, "from-the-environment") {
		t.Error("/config/ shows the expanded root")
	}
	for _, path := range []string{"/metrics", "/config/apps/media/tokens", "/config/apps/media/accounts"} {
		_, shown := c.Ask(http.MethodGet, path, "")
		hides(path, shown)
	}
	saved, err := os.ReadFile(filepath.Join(c.Home, "config", "caddy", "autosave.json"))
	if err != nil {
		t.Error(err)
	}
	hides("the saved configuration", string(saved))

	// Another change keeps the placeholder, which still works.
	c.MustLoad("tokens memory\n" + config)
	if status, answer := c.Change(http.MethodPut, "token_lifetime", `"2h"`); status != http.StatusOK {
		t.Errorf("a new lifetime: %d %s", status, answer)
	}
	client.MustPut(t, client.MustLogin(t), "content", "small.bin", []byte("x"))
	site.MustHaveOnly(t, filepath.Join(c.Root, "from-the-environment"), "small.bin")
	_, shown = c.Ask(http.MethodGet, "/config/", "")
	hides("/config/ after a change", shown)
	hides("the log", c.Output())
}

// TestStorageOverAdminAPI edits a storage as the panel does. A stale or broken edit is refused, and
// the old configuration continues.
func TestStorageOverAdminAPI(t *testing.T) {
	t.Parallel()
	const path = "storages/keep"
	c := site.NewChild(t)
	c.Start(site.OnBolt)
	client := c.HTTP1()
	token := client.MustLogin(t)
	r := c.Request(http.MethodGet, "/config/apps/media/"+path, "")
	r.Body.Close()
	etag, moved := r.Header.Get("ETag"), filepath.Join(c.Root, "moved")
	value := func(root string) string { return `{"driver": {"name": "local", "root": "` + root + `"}}` }
	if status, answer := c.Change(http.MethodPatch, path, value(moved), "If-Match", etag); status != http.StatusOK {
		t.Fatalf("the first edit: %d %s", status, answer)
	}
	stored := client.MustPut(t, token, "content", "moved.bin", []byte("x"))
	site.MustHaveOnly(t, moved, stored)
	for _, edit := range []struct {
		method, value, want string
		headers             []string
	}{
		{http.MethodPatch, value(filepath.Join(c.Root, "lost")), "", []string{"If-Match", etag}},
		{http.MethodPatch, `{"driver": {"name": "no-such-driver"}}`, "no-such-driver", nil},
		{http.MethodPatch, value("{env.MEDIA_NOT_SET}"), "MEDIA_NOT_SET", nil},
		{http.MethodPatch, `{"driver": {"name": "local", "rooot": "x"}}`, "rooot", nil},
		{http.MethodDelete, "", "keep", nil}, // it is in use
	} {
		status, answer := c.Change(edit.method, path, edit.value, edit.headers...)
		if status < 400 || !strings.Contains(answer, edit.want) || edit.want != "" && !strings.Contains(answer, "keep") {
			t.Errorf("%s: %d %s, want an error that names the storage and %q", edit.value, status, answer, edit.want)
		}
		client.MustFetch(t, "content", stored, []byte("x"))
	}
	client.MustPut(t, token, "content", "again.bin", []byte("x"))
	site.MustHaveOnly(t, c.Root, "moved/moved.bin", "moved/again.bin")
}

// TestRootCannotBeMade: the root of a storage is below a file. Everything else works, and the
// storage works once the file is removed.
func TestRootCannotBeMade(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	if err := os.Mkdir(c.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	obstacle := filepath.Join(c.Root, "keep")
	if err := os.WriteFile(obstacle, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	below := strings.ReplaceAll(site.OnBolt, "$ROOT/keep", "$ROOT/keep/below")
	c.Start(below)
	site.Eventually(t, "the log has it", func() bool {
		return strings.Contains(c.Output(), "storage unreachable")
	})
	client := c.HTTP1()
	token := client.MustLogin(t)
	r, _ := client.Put(t, token, "content", "small.bin", []byte("x"))
	if r.Status != http.StatusBadGateway && r.Status != http.StatusServiceUnavailable {
		t.Errorf("an upload is answered with %v, want 502 or 503", r)
	}
	wantNoDetail(t, r, c.Root, "/", "below", "directory")
	if status, body := client.Fetch(t, "content", "small.bin"); status != http.StatusBadGateway &&
		status != http.StatusServiceUnavailable || strings.Contains(string(body), "below") {
		t.Errorf("a download is answered with %d %q, want 502 or 503", status, body)
	}
	client.MustPut(t, token, "over", "small.bin", []byte("x")) // the other storage
	if status, _ := client.Fetch(t, "none", "small.bin"); status != http.StatusNotFound {
		t.Errorf("an unknown alias answers %d", status)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	stored := client.MustPut(t, token, "content", "small.bin", []byte("x"))
	client.MustFetch(t, "content", stored, []byte("x"))
}

// TestTokenFileOfTwo: two Caddys are configured with one token file. The second reports an error
// while the first works. The second works when the first has ended.
func TestTokenFileOfTwo(t *testing.T) {
	t.Parallel()
	first, second := site.NewChild(t), site.NewChild(t)
	shared := "tokens bolt " + filepath.Join(first.Home, "shared.db") + "\n" + site.OnBolt
	first.Start(shared)
	token := first.HTTP1().MustLogin(t)
	second.Start(shared)
	client := second.HTTP1()
	if r := client.Login(t, site.Password); r.Status != http.StatusServiceUnavailable {
		t.Errorf("a login at the second: %v", r)
	} else {
		wantNoDetail(t, r, first.Home, "shared.db", "bolt")
	}
	wantNoDetail(t, wantUpload(t, client, token, http.StatusServiceUnavailable), first.Home, "shared.db", "bolt")
	wantUpload(t, first.HTTP1(), token, http.StatusOK)
	wantUpload(t, first.HTTP1(), first.HTTP1().MustLogin(t), http.StatusOK)
	first.Stop()
	site.Eventually(t, "the second has the file", func() bool {
		return client.Login(t, site.Password).Status == http.StatusOK
	})
	wantUpload(t, client, token, http.StatusOK)
	if !strings.Contains(second.Output(), "another process has the file locked") {
		t.Error("the log of the second does not say why")
	}
}

// wantUpload expects the status for an upload with a token.
func wantUpload(t *testing.T, c *site.Client, token string, status int) site.Answer {
	t.Helper()
	r, _ := c.Put(t, token, "content", "small.bin", []byte("x"))
	if r.Status != status {
		t.Errorf("the upload is answered with %v, want %d", r, status)
	}
	return r
}

// wantNoDetail expects an answer with a message, but without internals.
func wantNoDetail(t *testing.T, r site.Answer, details ...string) {
	t.Helper()
	message := r.String()
	for _, detail := range details {
		if strings.Contains(message, detail) {
			t.Errorf("the answer shows %q: %s", detail, message)
		}
	}
	if r.Message == "" {
		t.Errorf("the answer says nothing: %s", message)
	}
}
