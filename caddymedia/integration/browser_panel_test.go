package integration

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestBrowserStory: the first steps of a new administrator, starting with Caddyfile.example.
func TestBrowserStory(t *testing.T) {
	needsBrowser(t)
	withinOneDay()
	const wrong = "not this one"
	host := servers.ProFTPDOverSSH(t)
	s, output := runExample(t, servers.FreeAddress(t))
	browse(t, "story", facts{
		Panel: s.url + "/media-admin/", User: "admin", Password: "only for trying out",
		Secrets: []string{host.Password, wrong, "$argon2id$"},
		More: map[string]any{
			"sftp": map[string]string{
				"address": host.Address, "user": host.User, "password": host.Password, "hostKey": host.HostKey,
			},
			"picture": map[string]string{
				"name": "Sunset over Brno.JPG", "content": base64.StdEncoding.EncodeToString([]byte(jpegOf(t, 1600, 1067))),
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
	p := startPanelConfig(t, siteConfig{
		Media: basic, Site: loginBlock, Global: "admin " + servers.FreeAddress(t),
	})
	browse(t, "login", p.facts(nil))
}

// TestBrowserBasicAuth: the end of a session if the login is in front of the panel.
func TestBrowserBasicAuth(t *testing.T) {
	needsBrowser(t)
	browse(t, "login", startPanel(t, basic).facts(map[string]any{"basic": true}))
}

// TestBrowserTwo: with two administrators, the second one learns of a conflict and loses no input.
func TestBrowserTwo(t *testing.T) {
	needsBrowser(t)
	p := startPanel(t, basic+archive)
	browse(t, "two", p.facts(nil))
}

// TestBrowserHostile: a name with HTML in it is shown as text.
func TestBrowserHostile(t *testing.T) {
	needsBrowser(t)
	const name, folder = `"><img src=x onerror=alert(1)>.txt`, "<b>&amp;<i>"
	p := startPanel(t, account+`storage default {
		driver local "$ROOT"
		sanitize off
	}
	storage odd {
		driver local "$ROOT <script>alert(1)<"
	}
	image_alias content
	file_alias content
	`)
	putFile(t, filepath.Join(p.root, "file", "content", folder, name), "text")
	browse(t, "hostile", p.facts(map[string]any{"name": name, "folder": folder, "root": p.root + " <script>alert(1)<"}))
}

// TestBrowserMany: ten thousand pictures in one folder are not shown at once.
func TestBrowserMany(t *testing.T) {
	needsBrowser(t)
	const count = 10_000
	p := startPanel(t, basic)
	picture := jpegOf(t, 8, 8)
	for i := range count {
		putFile(t, filepath.Join(p.root, "img", "content", "all", fmt.Sprintf("picture-%05d.jpg", i)), picture)
	}
	browse(t, "many", p.facts(map[string]any{"folder": "all", "count": count, "late": "picture-09876"}))
}

// TestBrowserReader: a viewer is offered no changes.
func TestBrowserReader(t *testing.T) {
	needsBrowser(t)
	p := startPanel(t, basic+archive)
	browse(t, "reader", p.facts(nil))
}

// TestBrowserPages checks every page.
func TestBrowserPages(t *testing.T) {
	needsBrowser(t)
	p := startPanel(t, basic+archive+`storage dead {
		driver ftp 127.0.0.1:1 {
			user somebody
			password not-for-eyes
		}
	}
	file_alias far {
		storage dead
	}
	`)
	for _, name := range []string{"tree.jpg", "house.jpg", "album/tree.jpg", "album/a-rather-long-name-of-a-picture-that-nobody-would-type-by-hand.jpg"} {
		putFile(t, filepath.Join(p.root, "img", "content", name), jpegOf(t, 640, 480))
	}
	facts := p.facts(nil)
	facts.Secrets = append(facts.Secrets, "not-for-eyes")
	browse(t, "pages", facts)
}

// facts returns the facts of the panel for scripts.
func (p *panel) facts(more map[string]any) facts {
	return facts{
		Panel: p.url + "/media-admin/", User: p.user, Password: password,
		Secrets: []string{cheapHash}, More: more,
	}
}

func putFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
