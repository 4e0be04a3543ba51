package browser_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestClientUppy: the documented page uploads in a browser, with a token from the site's own server.
func TestClientUppy(t *testing.T) {
	needsBrowser(t)
	site.AwaitOneDay()
	servers.Program(t, "node")
	uppy := filepath.Join(os.Getenv(browserModules), "node_modules", "uppy", "dist")
	if _, err := os.Stat(uppy); err != nil {
		site.Skip(t, "uppy is not installed: %v", err)
	}
	page := filepath.Join(pages.Root(t), "caddymedia", "docs", "clients")
	var token atomic.Value
	var locked atomic.Bool
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/lock-out":
			locked.Store(true)
		case locked.Load():
			w.WriteHeader(http.StatusForbidden)
		default:
			fmt.Fprintf(w, `{"token":%q}`, token.Load())
		}
	}))
	t.Cleanup(own.Close)
	s := site.Start(t, site.Basic, `media
		handle_path /uppy/* {
			root `+uppy+`
			file_server
		}
		@own path /media-token /lock-out
		reverse_proxy @own `+own.URL+`
		root `+page+`
		file_server
	`)
	token.Store(s.Token(t, site.APIKey))
	encoded := func(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }
	browse(t, "uppy", facts{
		Panel: s.URL + "/uppy.html",
		More: map[string]any{
			"folder":  time.Now().Format("06-01/02/"),
			"lockOut": s.URL + "/lock-out",
			"good":    map[string]string{"name": "Test Photo.jpg", "content": encoded(sample.JPEG(t, 40, 30))},
			"bad": map[string]string{
				"name": "disguise.jpg", "content": encoded(sample.PNG(t, 40, 30)), "message": "content is PNG, the name says .jpg",
			},
		},
	})
}
