package browser_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestUsers: a form of another site cannot upload with the login of its visitor, a cookie without
// SameSite; a page of the site can, and so can the form of an origin that cors names.
func TestUsers(t *testing.T) {
	needsBrowser(t)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, err := r.Cookie("session")
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Remote-User", session.Value)
	}))
	t.Cleanup(provider.Close)
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" enctype="multipart/form-data" action="%s/api/upload/file">
			<input type="file" name="files[]" aria-label="File"><button>Upload</button></form>`, r.FormValue("service"))
	})
	evil, named := httptest.NewServer(page), httptest.NewServer(page)
	t.Cleanup(evil.Close)
	t.Cleanup(named.Close)
	s := site.Start(t, site.LocalDefault+"file_alias content\naccount members {\ntrust_header Remote-User\nsub_folder users/{http.auth.user.id}\n}\n"+
		"cors "+named.URL+"\n", "forward_auth /api/* "+provider.URL+" {\nuri /\ncopy_headers Remote-User\n}\nmedia\n"+
		"header Content-Type text/html\nrespond `<!doctype html><html lang=en><title>own</title><main><h1>own</h1></main></html>`")
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	browse(t, "users", facts{
		Panel: "http://localhost:" + port + "/", Service: "http://localhost:" + port,
		More: map[string]string{"evil": evil.URL, "named": named.URL},
	})
	for name, want := range map[string]int{"own.txt": 1, "named.txt": 1, "evil*.txt": 0} {
		if found, _ := filepath.Glob(filepath.Join(s.Root, "file/content/users/alice", name)); len(found) != want {
			t.Errorf("%q are stored as %s, want %d", found, name, want)
		}
	}
}
