package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestListAndRemoveCommands: the commands see the items of the running Caddy, which removes them
// itself and writes its audit log.
func TestListAndRemoveCommands(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.start(withPictures(""))
	client := c.http1()
	answer, err := client.sendPicture(t.Context(), client.mustLogin(t), strings.NewReader(pictureForm("kept.jpg", drawnJPEG(64, 48))))
	if err != nil || answer.status != http.StatusOK {
		t.Fatal(answer, err)
	}
	for _, one := range []struct{ args, want string }{
		{"ls", "img/content  alias in keep"},
		{"ls img/content", "kept.jpg.webp\n"},
		{"du keep", "2 objects"},
		{"rm --dry-run img/content/kept.jpg", "img/content/kept.jpg: would be removed"},
		{"rm --yes img/content/kept.jpg", "img/content/kept.jpg: removed"},
	} {
		args := append(strings.Fields(one.args), "--address", c.admin)
		if got := c.media(args...).must(t); !strings.Contains(got.out, one.want) || got.err != "" {
			t.Errorf("%s: %q and %q, want %q", one.args, got.out, got.err, one.want)
		}
	}
	for _, name := range []string{"kept.jpg", "kept.jpg.webp"} {
		if _, err := os.Stat(filepath.Join(c.root, "pictures", name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	eventually(t, "the audit log has it", func() bool {
		log := c.output()
		return strings.Contains(log, `"action":"delete"`) && strings.Contains(log, `"via":"admin"`)
	})
	if again := c.media("rm", "--yes", "img/content/kept.jpg", "--address", c.admin); again.code != 1 || !strings.Contains(again.err, "there is no such item") {
		t.Errorf("a second time: %+v", again)
	}
}
