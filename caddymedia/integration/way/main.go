// Command way counts the files of this module that requests pass. It serves them with net/http,
// from a local folder and with tokens in memory, and writes a line for each request: its name,
// files and statements. Image formats and names of items are left out, because their files depend
// on the image.
//
//	go build -cover -covermode=atomic -coverpkg=github.com/caddymedia/media/... ./caddymedia/integration/way
//	way [-files]
//
// With -files it also writes the path of each file, and its statements that were executed.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"log"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/local"
)

const (
	module   = "github.com/caddymedia/media/"
	password = "correct horse"
)

// leftOut are the packages whose files depend on the image.
var leftOut = []string{"caddymedia/internal/imaging/", "caddymedia/internal/naming/", "caddymedia/integration/"}

func main() {
	listed := flag.Bool("files", false, "also write the path of each file, and its statements")
	flag.Parse()
	dir, err := os.MkdirTemp("", "way")
	if err == nil {
		err = run(dir, *listed)
	}
	if failed := os.RemoveAll(dir); err == nil {
		err = failed
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run measures all requests with files in a folder.
func run(dir string, listed bool) error {
	c := &client{served: make(chan struct{}, 1)}
	service, err := newService(filepath.Join(dir, "media"))
	if err != nil {
		return err
	}
	defer service.Close()
	handler := mediahttp.New(service, mediahttp.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		c.served <- struct{}{}
	}))
	defer server.Close()
	c.address = server.URL
	if err := c.login(); err != nil {
		return err
	}
	for _, m := range []struct {
		name    string
		prepare func(item string) (request, error)
	}{
		{"form-upload", c.form},
		{"last-PATCH", c.lastPatch},
		{"GET-variant", c.variant},
		{"delete-set", c.deleteSet},
	} {
		for _, item := range []string{"first", "second"} { // what only the first request needs is not counted
			send, err := m.prepare(item)
			if err == nil {
				err = c.measure(filepath.Join(dir, m.name), send)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		statements, err := executed(filepath.Join(dir, m.name))
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		write(m.name, statements, listed)
	}
	return nil
}

// newService returns a service that is not started, so that only requests are counted.
func newService(root string) (*media.Service, error) {
	driver, err := (&local.Config{Root: root}).NewDriver(nil)
	if err != nil {
		return nil, err
	}
	return media.New(media.Config{
		Storages:     []media.Storage{{Name: "default", Driver: driver, SubFolderFormat: "/"}},
		ImageAliases: map[string]*media.ImageAlias{"content": {WebP: &media.WebP{}}},
		Accounts:     map[string]*media.Account{"site": {PasswordHash: password, May: []string{"upload", "delete"}}},
		Comparer:     tokens.CompareFunc(func(hashed, password []byte) (bool, error) { return bytes.Equal(hashed, password), nil }),
		FakeHash:     []byte("of another password"),
		Tokens:       tokenmemory.New(nil),
	})
}

// request is a request and the status of its answer.
type request struct {
	method, path string
	header       map[string]string
	body         []byte
	status       int
}

// client sends requests one after the other.
type client struct {
	address, token string
	served         chan struct{} // receives when the handler has returned
}

// send sends a request, and returns the header and body of the answer after the handler has
// returned.
func (c *client) send(send request) (http.Header, []byte, error) {
	r, err := http.NewRequest(send.method, c.address+send.path, bytes.NewReader(send.body)) //nolint:noctx // the program ends with it
	if err != nil {
		return nil, nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range send.header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	<-c.served
	if err == nil && answer.StatusCode != send.status {
		err = fmt.Errorf("%s %s: status %d: %s", send.method, send.path, answer.StatusCode, body)
	}
	return answer.Header, body, err
}

// measure sends a request, and writes the counters of the code that it has executed to a folder.
func (c *client) measure(dir string, send request) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if _, _, err := c.send(send); err != nil {
		return err
	}
	if err := coverage.WriteCountersDir(dir); err != nil {
		return err
	}
	return coverage.WriteMetaDir(dir)
}

// login sets the token.
func (c *client) login() error {
	const form = "application/x-www-form-urlencoded"
	body := url.Values{"api_key": {"site"}, "password": {password}}.Encode()
	_, answer, err := c.send(request{http.MethodPost, "/api/auth/generateToken", map[string]string{"Content-Type": form}, []byte(body), http.StatusOK})
	if err != nil {
		return err
	}
	var login struct {
		Token string `json:"token"`
	}
	err = json.Unmarshal(answer, &login)
	c.token = login.Token
	return err
}

// form returns an upload of an image with a form.
func (c *client) form(item string) (request, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("files[]", item+".png")
	if err == nil {
		_, err = part.Write(picture())
	}
	if err == nil {
		err = form.Close()
	}
	header := map[string]string{"Content-Type": form.FormDataContentType()}
	return request{http.MethodPost, "/api/upload/image", header, body.Bytes(), http.StatusOK}, err
}

// lastPatch returns the second of two requests with the bytes of a resumable upload.
func (c *client) lastPatch(item string) (request, error) {
	data := picture()
	half := len(data) / 2
	header := map[string]string{
		"Tus-Resumable": "1.0.0", "Upload-Length": strconv.Itoa(len(data)),
		"Upload-Metadata": "filename " + base64.StdEncoding.EncodeToString([]byte("resumed-"+item+".png")),
	}
	created, _, err := c.send(request{http.MethodPost, "/api/upload/image/resumable", header, nil, http.StatusCreated})
	if err != nil {
		return request{}, err
	}
	patch := func(offset int, data []byte) request {
		header := map[string]string{
			"Tus-Resumable": "1.0.0", "Upload-Offset": strconv.Itoa(offset), "Content-Type": "application/offset+octet-stream",
		}
		return request{http.MethodPatch, created.Get("Location"), header, data, http.StatusNoContent}
	}
	_, _, err = c.send(patch(0, data[:half]))
	return patch(half, data[half:]), err
}

// variant returns a GET of a variant of an image that the forms have stored.
func (c *client) variant(item string) (request, error) {
	return request{http.MethodGet, "/static/img/content/" + item + ".png.webp", nil, nil, http.StatusOK}, nil
}

// deleteSet returns a deletion of a set with one of the images that the forms have stored.
func (c *client) deleteSet(item string) (request, error) {
	body := url.Values{"action": {"delete"}, "filename": {item + ".png"}}.Encode()
	header := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	return request{http.MethodPost, "/api/items/image/content", header, []byte(body), http.StatusOK}, nil
}

// picture returns an image.
func picture() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 64, 48))) // b takes all
	return b.Bytes()
}

