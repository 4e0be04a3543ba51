package media

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
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
		kind    item.Kind
		address string
		want    string // the name; with spaces: a part of the message
	}{
		{item.Image, "/Test%20Picture.PNG?c=p", "test-picture.png"},
		{item.Image, "/photo?c=p", "photo.png"},
		{item.Image, "/image.aspx?c=p", "image-aspx.png"},
		{item.Image, "/?c=p", "image.png"},
		{item.Image, "/x.jpg?c=p&name=real.png", "real.png"},
		{item.Image, "/x.jpg?c=p", "content is PNG, the name says .jpg"},
		{item.Image, "/x?c=d", ".pdf is not accepted; images may be"},
		{item.File, "/report.pdf?c=d", "report.pdf"},
		{item.File, "/report?c=d", "report.pdf"},
		{item.File, "/notes.?c=t", "notes.txt"},
		{item.File, "/?c=d", "file.pdf"},
		{item.File, "/photo?c=p", "photo.png"},
		{item.Image, "/x?c=p&name=%3D%3FUTF-8%3FB%3FxYhlLnBuZw==%3F%3D", "ne.png"},
	} {
		download := s.DownloadFile
		if c.kind == item.Image {
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
	wantStored(t, s, "file/content/f10/file.pdf", "%PDF-1.7")
	if want := (item.Actor{Origin: item.OriginGo}); !slices.Contains(observed.actors, want) || len(slices.Compact(observed.actors)) != 1 {
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

// sent is a part of a form, with the rest of its Content-Disposition.
type sent struct{ disposition, content string }

func sentFile(input, name, content string) sent {
	return sent{`name="` + input + `"; filename="` + name + `"`, content}
}

// formRequest returns a request with a form. Its context ends like that of a server's request.
func formRequest(t *testing.T, parts ...sent) *http.Request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, p := range parts {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {"form-data; " + p.disposition}})
		if err == nil {
			_, err = io.WriteString(part, p.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}

func asJSON(t *testing.T, result Result) string {
	t.Helper()
	b, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantResult(t *testing.T, got Result, want string) {
	t.Helper()
	if got := asJSON(t, got); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// wantNothing asserts that the service has stored nothing.
func wantNothing(t *testing.T, s *Service) {
	t.Helper()
	storage, _ := s.core.Storage("default")
	for info, err := range storage.All(t.Context(), "") {
		t.Errorf("stored %s: %v", info.Key, err)
	}
}

// observed records failures and the actors of changes, as the observer of the Caddy plug-in does.
type observed struct {
	service.NopObserver
	actors   []item.Actor
	failures item.Failures
	events   []Event
}

// observe starts a service with an observer.
func observe(t *testing.T, config Config) (*Service, *observed) {
	t.Helper()
	o := new(observed)
	config.Observer = o
	return start(t, config), o
}

func (o *observed) Observe(_ context.Context, e Event) { o.events = append(o.events, e) }

func (o *observed) Changed(_ context.Context, c upload.Change) { o.actors = append(o.actors, c.Actor) }

func (o *observed) Refused(_ context.Context, _ upload.Operation, f item.Failures) {
	o.failures = append(o.failures, f...)
}

// TestServiceObserver: an observer with the methods of service.Observer has their calls, not the
// events.
func TestServiceObserver(t *testing.T) {
	t.Parallel()
	s, observed := observe(t, configOf(t))
	s.FormFile(formRequest(t, sentFile("cv", "cv.txt", "text")), "cv", "", "")
	s.FormFile(formRequest(t, sentFile("cv", "cv.php", "text")), "cv", "", "")
	if len(observed.actors) != 1 || len(observed.failures) != 1 || len(observed.events) > 0 {
		t.Errorf("observed %+v", observed)
	}
}

type clientKey struct{}

// TestForm: several inputs of one form are stored, whether the caller or the service parses it.
func TestForm(t *testing.T) {
	t.Parallel()
	picture := pngOf(t)
	for name, parse := range map[string]func(*http.Request) error{
		"by us":         func(*http.Request) error { return nil },
		"by the caller": func(r *http.Request) error { return r.ParseMultipartForm(1 << 10) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := configOf(t)
			config.Client = func(ctx context.Context) string { return ctx.Value(clientKey{}).(string) } // see below
			s, observed := observe(t, config)
			r := formRequest(t, sent{`name="title"`, "Me"}, sentFile("portrait", "Můj Portrét.PNG", picture),
				sentFile("cv", "cv.pdf", "%PDF-1.7"))
			r = r.WithContext(context.WithValue(r.Context(), clientKey{}, "192.0.2.1"))
			if err := parse(r); err != nil {
				t.Fatal(err)
			}
			wantResult(t, s.FormImage(r, "portrait", "webp", ""), `{"success":true,`+
				`"full_path":"https://cdn.example.com/static/img/webp/muj-portret.png","filename":"muj-portret.png",`+
				`"webp":"https://cdn.example.com/static/img/webp/muj-portret.png.webp"}`)
			wantResult(t, s.FormFile(r, "cv", "", "people/Me"),
				`{"success":true,"full_path":"/static/file/content/people/me/cv.pdf","filename":"people/me/cv.pdf"}`)
			if title := r.FormValue("title"); title != "Me" {
				t.Errorf("the field is %q", title)
			}
			wantStored(t, s, "img/webp/muj-portret.png", picture)
			wantStored(t, s, "file/content/people/me/cv.pdf", "%PDF-1.7")
			want := item.Actor{Origin: item.OriginGo, Client: "192.0.2.1"}
			if got := observed.actors; len(got) != 2 || got[0] != want || got[1] != want {
				t.Errorf("on behalf of %v, want %v", got, want)
			}
		})
	}
}

// TestFormRefused: every error has a message, and nothing is stored.
func TestFormRefused(t *testing.T) {
	t.Parallel()
	picture := pngOf(t)
	otherwise := func(change func(*http.Request)) *http.Request {
		r := formRequest(t, sentFile("a", "a.png", picture))
		change(r)
		return r
	}
	for _, c := range []struct {
		name    string
		request *http.Request
		alias   string
		message string
	}{
		{"no such input", formRequest(t, sentFile("b", "a.png", picture)), "", `no file in the input "a"`},
		{"left empty", formRequest(t, sentFile("a", "", "")), "", `no file in the input "a"`},
		{"two extensions", formRequest(t, sent{`name="a"; filename="a.png"; filename*=UTF-8''a.gif`, picture}), "", "different extensions"},
		{"several", formRequest(t, sentFile("a", "a.png", picture), sentFile("a", "b.png", picture)), "", "2 files"},
		{"unknown alias", formRequest(t, sentFile("a", "a.png", picture)), "nobody", `unknown alias "nobody"`},
		{"too large", formRequest(t, sentFile("a", "a.png", picture), sent{`name="b"`, strings.Repeat("x", 10_000)}), "", "larger than 9 kB"},
		{"no form", otherwise(func(r *http.Request) { r.Header.Set("Content-Type", "image/png") }), "", "multipart/form-data"},
		{"a piece", formRequest(t, sentFile("a", "a.png", picture), sent{`name="chunks"`, "2"}), "", "a piece of a file"},
		{"no body", otherwise(func(r *http.Request) { r.Body = nil }), "", "malformed"},
		{"cut short", otherwise(func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(r.Body, 150)) }), "", "ends too early"},
		{
			"read by somebody else", otherwise(func(r *http.Request) {
				if _, err := r.MultipartReader(); err != nil {
					t.Fatal(err)
				}
			}),
			"", `no file in the input "a"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := configOf(t)
			config.Limits.MaxBody = 9000
			s, observed := observe(t, config)
			got := s.FormImage(c.request, "a", c.alias, "")
			if got.Success || !strings.Contains(got.Message, c.message) {
				t.Errorf("got %+v, want the message %q", got, c.message)
			}
			if want := `{"success":false,"message":`; !strings.HasPrefix(asJSON(t, got), want) || strings.Contains(asJSON(t, got), "full_path") {
				t.Errorf("got %s", asJSON(t, got))
			}
			if len(observed.failures) != 1 {
				t.Errorf("observed %v", observed.failures)
			}
			wantNothing(t, s)
		})
	}
}

// TestMalformedQuery: a form is stored despite a malformed query.
func TestMalformedQuery(t *testing.T) {
	t.Parallel()
	s := start(t, configOf(t))
	r := formRequest(t, sentFile("a", "a.txt", "text"))
	r.URL.RawQuery = "%zz"
	if got := s.FormFile(r, "a", "", ""); !got.Success {
		t.Errorf("got %+v", got)
	}
}

// TestTemporaryFiles: files too large for memory are kept in temporary files until the request
// ends.
func TestTemporaryFiles(t *testing.T) { // not parallel: the variable is the process's
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	count := func() int {
		t.Helper()
		names, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	s := start(t, configOf(t))
	content := strings.Repeat("0123456789abcdef", 100_000)
	r := formRequest(t, sentFile("a", "a.txt", content), sentFile("b", "b.txt", content))
	ctx, end := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	for _, input := range []string{"a", "b"} {
		if got := s.FormFile(r, input, "", ""); !got.Success {
			t.Errorf("got %+v", got)
		}
		wantStored(t, s, "file/content/"+input+".txt", content)
	}
	if count() == 0 {
		t.Error("all is in memory")
	}
	end()
	for deadline := time.Now().Add(time.Minute); count() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the temporary files stay")
		}
	}
}
