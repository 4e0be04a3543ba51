package features_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// uploadLine is a line of `caddy media upload --json`.
type uploadLine struct {
	File     string
	Success  bool
	FullPath string `json:"full_path"`
	Filename string
	WebP     string
	Status   int
	Message  string
}

// shell runs a command to its end, with additional environment variables.
func shell(c *site.Child, env []string, args ...string) (code int, out, messages string) {
	c.T.Helper()
	with := *c
	with.Env = slices.Concat(c.Env, env)
	r := with.Media(args...)
	return r.Code, r.Out, r.Err
}

// uploading returns the environment variables for an upload to the child by the account of the
// tests.
func uploading(c *site.Child, password string) []string {
	return []string{"MEDIA_SERVER=http://" + c.Plain, "MEDIA_API_KEY=" + site.APIKey, "MEDIA_PASSWORD=" + password}
}

// linesOf decodes JSON lines.
func linesOf[T any](t *testing.T, out string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(out) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, one)
	}
	return all
}

// localFile creates a file in the home of the child and returns its path.
func localFile(c *site.Child, name, content string) string {
	c.T.Helper()
	path := filepath.Join(c.Home, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.T.Fatal(err)
	}
	return path
}

// TestUploadCommand: several files are sent, and one of them is refused.
func TestUploadCommand(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(site.ImageConfig(""))
	photo, fake := localFile(c, "photo.jpg", sample.PhotoJPEG(64, 48)), localFile(c, "fake.png", "no picture")
	drawing := localFile(c, "drawing.png", sample.EncodePNG(t, sample.Quartered(65, 48)))
	code, out, messages := shell(c, uploading(c, site.Password), "upload", "--json", "--sub-folder", "a", photo, fake, drawing, c.Home+"/none.jpg")
	if code != 1 || messages != "" {
		t.Errorf("exit code %d with %q, want 1 and nothing", code, messages)
	}
	lines := map[string]uploadLine{}
	for _, line := range linesOf[uploadLine](t, out) {
		lines[line.File] = line
	}
	address := "http://" + c.Plain + "/static/img/content/a/photo.jpg"
	for _, want := range []uploadLine{
		{photo, true, address, "a/photo.jpg", address + ".webp", 0, ""},
		{File: fake, Status: 415, Message: lines[fake].Message},
		{File: c.Home + "/none.jpg", Message: "no such file or directory"},
	} {
		if lines[want.File] != want {
			t.Errorf("%+v, want %+v", lines[want.File], want)
		}
	}
	if len(lines) != 4 || !lines[drawing].Success || lines[fake].Message == "" {
		t.Errorf("%q", out)
	}
	if got := c.HTTP1().FetchURL(t, address); got.Status != http.StatusOK || got.Body != sample.PhotoJPEG(64, 48) {
		t.Errorf("%s: status %d", address, got.Status)
	}

	code, out, messages = shell(c, uploading(c, site.Password), "upload", photo, fake)
	if code != 1 || !strings.HasPrefix(out, photo+": http://"+c.Plain+"/static/img/content/photo") ||
		!strings.HasSuffix(out, "1 of 2 files stored\n") || !strings.HasPrefix(messages, fake+": ") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if strings.ContainsAny(out+messages, "\x1b\r█") {
		t.Errorf("a progress bar without a terminal: %q", out+messages)
	}
	if code, out, messages = shell(c, uploading(c, site.Password), "upload", "-q", photo); code != 0 || out+messages != "" {
		t.Errorf("quiet: exit code %d with %q and %q", code, out, messages)
	}
}

// TestUploadCommandKinds: the endpoint follows the extension, unless it is named.
func TestUploadCommandKinds(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Basic + "file_alias papers {\nextensions jpg txt\n}\n")
	photo, text := localFile(c, "photo.jpg", sample.PhotoJPEG(8, 8)), localFile(c, "a text.txt", "x")
	for _, one := range []struct {
		args []string
		want string // in the output
		code int
	}{
		{[]string{photo}, "/static/img/content/", 0},
		{[]string{text}, "/a-text.txt", 0},
		{[]string{"--as", "file", "--alias", "papers", "--sub-folder", "/", photo}, "/static/file/papers/photo.jpg", 0},
		{[]string{"--as", "image", text}, "", 1},
		{[]string{"--alias", "none", photo}, "", 1},
	} {
		code, out, messages := shell(c, uploading(c, site.Password), append([]string{"upload"}, one.args...)...)
		if code != one.code || !strings.Contains(out, one.want) || (messages == "") != (code == 0) {
			t.Errorf("%q: exit code %d with %q and %q, want %d and %q", one.args, code, out, messages, one.code, one.want)
		}
	}
}

