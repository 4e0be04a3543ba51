// Command way counts the functions of this module that requests pass, their statements and files.
// It serves them with net/http, from a local folder and with tokens in memory, and writes a line
// for each request: its name, functions, statements and files. Image formats and names of items are
// left out, because their code depends on the image. It is run in the root of the module, whose
// source it reads.
//
//	go build -cover -covermode=atomic -coverpkg=github.com/caddymedia/media/... ./caddymedia/integration/way
//	way [-files]
//
// With -files it also writes the path of each file, its functions, and its statements that were
// executed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/local"
)

const (
	module   = "github.com/caddymedia/media/"
	password = "correct horse"
	secret   = "0123456789abcdef0123456789abcdef"
)

// leftOut are the packages whose code depends on the image.
var leftOut = []string{"caddymedia/internal/leaf/imaging/", "caddymedia/internal/leaf/naming/", "caddymedia/integration/"}

func main() {
	listed := flag.Bool("files", false, "also write the path of each file, its functions and its statements")
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
	serve := func(handler http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
			c.served <- struct{}{}
		}))
	}
	server := serve(mediahttp.New(service, mediahttp.Options{}))
	defer server.Close()
	s3 := serve(mediahttp.NewS3(service, mediahttp.Options{}, mediahttp.S3Options{}))
	defer s3.Close()
	c.address, c.s3 = server.URL, s3.URL
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
		{"PUT", c.put},
		{"list", c.list},
		{"S3-PUT", c.s3Put},
		{"S3-completion", c.s3Completion},
	} {
		var least map[string]passed
		for n, item := range []string{"first", "second", "third", "fourth"} {
			send, err := m.prepare(item)
			if err == nil {
				err = c.measure(filepath.Join(dir, m.name), send)
			}
			var files map[string]passed
			if err == nil {
				files, err = executed(filepath.Join(dir, m.name))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			// What only the first request needs, or one that has met another goroutine, is not counted.
			if n == 1 || n > 1 && sum(files).statements < sum(least).statements {
				least = files
			}
		}
		write(m.name, least, listed)
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
		FileAliases:  map[string]*media.FileAlias{"docs": {}},
		Accounts: map[string]*media.Account{
			"site": {PasswordHash: password, S3Secret: secret, May: []string{"upload", "replace", "list", "delete"}},
		},
		Comparer: tokens.CompareFunc(func(hashed, password []byte) (bool, error) { return bytes.Equal(hashed, password), nil }),
		FakeHash: []byte("of another password"),
		Tokens:   tokenmemory.New(nil),
	})
}

// request is a request and the status of its answer.
type request struct {
	method, path string
	header       map[string]string
	body         []byte
	status       int
	isS3         bool // it is signed
}

// client sends requests one after the other.
type client struct {
	address, s3, token string
	served             chan struct{} // receives when the handler has returned
}

