package browser_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/integration/ticketserver"
)

// TestOtherSite: the documented page of another site uploads where cors lists its site, or any. A
// browser refuses it otherwise.
func TestOtherSite(t *testing.T) {
	needsBrowser(t)
	html := site.ReadFile(t, filepath.Join(pages.Root(t), "caddymedia", "docs", "clients", "othersite.html"))
	var service, token atomic.Value
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/media-ticket" {
			fmt.Fprintf(w, `{"ticket":%q}`, token.Load())
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, strings.ReplaceAll(string(html), "https://media.example.com", service.Load().(string)))
	}))
	t.Cleanup(own.Close)
	for name, cors := range map[string]string{
		"listed": "cors https://www.example.com " + own.URL + "\n", "any": "cors *\n",
		"unlisted": "cors https://www.example.com\n", "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, site.Basic+cors, "media")
			service.Store(s.URL)
			token.Store(heldTicket(t, s))
			browse(t, "othersite", facts{
				Panel: own.URL + "/", Service: s.URL,
				More: map[string]any{
					"item":    "/static/img/content/" + s.UploadImage(t, site.File("item.jpg", sample.JPEG(t, 40, 30))).One(t).Filename,
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

// TestPrivateImages: with step, a browser that opens a page of private images again finds all of
// them in its cache, although their addresses are signed anew.
func TestPrivateImages(t *testing.T) {
	needsBrowser(t)
	const images = 100
	folder := site.TempFolder(t)
	s := site.StartConfig(t, site.Config{
		Media: site.Account + site.AtRoot + "}\nimage_alias photos {\nprivate {\nstep 1d\n}\n}\n",
		Site:  "log\nmedia\nroot * " + folder + "\ntemplates {\nextensions {\nmedia\n}\n}\nfile_server",
	})
	photo := site.File("photo.jpg", sample.JPEG(t, 40, 30))
	up := s.UploadImage(t, append(slices.Repeat([]site.Part{photo}, images), site.Field("alias", "photos"))...)
	if up.Status != http.StatusOK {
		t.Fatal(up)
	}
	page := "<!doctype html><html lang=\"en\"><title>A page</title><h1>A page</h1>\n"
	for _, item := range up.Result(t) {
		page += `<img alt="" src="{{image_url "photos" "` + item.Filename + "\" \"1h\"}}\">\n"
	}
	if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	browse(t, "private", facts{Panel: s.URL + "/", More: map[string]int{"images": images}})
	s.Get(t, "/last-request")
	s.WaitForLog(t, "/last-request")
	log := s.Logged(t)
	if requested := strings.Count(log, `"uri":"/static/img/photos/`); requested != images {
		t.Errorf("the browser requested %d images, want each of %d once", requested, images)
	}
	if opened := strings.Count(log, `"uri":"/?again"`); opened != 1 {
		t.Errorf("the page was opened again %d times", opened)
	}
}

// TestSrcset: of the renditions of an image, a browser picks the one that suits its window.
func TestSrcset(t *testing.T) {
	needsBrowser(t)
	folder := site.TempFolder(t)
	s := site.Start(t, site.Account+site.AtRoot+`}
image_alias content {
	webp
	negotiate on
	rendition small {
		width 320
	}
	rendition medium {
		width 640
		format webp
	}
	rendition large {
		width 1280
		eager on
	}
	rendition huge {
		width 4000
	}
}
`, "media\nroot * "+folder+"\ntemplates {\nextensions {\nmedia\n}\n}\nfile_server")
	up := s.UploadImage(t, site.Part{Name: "files[]", File: true, Filename: "photo.jpg", Content: sample.PhotoJPEG(1600, 1200)})
	if up.Status != http.StatusOK {
		t.Fatal(up)
	}
	const page = `<!doctype html><html lang="en"><title>A page</title><h1>A page</h1>
<img alt="A photograph" style="width: 100%" src="{{image_path "content"}}/photo.jpg" srcset="{{image_srcset "content" "photo.jpg"}}" sizes="calc(100vw - 16px)">`
	if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	type window struct {
		Width  int    `json:"width"`
		Picked string `json:"picked"`
	}
	windows := []window{
		{300, "/static/img/content@small/photo.jpg"},
		{600, "/static/img/content@medium/photo.jpg"},
		{1200, "/static/img/content@large/photo.jpg"},
		{1900, "/static/img/content/photo.jpg"},
	}
	browse(t, "srcset", facts{Panel: s.URL + "/", More: windows})
}

// TestTusOptions: uploads with the options of tus-js-client are whole, and refused ones are
// answered, over each version of HTTP.
func TestTusOptions(t *testing.T) {
	needsBrowser(t)
	library, folder := browserPackage(t, "tus-js-client"), t.TempDir()
	site.PutFile(t, filepath.Join(folder, "index.html"),
		"<!doctype html><html lang=en><title>Test</title><link rel=icon href=data:,><h1>Test</h1><script src=/tus/tus.min.js></script>")
	s := site.StartConfig(t, site.Config{TLS: true, Media: site.Basic, Site: `media
		handle_path /tus/* {
			root ` + library + `
			file_server
		}
		root ` + folder + `
		file_server
	`})
	// A browser accepts no unknown authority over HTTP/3, but the key of a certificate.
	block, _ := pem.Decode(s.Certificate(t))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for protocol, flags := range map[string][]string{
		"http/1.1": {"--disable-http2", "--disable-quic"},
		"h2":       {"--disable-quic"},
		"h3":       {"--enable-quic", "--host-resolver-rules=MAP localhost 127.0.0.1", "--origin-to-force-quic-on=" + address.Host},
	} {
		t.Run(protocol, func(t *testing.T) {
			browse(t, "tusoptions", facts{
				Panel: s.URL + "/",
				Flags: append(flags, "--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(key[:])),
				More:  map[string]any{"protocol": protocol, "token": s.Token(t, site.APIKey)},
			})
		})
	}
}

// TestClientUppy: the documented page uploads in a browser, with a ticket from the documented
// program, and stores what its form saves.
func TestClientUppy(t *testing.T) {
	needsBrowser(t)
	uppy := browserPackage(t, "uppy")
	page := filepath.Join(pages.Root(t), "caddymedia", "docs", "clients")
	var tickets atomic.Value // the address of the program
	var locked atomic.Bool
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/lock-out":
			locked.Store(true)
		case locked.Load():
			w.WriteHeader(http.StatusForbidden)
		default:
			(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: "http", Host: tickets.Load().(string)})
				r.Out.Header.Set("Remote-User", "anna")
			}}).ServeHTTP(w, r)
		}
	}))
	t.Cleanup(own.Close)
	s := site.Start(t, site.Basic, `media
		handle_path /uppy/* {
			root `+uppy+`
			file_server
		}
		@own path /media-ticket /save /lock-out
		reverse_proxy @own `+own.URL+`
		root `+page+`
		file_server
	`)
	tickets.Store(ticketserver.Node(t, append(os.Environ(), "MEDIA_SERVER="+s.URL, "MEDIA_API_KEY="+site.APIKey, "MEDIA_PASSWORD="+site.Password)))
	browse(t, "uppy", facts{
		Panel: s.URL + "/uppy.html",
		More: map[string]any{
			"lockOut": s.URL + "/lock-out",
			"good":    map[string]string{"name": "Test Photo.jpg", "content": encoded(sample.JPEG(t, 40, 30))},
			"bad": map[string]string{
				"name": "disguise.jpg", "content": encoded(sample.PNG(t, 40, 30)), "message": "content is PNG, the name says .jpg",
			},
		},
	})
	want := make([]string, 12)
	for n := range want {
		want[n] = fmt.Sprintf("photo-%d.jpg", n)
	}
	wantItems(t, s.Root, want...)
}