// TestUploadCommandKeepsNothing: each run needs the password, and leaves nothing on the machine.
func TestUploadCommandKeepsNothing(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Basic)
	file := localFile(c, "small.txt", "x")
	home := "XDG_DATA_HOME=" + filepath.Join(c.Home, "client")
	for _, one := range []struct{ password, want string }{
		{"wrong", "wrong API key or password"}, {site.Password, ""}, {"", "no password"},
	} {
		code, out, messages := shell(c, append(uploading(c, one.password), home), "upload", file)
		if (code == 0) != (one.want == "") || !strings.Contains(messages, one.want) {
			t.Errorf("exit code %d with %q and %q, want %q", code, out, messages, one.want)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(c.Home, "client", "caddy", "media", "*")); err != nil || len(kept) != 0 {
		t.Errorf("left are %q, error %v", kept, err)
	}
}

// TestUploadCommandLogsIn: the password comes from a file or a variable, and is never sent to other
// hosts over plain HTTP.
func TestUploadCommandLogsIn(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Basic)
	file := localFile(c, "a.txt", "x")
	secret := localFile(c, "secret", site.Password+"\n")
	server := "http://" + c.Plain
	for _, one := range []struct {
		env, args []string
		want      string // in the messages; empty for success
	}{
		{nil, []string{"--server", server, "--api-key", site.APIKey, "--password-file", secret}, ""},
		{uploading(c, "wrong"), nil, "wrong API key or password"},
		{uploading(c, "wrong"), []string{"--password-file", secret}, ""},
		{nil, []string{"--server", "http://192.0.2.1", "--api-key", site.APIKey}, "over plain HTTP"},
		{nil, []string{"--api-key", site.APIKey}, "--server or $MEDIA_SERVER is missing"},
		{nil, []string{"--server", server}, "--api-key or $MEDIA_API_KEY is missing"},
		{uploading(c, site.Password), []string{"--parallel", "0"}, "--parallel must be 1 or more"},
		{uploading(c, site.Password), []string{"--as", "film"}, "--as must be image or file"},
		{uploading(c, site.Password), []string{"--password", site.Password}, "unknown flag"},
	} {
		code, out, messages := shell(c, one.env, append(append([]string{"upload"}, one.args...), file)...)
		if (code == 0) != (one.want == "") || !strings.Contains(messages, one.want) || strings.Contains(messages, "Usage:") {
			t.Errorf("%q: exit code %d with %q and %q, want %q", one.args, code, out, messages, one.want)
		}
	}
}

// TestUploadCommandIsInterrupted: an interrupted upload says that the file was not stored, and leaves
// no data on the service.
func TestUploadCommandIsInterrupted(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Basic)
	p := site.NewCuttingProxy(t, c.Plain, 24<<20)
	c.Env = slices.Concat(c.Env, uploading(c, site.Password), []string{"MEDIA_SERVER=http://" + p.Address})
	run := c.Begin("upload", "--json", localFile(c, "large.txt", strings.Repeat("0123456789abcdef", 40<<16)))
	<-p.Reached
	if err := run.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	reply := run.Wait()
	lines := linesOf[uploadLine](t, reply.Out)
	if reply.Code != 1 || len(lines) != 1 || lines[0].Message != "interrupted: it was not stored" {
		t.Errorf("%+v", reply)
	}
	p.Cut()
	site.Eventually(t, "its data is removed", func() bool {
		return !slices.ContainsFunc(site.FilesBelow(t, c.Root), func(name string) bool {
			stat, err := os.Stat(filepath.Join(c.Root, name))
			return err == nil && stat.Size() > 4<<10
		})
	})
}
