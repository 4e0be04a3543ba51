package browser_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestBrowserStory: the first steps of a new administrator, starting with Caddyfile.example.
func TestBrowserStory(t *testing.T) {
	needsBrowser(t)
	const wrong = "not this one"
	host := servers.ProFTPDOverSSH(t)
	s, output := site.RunExample(t, servers.FreeAddress(t))
	browse(t, "story", facts{
		Panel: s.URL + "/media-admin/", User: "admin", Password: "only for trying out",
		Secrets: []string{host.Password, wrong, "$argon2id$"},
		More: map[string]any{
			"sftp": map[string]string{
				"address": host.Address, "user": host.User, "password": host.Password, "hostKey": host.HostKey,
			},
			"image": map[string]string{
				"name": "Sunset over Brno.JPG", "content": encoded(sample.JPEG(t, 1600, 1067)),
			},
		},
	})
	log := output()
	for _, secret := range []string{host.Password, wrong} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// archive is a second storage beside the default one.
const archive = "storage archive {\ndriver local $ROOT-archive\n}\n"

// TestBrowserLogin: login, logout, and the end of a session on every type of page.
func TestBrowserLogin(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Basic, Site: site.LoginBlock, Global: "admin " + servers.FreeAddress(t),
	})
	browse(t, "login", panelFacts(p, nil))
}

// TestBrowserBasicAuth: the end of a session if the login is in front of the panel.
func TestBrowserBasicAuth(t *testing.T) {
	needsBrowser(t)
	browse(t, "login", panelFacts(site.StartPanel(t, site.Basic), map[string]any{"basic": true}))
}

// TestBrowserTwo: with two administrators, the second one learns of a conflict and loses no input.
func TestBrowserTwo(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+archive)
	browse(t, "two", panelFacts(p, nil))
}

// TestBrowserMany: more than ten thousand images in one folder are not shown at once.
func TestBrowserMany(t *testing.T) {
	needsBrowser(t)
	const count = 10_050
	p := site.StartPanel(t, site.Basic)
	img := sample.JPEG(t, 8, 8)
	for i := range count {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "all", fmt.Sprintf("image-%05d.jpg", i)), img)
	}
	browse(t, "many", panelFacts(p, map[string]any{"folder": "all", "count": count, "late": "image-09876"}))
}

// TestBrowserReader: a viewer is offered no changes.
func TestBrowserReader(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+archive)
	browse(t, "reader", panelFacts(p, nil))
}

// TestBrowserUploader: for an uploader the panel is a media library.
func TestBrowserUploader(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Basic + "file_alias hidden\n", Site: site.UploaderBlock, Global: "admin " + servers.FreeAddress(t),
	})
	for i := range 30 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", fmt.Sprintf("image-%02d.jpg", i)), sample.JPEG(t, 320+i, 240))
	}
	browse(t, "uploader", panelFacts(p, map[string]any{"image": encoded(sample.JPEG(t, 640, 480))}))
}

// TestBrowserPages checks every page.
func TestBrowserPages(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+archive+`storage dead {
		driver ftp 127.0.0.1:1 {
			user somebody
			password not-for-eyes
		}
	}
	file_alias far {
		storage dead
	}
	`)
	for _, name := range []string{"tree.jpg", "house.jpg", "album/tree.jpg", "album/a-rather-long-name-of-an-image-that-nobody-would-type-by-hand.jpg"} {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", name), sample.JPEG(t, 640, 480))
	}
	facts := panelFacts(p, nil)
	facts.Secrets = append(facts.Secrets, "not-for-eyes")
	browse(t, "pages", facts)
}

// panelFacts returns the facts of the panel for scripts.
func panelFacts(p *site.Panel, more map[string]any) facts {
	return facts{
		Panel: p.URL + "/media-admin/", User: p.User, Password: site.Password,
		Secrets: []string{site.CheapHash}, More: more,
	}
}

// docs is a second file alias, for small texts.
const docs = "file_alias docs {\nextensions txt\nmax_size 2MiB\n}\n"

// TestBrowserAccounts: an account is created, logs in, gets a new password, loses its tokens, is
// limited and removed.
func TestBrowserAccounts(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "accounts", panelFacts(p, nil))
}

// TestBrowserRenditions: renditions are added, renamed and removed in the form of their alias, and
// shown with the images.
func TestBrowserRenditions(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic)
	site.PutFile(t, filepath.Join(p.Root, "img", "content", "tree.jpg"), sample.JPEG(t, 640, 480))
	browse(t, "renditions", panelFacts(p, nil))
}

// TestBrowserHealth: the configuration is downloaded, a failed server recovers, items are counted,
// and changes are shown.
func TestBrowserHealth(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+archive+"file_alias checked {\ncheck http http://127.0.0.1:1/\n}\n")
	for i := range 3 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", fmt.Sprintf("image-%d.jpg", i)), strings.Repeat("x", 2048))
	}
	browse(t, "health", panelFacts(p, nil))
}
