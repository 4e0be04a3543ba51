package features_test

import (
	"net/http"
	"strings"
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

// uploading returns the environment variables for an upload to the child by the account of the
// tests.
func uploading(c *site.Child, password string) []string {
	return []string{"MEDIA_SERVER=http://" + c.Plain, "MEDIA_API_KEY=" + site.APIKey, "MEDIA_PASSWORD=" + password}
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
