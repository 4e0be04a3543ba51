package commands_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestListAndRemoveCommands: the commands see the items of the running Caddy, which removes them
// itself and writes its audit log.
func TestListAndRemoveCommands(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(site.ImageConfig(""))
	client := c.HTTP1()
	answer, err := client.SendImage(t.Context(), client.MustLogin(t), strings.NewReader(site.ImageForm("kept.jpg", sample.PhotoJPEG(64, 48))))
	if err != nil || answer.Status != http.StatusOK {
		t.Fatal(answer, err)
	}
	for _, one := range []struct{ args, want string }{
		{"ls", "img/content  alias in keep"},
		{"ls img/content", "kept.jpg.webp\n"},
		{"du keep", "2 objects"},
		{"rm --dry-run img/content/kept.jpg", "img/content/kept.jpg: would be removed"},
		{"rm --yes img/content/kept.jpg", "img/content/kept.jpg: removed"},
	} {
		args := append(strings.Fields(one.args), "--address", c.Admin)
		if got := c.Media(args...).Must(t); !strings.Contains(got.Out, one.want) || got.Err != "" {
			t.Errorf("%s: %q and %q, want %q", one.args, got.Out, got.Err, one.want)
		}
	}
	for _, name := range []string{"kept.jpg", "kept.jpg.webp"} {
		if _, err := os.Stat(filepath.Join(c.Root, "pictures", name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	site.Eventually(t, "the audit log has it", func() bool {
		log := c.Output()
		return strings.Contains(log, `"action":"delete"`) && strings.Contains(log, `"via":"admin"`)
	})
	if again := c.Media("rm", "--yes", "img/content/kept.jpg", "--address", c.Admin); again.Code != 1 || !strings.Contains(again.Err, "there is no such object") {
		t.Errorf("a second time: %+v", again)
	}
}
