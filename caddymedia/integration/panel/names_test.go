package panel_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// shownItem is an item as the panel returns it.
type shownItem struct{ Filename, Name, Address string }

// items returns the items of the image alias content.
func items(t *testing.T, p *site.Panel, query string) []shownItem {
	t.Helper()
	var page struct{ Items []shownItem }
	r := p.Must(t, http.StatusOK, http.MethodGet, "items/img/content?"+query, nil)
	if err := json.Unmarshal([]byte(r.Body), &page); err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// TestPanelOddNames: items whose unsanitized names have special characters of addresses are found,
// shown and removed.
func TestPanelOddNames(t *testing.T) {
	p := site.StartPanel(t, site.Account+"storage default {\ndriver local $ROOT\nsanitize off\n}\nimage_alias content\nfile_alias content\n")
	folder := filepath.Join(p.Root, "img", "content", "in here", "50%")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"a b.gif", "100%.gif", "a%2Fb.gif", "a#b.gif", "q?a=b.gif", "a+b.gif", "a;b&c=d.gif", "-dash.gif", "--help.gif", "日本 é.gif", "e\u0301.gif",
		`"quoted".gif`, "<b>.gif", "it's.gif", "{env.HOME}.gif", "UPPER.GIF", strings.Repeat("n", 251) + ".gif",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(sample.GIF(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		listed := items(t, p, "folder="+url.QueryEscape("in here/50%"))
		found := items(t, p, "search="+url.QueryEscape(strings.ToLower(name)))
		if len(listed) != 1 || listed[0].Name != name || !slices.Equal(found, listed) {
			t.Errorf("%q: listed %q, found %q", name, listed, found)
			continue
		}
		route := "img/content/in%20here/50%25/" + url.PathEscape(name)
		var one shownItem
		if err := json.Unmarshal([]byte(p.Must(t, http.StatusOK, http.MethodGet, "items/"+route, nil).Body), &one); err != nil || one != listed[0] {
			t.Errorf("%q: %q, %v, want %q", name, one, err, listed[0])
		}
		if r := p.Must(t, http.StatusOK, http.MethodGet, "preview/"+route, nil); r.Body != sample.GIF(t) {
			t.Errorf("%q: the preview has %d bytes", name, len(r.Body))
		}
		if r := p.Fetch(t, p.URL+one.Address); r.Status != http.StatusOK || r.Body != sample.GIF(t) {
			t.Errorf("%q: %d at %s", name, r.Status, one.Address)
		}
		p.Must(t, http.StatusNoContent, http.MethodDelete, "items/"+route, nil)
		p.Must(t, http.StatusNotFound, http.MethodGet, "items/"+route, nil)
	}
}
