package media

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
)

// remote starts a server, and returns the options of downloads that allow it.
func remote(t *testing.T, serve http.HandlerFunc) (url string, allowed Downloads) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	address := netip.MustParseAddrPort(server.Listener.Addr().String())
	return server.URL, Downloads{Allow: []string{"127.0.0.0/8"}, Ports: []string{fmt.Sprint(address.Port())}}
}

// TestDownload: names come from the server or the address, types from the content.
func TestDownload(t *testing.T) {
	t.Parallel()
	picture := pngOf(t)
	url, downloads := remote(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/x-wrong")
		if name := r.URL.Query().Get("name"); name != "" {
			w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		}
		content, ok := map[string]string{"p": picture, "d": "%PDF-1.7", "t": "words", "": ""}[r.URL.Query().Get("c")]
		if !ok {
			t.Errorf("asked for %s", r.URL)
		}
		io.WriteString(w, content)
	})
	config := configOf(t)
	config.Downloads = downloads
	s, observed := observe(t, config)
	for i, c := range []struct {
		kind    aliases.Kind
		address string
		want    string // the name; with spaces: a part of the message
	}{
		{aliases.Image, "/Test%20Picture.PNG?c=p", "test-picture.png"},
		{aliases.Image, "/photo?c=p", "photo.png"},
		{aliases.Image, "/image.aspx?c=p", "image-aspx.png"},
		{aliases.Image, "/?c=p", "image.png"},
		{aliases.Image, "/x.jpg?c=p&name=real.png", "real.png"},
		{aliases.Image, "/x.jpg?c=p", "content is PNG, the name says .jpg"},
		{aliases.Image, "/x?c=d", ".pdf is not accepted; images may be"},
		{aliases.Image, "/x?c=", "the name has no extension"},
		{aliases.Image, "/image.php?c=p", ".php are never accepted"},
		{aliases.File, "/report.pdf?c=d", "report.pdf"},
		{aliases.File, "/report?c=d", "report.pdf"},
		{aliases.File, "/notes.?c=t", "notes.txt"},
		{aliases.File, "/?c=d", "file.pdf"},
		{aliases.File, "/photo?c=p", "photo.png"},
		{aliases.File, "/setup.exe?c=d", ".exe is not accepted; files may be"},
		{aliases.File, "/report.pdf?c=p", "content is PNG, the name says .pdf"},
	} {
		download := s.DownloadFile
		if c.kind == aliases.Image {
			download = s.DownloadImage
		}
		folder := fmt.Sprintf("f%d", i)
		got := download(t.Context(), url+c.address, "", folder)
		if strings.Contains(c.want, " ") {
			if got.Success || !strings.Contains(got.Message, c.want) {
				t.Errorf("%s: got %+v, want the message %q", c.address, got, c.want)
			}
			continue
		}
		if want := folder + "/" + c.want; !got.Success || got.Filename != want || got.FullPath != "/static/"+string(c.kind)+"/content/"+want {
			t.Errorf("%s: got %+v, want %s", c.address, got, want)
		}
	}
	wantStored(t, s, "img/content/f1/photo.png", picture)
	wantStored(t, s, "file/content/f12/file.pdf", "%PDF-1.7")
	if want := (aliases.Actor{Origin: aliases.OriginGo}); !slices.Contains(observed.actors, want) || len(slices.Compact(observed.actors)) != 1 {
		t.Errorf("on behalf of %v, want %v", observed.actors, want)
	}
}

// TestDownloadRefused: messages contain no host or address, and nothing is stored.
func TestDownloadRefused(t *testing.T) {
	t.Parallel()
	var answered atomic.Int64
	asked := make(chan struct{})
	url, downloads := remote(t, func(w http.ResponseWriter, r *http.Request) {
		answered.Add(1)
		switch r.URL.Path {
		case "/announced.txt": // a reader of it never reaches the end
			w.Header().Set("Content-Length", "2097153")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/endless.txt":
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, strings.Repeat("x", 10_000))
			}
		case "/broken.txt", "/broken":
			w.Header().Set("Content-Length", "2000000")
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/hangs.txt": // no header yet: behind it the storage might hear of the cancel first
			close(asked)
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	})
	open, closed := configOf(t), configOf(t)
	open.Downloads, closed.Downloads = downloads, Downloads{Ports: downloads.Ports}
	allowed, observed := observe(t, open)
	refusing, refused := observe(t, closed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-asked
		cancel()
	}()
	for _, c := range []struct {
		name, address, alias string
		message              string
		asked                int64
	}{
		{"not allowed", url + "/a.txt", "closed", "the address may not be fetched", 0},
		{"unknown alias", url + "/a.txt", "nobody", `unknown alias "nobody"`, 0},
		{"no web address", "file:///etc/passwd", "", "http", 0},
		{"missing", url + "/missing.txt", "", "the server answered 404", 1},
		{"announced too large", url + "/announced.txt", "", "larger than 2 MiB", 1},
		{"turns out too large", url + "/endless.txt", "", "larger than 2 MiB", 1},
		{"breaks off", url + "/broken.txt", "", "broke off", 1},
		{"breaks off before its type is known", url + "/broken", "", "broke off", 1},
		{"cancelled", url + "/hangs.txt", "", "the download was cancelled", 1},
	} {
		answered.Store(0)
		s, o, alias := allowed, observed, c.alias
		if alias == "closed" {
			s, o, alias = refusing, refused, ""
		}
		o.failures = nil
		got := s.DownloadFile(ctx, c.address, alias, "")
		if got.Success || !strings.Contains(got.Message, c.message) || strings.Contains(got.Message, "127.0.0.1") {
			t.Errorf("%s: got %+v, want the message %q", c.name, got, c.message)
		}
		if answered.Load() != c.asked || len(o.failures) != 1 {
			t.Errorf("%s: the server was asked %d times, want %d; observed %v", c.name, answered.Load(), c.asked, o.failures)
		}
	}
	wantNothing(t, allowed)
}