// heldTicket returns a ticket for images that wait to be kept.
func heldTicket(t *testing.T, s *site.Site) string {
	t.Helper()
	form := url.Values{"kind": {"image"}, "max_files": {"10"}, "hold": {"3600"}}.Encode()
	header := site.Merged(s.Credentials(t), site.Headers("Content-Type", "application/x-www-form-urlencoded"))
	var answer struct{ Ticket string }
	if err := json.Unmarshal([]byte(s.Do(t, http.MethodPost, "/api/auth/ticket", header, form).Body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Ticket
}

// TestEditors: each example for an editor or widget stores an image, and shows why another one is
// refused.
func TestEditors(t *testing.T) {
	needsBrowser(t)
	for name, packages := range map[string]map[string]string{ // the folders of npm packages, by their addresses
		"CKEditor 5": {"/ckeditor5/": "ckeditor5/dist/browser"},
		"TinyMCE":    {"/tinymce/": "tinymce"},
		"Editor.js":  {"/editorjs/": "@editorjs/editorjs/dist", "/editorjs-image/": "@editorjs/image/dist"},
		"Dropzone":   {"/dropzone/": "dropzone/dist"},
	} {
		t.Run(name, func(t *testing.T) {
			example, clients := "", filepath.Join(pages.Root(t), "caddymedia", "docs", "clients")
			block := "media\n"
			for address, folder := range packages {
				folder = filepath.Join(os.Getenv(browserModules), "node_modules", folder)
				if _, err := os.Stat(folder); err != nil {
					site.Skip(t, "%s is not installed: %v", name, err)
				}
				block += "handle_path " + address + "* {\nroot " + folder + "\nfile_server\n}\n"
				example = pages.Example(t, "editors.md", "html", `"`+address)
			}
			page := t.TempDir()
			site.PutFile(t, filepath.Join(page, "index.html"), "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"+
				"<link rel=\"icon\" href=\"data:,\">\n<title>A page</title>\n<h1>A page</h1>\n"+example)
			site.PutFile(t, filepath.Join(page, "media-upload.js"), string(site.ReadFile(t, filepath.Join(clients, "media-upload.js"))))
			var tickets atomic.Value // by whether their uploads are held
			own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("kind") == "image" {
					fmt.Fprintf(w, `{"ticket":%q}`, tickets.Load().(map[bool]string)[r.FormValue("editor") == ""])
				}
			}))
			t.Cleanup(own.Close)
			s := site.Start(t, site.Account+site.LocalDefault+pages.Example(t, "editors.md", "caddyfile", "image_alias"),
				block+"reverse_proxy /media-ticket "+own.URL+"\nroot "+page+"\nfile_server\n")
			tickets.Store(map[bool]string{false: s.Token(t, site.APIKey), true: heldTicket(t, s)})
			browse(t, "editors", facts{
				Panel: s.URL + "/",
				More: map[string]any{
					"token": s.Token(t, site.APIKey),
					"name":  name,
					"good":  map[string]string{"name": "photo.jpg", "content": encoded(sample.JPEG(t, 40, 30))},
					"bad":   map[string]string{"name": "photo.jpg", "content": encoded(sample.JPEG(t, 40, 30)[:300]), "message": "damaged"},
				},
			})
		})
	}
}

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

