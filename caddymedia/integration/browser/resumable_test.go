package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/integration/ticketserver"
)

// libraries are the npm packages of the documented pages, by the addresses of their folders dist.
var libraries = map[string]string{
	"/tus/": "tus-js-client", "/uppy/": "uppy", "/filepond/": "filepond", "/filepond-image-preview/": "filepond-plugin-image-preview",
}

// shop is a site whose pages upload to a service on another origin, through a gate.
type shop struct {
	*site.Child
	own     *httptest.Server
	service string // the address of the gate
	gate    *gate
	media   string // the configuration of the service
	// restart makes the service crash and start again, which the sender awaits by the channel in it.
	restart chan chan struct{}
}

// startShop starts a service, and a site with a documented page and a server that issues tickets.
func startShop(t *testing.T, page string, tickets func(*testing.T, []string) string) *shop {
	t.Helper()
	s := &shop{Child: site.NewChild(t), restart: make(chan chan struct{})}
	mux := http.NewServeMux()
	s.own = httptest.NewServer(mux)
	t.Cleanup(s.own.Close)
	s.media = site.Basic + "cors " + s.own.URL + "\n"
	s.Start(s.media)
	s.gate = newGate(t, s.Plain)
	s.service = "http://" + s.gate.address

	address := tickets(t, append(os.Environ(),
		"MEDIA_SERVER=http://"+s.Plain, "MEDIA_API_KEY="+site.APIKey, "MEDIA_PASSWORD="+site.Password))
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
		r.Out.Header.Del("Remote-User")
		if user, err := r.In.Cookie("user"); err == nil {
			r.Out.Header.Set("Remote-User", user.Value)
		}
	}}
	mux.Handle("/media-ticket", proxy)
	mux.Handle("/save", proxy)
	mux.HandleFunc("/log-in", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "user", Value: "anna"})
		proxy.ServeHTTP(w, r)
	})
	mux.Handle("/gate", s.gate)
	mux.HandleFunc("/restart", func(_ http.ResponseWriter, r *http.Request) {
		done := make(chan struct{})
		select {
		case s.restart <- done:
			<-done
		case <-r.Context().Done():
		}
	})
	html := string(site.ReadFile(t, filepath.Join(ticketserver.Folder(t), page)))
	for address, name := range libraries {
		if strings.Contains(html, address) {
			mux.Handle(address, http.StripPrefix(address, http.FileServer(http.Dir(browserPackage(t, name)))))
		}
	}
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, strings.ReplaceAll(html, "https://media.example.com", s.service))
	})
	return s
}

// browse runs a script, which may restart the service.
func (s *shop) browse(t *testing.T, script string, f facts) {
	t.Helper()
	f.Panel, f.Service, f.Secrets = s.own.URL+"/", s.service, []string{site.APIKey}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.Run(script, func(t *testing.T) { browse(t, script, f) })
	}()
	for {
		select {
		case done := <-s.restart:
			s.Kill()
			s.Start(s.media)
			close(done)
		case <-ended:
			return
		}
	}
}

// browserPackage returns the folder of a library for browsers.
func browserPackage(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(os.Getenv(browserModules), "node_modules", name, "dist")
	if _, err := os.Stat(folder); err != nil {
		site.Skip(t, "%s is not installed: %v", name, err)
	}
	return folder
}

// textOf returns a text of n bytes that is different everywhere.
func textOf(n int, seed string) string {
	var b strings.Builder
	for line := 0; b.Len() < n; line++ {
		fmt.Fprintf(&b, "line %d of %s\n", line, seed)
	}
	return b.String()[:n]
}

// largeText is so much that it fills all buffers between a browser and the service.
const largeText = 24 << 20

// TestResumablePage: the documented page with tus-js-client uploads whole items over a connection
// that breaks, after the end of a ticket, through a crash of the service, after a pause, after a
// reload of the page, and after a crash of the service and the end of the browser. Its tickets are
// from the documented servers.
func TestResumablePage(t *testing.T) {
	needsBrowser(t)
	for name, tickets := range ticketserver.All {
		t.Run(name, func(t *testing.T) {
			s := startShop(t, "resumable.html", tickets)
			folder := t.TempDir()
			for _, name := range []string{"cut", "outlasting", "killed", "paused", "reloaded", "crashed"} {
				site.PutFile(t, filepath.Join(folder, name+".txt"), textOf(largeText, name))
			}
			site.PutFile(t, filepath.Join(folder, "disguise.txt"), sample.PNG(t, 40, 30))
			visit := func(step string) {
				t.Helper()
				s.browse(t, "resumable", facts{
					More: map[string]any{"step": step, "folder": folder, "state": filepath.Join(folder, "state.json")},
				})
			}
			visit("before")
			if t.Failed() {
				return
			}
			s.Kill()
			s.Start(s.media)
			visit("after")
		})
	}
}

// TestResumableUppy: the documented page with Uppy uploads several files over a connection that
// breaks, and continues after a reload of the page and after the end of a ticket.
func TestResumableUppy(t *testing.T) {
	needsBrowser(t)
	s := startShop(t, "uppy-resumable.html", ticketserver.Node)
	folder := t.TempDir()
	for _, name := range []string{"one", "two", "three", "outlasting", "reloaded", "paused", "removed"} {
		size := 3 << 20
		if name == "reloaded" || name == "paused" {
			size = largeText
		}
		site.PutFile(t, filepath.Join(folder, name+".txt"), textOf(size, name))
	}
	site.PutFile(t, filepath.Join(folder, "disguise.txt"), sample.PNG(t, 40, 30))
	s.browse(t, "resumableuppy", facts{
		More: map[string]any{"folder": folder},
	})
	wantItems(t, s.Root, "one.txt", "two.txt", "three.txt", "outlasting.txt", "reloaded.txt", "paused.txt")
}
