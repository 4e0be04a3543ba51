package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
func (c *child) shell(env []string, args ...string) (code int, out, messages string) {
	c.t.Helper()
	with := *c
	with.env = slices.Concat(c.env, env)
	r := with.media(args...)
	return r.code, r.out, r.err
}

// uploading returns the environment variables for an upload to the child by the account of the
// tests.
func (c *child) uploading(password string) []string {
	return []string{"MEDIA_SERVER=http://" + c.plain, "MEDIA_API_KEY=" + apiKey, "MEDIA_PASSWORD=" + password}
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
func (c *child) localFile(name, content string) string {
	c.t.Helper()
	path := filepath.Join(c.home, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// TestUploadCommand: several files are sent, and one of them is refused.
func TestUploadCommand(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.start(withPictures(""))
	photo, fake := c.localFile("photo.jpg", drawnJPEG(64, 48)), c.localFile("fake.png", "no picture")
	drawing := c.localFile("drawing.png", asPNG(t, quartered(65, 48)))
	code, out, messages := c.shell(c.uploading(password), "upload", "--json", "--sub-folder", "a", photo, fake, drawing, c.home+"/none.jpg")
	if code != 1 || messages != "" {
		t.Errorf("exit code %d with %q, want 1 and nothing", code, messages)
	}
	lines := map[string]uploadLine{}
	for _, line := range linesOf[uploadLine](t, out) {
		lines[line.File] = line
	}
	address := "http://" + c.plain + "/static/img/content/a/photo.jpg"
	for _, want := range []uploadLine{
		{photo, true, address, "a/photo.jpg", address + ".webp", 0, ""},
		{File: fake, Status: 415, Message: lines[fake].Message},
		{File: c.home + "/none.jpg", Message: "no such file or directory"},
	} {
		if lines[want.File] != want {
			t.Errorf("%+v, want %+v", lines[want.File], want)
		}
	}
	if len(lines) != 4 || !lines[drawing].Success || lines[fake].Message == "" {
		t.Errorf("%q", out)
	}
	if got := c.http1().get(t, address); got.status != http.StatusOK || got.body != drawnJPEG(64, 48) {
		t.Errorf("%s: status %d", address, got.status)
	}

	code, out, messages = c.shell(c.uploading(password), "upload", photo, fake)
	if code != 1 || !strings.HasPrefix(out, photo+": http://"+c.plain+"/static/img/content/photo") ||
		!strings.HasSuffix(out, "1 of 2 files stored\n") || !strings.HasPrefix(messages, fake+": ") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if strings.ContainsAny(out+messages, "\x1b\r█") {
		t.Errorf("a progress bar without a terminal: %q", out+messages)
	}
	if code, out, messages = c.shell(c.uploading(password), "upload", "-q", photo); code != 0 || out+messages != "" {
		t.Errorf("quiet: exit code %d with %q and %q", code, out, messages)
	}
}

// TestUploadCommandKinds: the endpoint follows the extension, unless it is named.
func TestUploadCommandKinds(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.start("tokens memory\n" + basic + "file_alias papers {\nextensions jpg txt\n}\n")
	photo, text := c.localFile("photo.jpg", drawnJPEG(8, 8)), c.localFile("a text.txt", "x")
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
		code, out, messages := c.shell(c.uploading(password), append([]string{"upload"}, one.args...)...)
		if code != one.code || !strings.Contains(out, one.want) || (messages == "") != (code == 0) {
			t.Errorf("%q: exit code %d with %q and %q, want %d and %q", one.args, code, out, messages, one.code, one.want)
		}
	}
}

// TestUploadCommandTokens: the command stores its token, and requests another one when it is
// revoked.
func TestUploadCommandTokens(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.start(onBolt)
	file := c.localFile("small.bin", "x")
	send := func(password string, want int) string {
		t.Helper()
		code, out, messages := c.shell(c.uploading(password), "upload", file)
		if code != want {
			t.Errorf("exit code %d with %q and %q, want %d", code, out, messages, want)
		}
		return messages
	}
	if messages := send("wrong", 1); !strings.Contains(messages, "wrong API key or password") {
		t.Errorf("got %q", messages)
	}
	send(password, 0)
	kept, err := filepath.Glob(filepath.Join(c.home, "data", "caddy", "media", "upload_tokens", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("tokens are stored in %q, %v, want one file", kept, err)
	}
	if stat, err := os.Stat(kept[0]); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want a file for its owner only", stat, err)
	}
	send("", 0) // no prompt
	if status, body := c.change(http.MethodPatch, "accounts/"+apiKey+"/password_hash", `"`+changedHash+`"`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if messages := send("", 1); !strings.Contains(messages, "no password") {
		t.Errorf("got %q", messages)
	}
	send("changed", 0)
	send("", 0)
	if written := c.output() + readAll(t, kept[0]); strings.Contains(written, "changed\"") {
		t.Error("the password is written down")
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUploadCommandLogsIn: the password comes from a file or a variable, and is never sent to other
// hosts over plain HTTP.
func TestUploadCommandLogsIn(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.start("tokens memory\n" + basic)
	file := c.localFile("a.txt", "x")
	secret := c.localFile("secret", password+"\n")
	server := "http://" + c.plain
	elsewhere := "XDG_DATA_HOME=" + filepath.Join(t.TempDir(), "nobody") // without a stored token
	for _, one := range []struct {
		env, args []string
		want      string // in the messages; empty for success
	}{
		{nil, []string{"--server", server, "--api-key", apiKey, "--password-file", secret}, ""},
		{c.uploading("wrong"), []string{"--server", server}, ""}, // the token is stored
		{append(c.uploading("wrong"), elsewhere), nil, "wrong API key or password"},
		{append(c.uploading("wrong"), elsewhere), []string{"--password-file", secret}, ""},
		{[]string{elsewhere}, []string{"--server", "http://192.0.2.1", "--api-key", apiKey}, "over plain HTTP"},
		{nil, []string{"--api-key", apiKey}, "--server or $MEDIA_SERVER is missing"},
		{nil, []string{"--server", server}, "--api-key or $MEDIA_API_KEY is missing"},
		{c.uploading(password), []string{"--parallel", "0"}, "--parallel is 1 or more"},
		{c.uploading(password), []string{"--as", "film"}, "--as is image or file"},
		{c.uploading(password), []string{"--password", password}, "unknown flag"},
	} {
		code, out, messages := c.shell(one.env, append(append([]string{"upload"}, one.args...), file)...)
		if (code == 0) != (one.want == "") || !strings.Contains(messages, one.want) || strings.Contains(messages, "Usage:") {
			t.Errorf("%q: exit code %d with %q and %q, want %q", one.args, code, out, messages, one.want)
		}
	}
}
