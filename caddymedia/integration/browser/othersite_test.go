package browser_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestOtherSite: the documented page of another site uploads where cors lists its site, or any. A
// browser refuses it otherwise.
func TestOtherSite(t *testing.T) {
	needsBrowser(t)
	html := site.ReadFile(t, filepath.Join(pages.Root(t), "caddymedia", "docs", "clients", "othersite.html"))
	var service, token atomic.Value
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/media-token" {
			fmt.Fprintf(w, `{"token":%q}`, token.Load())
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, strings.ReplaceAll(string(html), "https://media.example.com", service.Load().(string)))
	}))
	t.Cleanup(own.Close)
	encoded := func(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }
	for name, cors := range map[string]string{
		"listed": "cors https://www.example.com " + own.URL + "\n", "any": "cors *\n",
		"unlisted": "cors https://www.example.com\n", "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, site.Basic+cors, "media")
			service.Store(s.URL)
			token.Store(s.Token(t, site.APIKey))
			browse(t, "othersite", facts{
				Panel: own.URL + "/", Service: s.URL,
				More: map[string]any{
					"refused": name == "unlisted" || name == "none",
					"good":    map[string]string{"name": "photo.jpg", "content": encoded(sample.JPEG(t, 40, 30))},
					"bad": map[string]string{
						"name": "disguise.jpg", "content": encoded(sample.PNG(t, 40, 30)), "message": "content is PNG, the name says .jpg",
					},
				},
			})
		})
	}
}