// encoded returns a content for a script.
func encoded(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }

// TestHeldForms: of the files on a documented page, those whose form is saved are stored. A removed
// one and those of a page that is left are not. After a reload FilePond still has its files.
func TestHeldForms(t *testing.T) {
	needsBrowser(t)
	for page, servers := range map[string]func(*testing.T, []string) string{
		"filepond.html": ticketserver.Node, "othersite.html": ticketserver.PHP,
	} {
		t.Run(page, func(t *testing.T) {
			s := startShop(t, page, servers)
			photos := map[string]string{}
			for i, name := range []string{"a.jpg", "b.jpg", "c.jpg", "abandoned.jpg"} {
				photos[name] = encoded(sample.JPEG(t, 100+10*i, 80))
			}
			s.browse(t, "held", facts{More: map[string]any{
				"page": page, "photos": photos,
				"bad": map[string]string{
					"name": "disguise.jpg", "content": encoded(sample.PNG(t, 40, 30)), "message": "content is PNG, the name says .jpg",
				},
			}})
			want := []string{"a.jpg", "c.jpg"}
			if page == "othersite.html" { // which has no button to remove a file
				want = append(want, "b.jpg")
			}
			wantItems(t, s.Root, want...)
		})
	}
}

// wantItems checks that the items in a storage have these names, in any folder. Unfinished uploads
// are no items.
func wantItems(t *testing.T, root string, want ...string) {
	t.Helper()
	var names []string
	for _, kind := range []string{"img", "file"} {
		for _, path := range site.FilesBelow(t, filepath.Join(root, kind)) {
			names = append(names, filepath.Base(path))
		}
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the items are %q, want %q", names, want)
	}
}