// executed returns the number of executed statements of each file, from the counters in a folder.
func executed(dir string) (map[string]int, error) {
	profile := filepath.Join(dir, "profile")
	output, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile).CombinedOutput() //nolint:gosec,noctx // of this program
	if err != nil {
		return nil, fmt.Errorf("reading the counters: %w: %s", err, output)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	statements := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() { // <file>:<from>,<to> <statements> <executions>
		file, block, found := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(block)
		if !found || len(fields) != 3 || fields[2] == "0" {
			continue
		}
		file = strings.TrimPrefix(file, module)
		if slices.ContainsFunc(leftOut, func(prefix string) bool { return strings.HasPrefix(file, prefix) }) {
			continue
		}
		number, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("reading the counters: %w", err)
		}
		statements[file] += number
	}
	return statements, nil
}

// write writes the line of a request, and those of its files.
func write(name string, statements map[string]int, listed bool) {
	sum := 0
	for _, number := range statements {
		sum += number
	}
	fmt.Fprintf(os.Stdout, "%s\t%d\t%d\n", name, len(statements), sum)
	if !listed {
		return
	}
	for _, file := range slices.Sorted(maps.Keys(statements)) {
		fmt.Fprintf(os.Stdout, "\t%s\t%d\n", file, statements[file])
	}
}
