package panel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/docs"
)

const (
	indexFile    = "index.html"
	appFile      = "app.js" // with all modules
	loginFile    = "login.html"
	strangerFile = "stranger.html" // for requests without a user
	versionMark  = "{{version}}"
	versionBytes = 8
	cacheForever = "private, max-age=31536000, immutable"
)

// contentTypes are the types of the files that are served, by extension.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// openFiles are the parts of the login page, which are served without a session.
var openFiles = []string{"style.css", "pages.css", "login.js", "icon.svg"}

// pages holds the files of the panel. Their addresses change with their contents.
type pages struct {
	version string
	index   []byte
	login   *template.Template
	files   map[string][]byte
}

// loginPage is the content of the login page after a failed login.
type loginPage struct{ User, Message string }

func newPages(files fs.FS) (*pages, error) {
	p := &pages{files: map[string][]byte{}}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		p.files[name] = content
		sum.Write([]byte(name + "\x00"))
		sum.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	index, ok := p.files[indexFile]
	if !ok {
		return nil, errors.New("there is no " + indexFile)
	}
	p.version = hex.EncodeToString(sum.Sum(nil)[:versionBytes])
	if p.files[appFile], err = bundle(p.files, appFile); err != nil {
		return nil, err
	}
	p.index = bytes.ReplaceAll(index, []byte(versionMark), []byte(p.version))
	p.login, err = template.New("").Funcs(template.FuncMap{"version": func() string { return p.version }}).Parse(string(p.files[loginFile]))
	return p, err
}

// serveLogin serves the login page.
func (p *pages) serveLogin(w http.ResponseWriter, r *http.Request, status int, content loginPage) {
	var page bytes.Buffer
	if err := p.login.Execute(&page, content); err != nil { // two texts, which fit
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page.Bytes()) // the client may be gone
	}
}

// serve serves the page at rest below base, or one of the documentation. It returns false if there
// is no such page.
func (p *pages) serve(w http.ResponseWriter, r *http.Request, base, rest string) bool {
	if rest == "" {
		http.Redirect(w, r, base+"/", http.StatusPermanentRedirect) //nolint:gosec // see [Panel.redirect]
		return true
	}
	if rest == "/" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.index))
		return true
	}
	if page, err := docs.Pages.ReadFile(rest[1:]); err == nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
		return true
	}
	name, ok := strings.CutPrefix(rest, "/assets/"+p.version+"/")
	contentType := contentTypes[path.Ext(name)]
	content, there := p.files[name]
	if !ok || !there || contentType == "" {
		return false
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", cacheForever)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	return true
}