// send sends a request, and returns the header and body of the answer after the handler has
// returned.
func (c *client) send(send request) (http.Header, []byte, error) {
	address := c.address
	if send.isS3 {
		address = c.s3
	}
	r, err := http.NewRequest(send.method, address+send.path, bytes.NewReader(send.body)) //nolint:noctx // the program ends with it
	if err != nil {
		return nil, nil, err
	}
	for name, value := range send.header {
		r.Header.Set(name, value)
	}
	if send.isS3 {
		err = sign(r, send.body)
	} else if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if err != nil {
		return nil, nil, err
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

// sign signs a request as S3 clients do.
func sign(r *http.Request, body []byte) error {
	sum := sha256.Sum256(body)
	payload := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", payload)
	credentials := aws.Credentials{AccessKeyID: "site", SecretAccessKey: secret}
	return v4.NewSigner().SignHTTP(context.Background(), credentials, r, payload, "s3", "us-east-1", time.Now()) //nolint:forbidigo // a client
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
	_, answer, err := c.send(request{http.MethodPost, "/api/auth/generateToken", map[string]string{"Content-Type": form}, []byte(body), http.StatusOK, false})
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
	return request{http.MethodPost, "/api/upload/image", header, body.Bytes(), http.StatusOK, false}, err
}

// lastPatch returns the second of two requests with the bytes of a resumable upload.
func (c *client) lastPatch(item string) (request, error) {
	data := picture()
	half := len(data) / 2
	header := map[string]string{
		"Tus-Resumable": "1.0.0", "Upload-Length": strconv.Itoa(len(data)),
		"Upload-Metadata": "filename " + base64.StdEncoding.EncodeToString([]byte("resumed-"+item+".png")),
	}
	created, _, err := c.send(request{http.MethodPost, "/api/upload/image/resumable", header, nil, http.StatusCreated, false})
	if err != nil {
		return request{}, err
	}
	patch := func(offset int, data []byte) request {
		header := map[string]string{
			"Tus-Resumable": "1.0.0", "Upload-Offset": strconv.Itoa(offset), "Content-Type": "application/offset+octet-stream",
		}
		return request{http.MethodPatch, created.Get("Location"), header, data, http.StatusNoContent, false}
	}
	_, _, err = c.send(patch(0, data[:half]))
	return patch(half, data[half:]), err
}

// variant returns a GET of a variant of an image that the forms have stored.
func (c *client) variant(item string) (request, error) {
	return request{http.MethodGet, "/static/img/content/" + item + ".png.webp", nil, nil, http.StatusOK, false}, nil
}

// deleteSet returns a deletion of a set with one of the images that the forms have stored.
func (c *client) deleteSet(item string) (request, error) {
	body := url.Values{"action": {"delete"}, "filename": {item + ".png"}}.Encode()
	header := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	return request{http.MethodPost, "/api/items/image/content", header, []byte(body), http.StatusOK, false}, nil
}

// document is a file.
var document = []byte("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n")

// put returns an upload of one file by its address.
func (c *client) put(item string) (request, error) {
	return request{http.MethodPut, "/api/upload/file/docs/" + item + ".pdf", nil, document, http.StatusCreated, false}, nil
}

// list returns a list of the files that were put.
func (c *client) list(string) (request, error) {
	return request{http.MethodGet, "/api/items/file/docs", nil, nil, http.StatusOK, false}, nil
}

// s3Put returns an upload of one file by an S3 client.
func (c *client) s3Put(item string) (request, error) {
	return request{http.MethodPut, "/file-docs/s3-" + item + ".pdf", nil, document, http.StatusOK, true}, nil
}

// s3Completion returns the completion of a multipart upload with two parts.
func (c *client) s3Completion(item string) (request, error) {
	path := "/file-docs/parts-" + item + ".pdf"
	_, begun, err := c.send(request{http.MethodPost, path + "?uploads=", nil, nil, http.StatusOK, true})
	if err != nil {
		return request{}, err
	}
	_, id, _ := strings.Cut(string(begun), "<UploadId>")
	id, _, _ = strings.Cut(id, "<")
	var parts strings.Builder
	first := append(slices.Clone(document), make([]byte, 5<<20)...) // smaller ones are the last
	for i, part := range [][]byte{first, document} {
		address := fmt.Sprintf("%s?partNumber=%d&uploadId=%s", path, i+1, id)
		stored, _, err := c.send(request{http.MethodPut, address, nil, part, http.StatusOK, true})
		if err != nil {
			return request{}, err
		}
		fmt.Fprintf(&parts, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, stored.Get("ETag"))
	}
	body := "<CompleteMultipartUpload>" + parts.String() + "</CompleteMultipartUpload>"
	return request{http.MethodPost, path + "?uploadId=" + id, nil, []byte(body), http.StatusOK, true}, nil
}

// picture returns an image.
func picture() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 64, 48))) // b takes all
	return b.Bytes()
}

// passed is the code of a file that was executed.
type passed struct {
	functions, statements int
}

// executed returns the code of each file that was executed, from the counters in a folder.
func executed(dir string) (map[string]passed, error) {
	profile := filepath.Join(dir, "profile")
	output, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile).CombinedOutput() //nolint:gosec,noctx // of this program
	if err != nil {
		return nil, fmt.Errorf("reading the counters: %w: %s", err, output)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	files := map[string]passed{}
	begun := map[string][]int{} // lines of executed statements
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() { // <file>:<line>.<column>,<line>.<column> <statements> <executions>
		file, block, found := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(block)
		if !found || len(fields) != 3 || fields[2] == "0" {
			continue
		}
		file = strings.TrimPrefix(file, module)
		if slices.ContainsFunc(leftOut, func(prefix string) bool { return strings.HasPrefix(file, prefix) }) {
			continue
		}
		at, _, _ := strings.Cut(fields[0], ".")
		line, err := strconv.Atoi(at)
		number, failed := strconv.Atoi(fields[1])
		if err := errors.Join(err, failed); err != nil {
			return nil, fmt.Errorf("reading the counters: %w", err)
		}
		code := files[file]
		code.statements += number
		files[file], begun[file] = code, append(begun[file], line)
	}
	for file, code := range files {
		if code.functions, err = functionsAt(file, begun[file]); err != nil {
			return nil, err
		}
		files[file] = code
	}
	return files, nil
}

// functionsAt returns how many declared functions of a file contain one of the lines.
func functionsAt(file string, lines []int) (number int, err error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	for _, declared := range parsed.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok {
			from, to := set.Position(function.Pos()).Line, set.Position(function.End()).Line
			if slices.ContainsFunc(lines, func(line int) bool { return line >= from && line <= to }) {
				number++
			}
		}
	}
	return number, nil
}

func sum(files map[string]passed) (all passed) {
	for _, code := range files {
		all.functions += code.functions
		all.statements += code.statements
	}
	return all
}

// write writes the line of a request, and those of its files.
func write(name string, files map[string]passed, listed bool) {
	all := sum(files)
	fmt.Fprintf(os.Stdout, "%s\t%d\t%d\t%d\n", name, all.functions, all.statements, len(files))
	if !listed {
		return
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(os.Stdout, "\t%s\t%d\t%d\n", file, files[file].functions, files[file].statements)
	}
}
