package docs_test

import (
	"bytes"
	"encoding/json"
	"go/format"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestGoProgram builds the program in goprogram as another module. The program stores a remote
// image and a file of a form.
func TestGoProgram(t *testing.T) { // not parallel: the variable that names the Caddy is the process's
	temp := t.TempDir()
	c, address := site.NewChild(t, "TMPDIR="+temp), servers.FreeAddress(t)
	program := buildProgram(t, "people", strings.ReplaceAll(pages.Example(t, "go.md", "sh", "cp -r "), "/srv/people", "FOLDER"))
	t.Setenv("MEDIA_TEST_CADDY", program)
	wantDocsConfig(t, program)
	img := sample.PhotoJPEG(64, 48)
	var asked atomic.Int64
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, img)
	}))
	defer remote.Close()
	_, port, err := net.SplitHostPort(remote.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	c.Sites = "http://" + address + " {\n\tpeople\n}\n"
	media := "tokens memory\n" + site.AtRoot + "}\nimage_alias people {\nwebp\n}\nfile_alias documents {\ncdn_base https://cdn.example.com\n}\n"
	const network = "allow 10.0.0.0/8"
	downloads, ports := pages.Example(t, "go.md", "caddyfile", "downloads {"), "\n\tports 80 443 "+port
	c.Start(media + strings.Replace(downloads, network, network+ports, 1))
	from := url.Values{"from": {remote.URL + "/photos/My%20Portrait?size=large"}}.Encode()
	portrait := func() string { return post(t, address, "/portrait", "application/x-www-form-urlencoded", from) }
	// Caddy accepts connections before the configuration is the active one, which Go code asks for.
	site.Eventually(t, "the configuration is active", func() bool { return portrait() != "" })
	wantAnswer(t, portrait(), `{"success":false,"message":"the address may not be fetched"}`)
	if asked.Load() != 0 {
		t.Error("a non-public server got a request, without permission")
	}

	c.MustLoad(media + strings.Replace(downloads, network, "allow 127.0.0.0/8"+ports, 1))
	wantAnswer(t, portrait(), `{"success":true,"full_path":"/static/img/people/portraits/my-portrait.jpg",`+
		`"filename":"portraits/my-portrait.jpg","webp":"/static/img/people/portraits/my-portrait.jpg.webp"}`)
	wantFile(t, filepath.Join(c.Root, "img/people/portraits/my-portrait.jpg"), img)
	if _, err := os.Stat(filepath.Join(c.Root, "img/people/portraits/my-portrait.jpg.webp")); err != nil {
		t.Error(err)
	}

	body, contentType := cvForm(t, sample.PDF)
	const name = "cv.pdf"
	wantAnswer(t, post(t, address, "/cv", contentType, body),
		`{"success":true,"full_path":"https://cdn.example.com/static/file/documents/`+name+`","filename":"`+name+`"}`)
	wantFile(t, filepath.Join(c.Root, "file/documents", name), sample.PDF)
	wantAnswer(t, post(t, address, "/cv", "text/plain", body),
		`{"success":false,"message":"the request is no form of the type multipart/form-data"}`)

	large := sample.PDF + strings.Repeat("\n", 3<<20)
	body, contentType = cvForm(t, large)
	if answer := post(t, address, "/cv", contentType, body); !strings.Contains(answer, `{"success":true`) {
		t.Error(answer)
	}
	site.Eventually(t, "the temporary files of the form are gone", func() bool {
		names, err := os.ReadDir(temp)
		return err == nil && len(names) == 0
	})
}

// TestDocsGo: the documentation contains the core of the program.
func TestDocsGo(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("../goprogram/main.go")
	if err != nil {
		t.Fatal(err)
	}
	block := pages.Example(t, "go.md", "go", "mediaapp.Acquire()")
	unindented := strings.ReplaceAll(string(program), "\n\t", "\n")
	if !strings.Contains(unindented, block) {
		t.Errorf("the program lacks\n%s", block)
	}
}

// TestDocsDriverRecipe follows the first two steps to a driver, in another module: the code is
// formatted, has no name of the driver that it comes from, and passes the conformance suite.
func TestDocsDriverRecipe(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	t.Parallel()
	const page = ".github/CONTRIBUTING.md"
	steps := pages.Example(t, page, "sh", "mkdir storagedrivers/example\n")
	make, check, found := strings.Cut(strings.ReplaceAll(steps, "./storagedrivers/example", "."), "go fmt")
	if !found {
		t.Fatalf("the steps are other ones:\n%s", steps)
	}
	root := pages.Root(t)
	folder := filepath.Join(t.TempDir(), "example")
	cmd := exec.Command(servers.Program(t, "sh"), "-ec", strings.ReplaceAll(make, "storagedrivers/example", folder)+`
		cp go.mod go.sum "$1" && cd "$1"
		go mod edit -module example.com/example -require github.com/caddymedia/media@v0.0.0 -replace github.com/caddymedia/media="$OLDPWD"
		printf %s "$2" >example_test.go
		go fmt`+check+"go test .", "sh", folder, pages.Example(t, page, "go", "func TestConformance"))
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code := site.ReadFile(t, filepath.Join(folder, "driver.go"))
	if formatted, err := format.Source(code); err != nil || !bytes.Equal(formatted, code) || regexp.MustCompile("(?i)shel[f]|guest").Match(code) {
		t.Errorf("error %v, and the driver is\n%s", err, code)
	}
}

// buildProgram builds a program of this folder as another module, with commands in which FOLDER is
// a new folder. Its go.mod requires the same versions as this module, so nothing is downloaded.
func buildProgram(t *testing.T, name, commands string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	cmd := exec.Command(servers.Program(t, "sh"), "-ec", strings.ReplaceAll(commands, "FOLDER", folder))
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return filepath.Join(folder, name)
}

// wantDocsConfig validates the documented Caddyfile with the program.
func wantDocsConfig(t *testing.T, program string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(pages.Example(t, "go.md", "caddyfile", "file_alias documents")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "validate", "--config", config)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the documented configuration: %v\n%s", err, out)
	}
}

func cvForm(t *testing.T, cv string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("cv", "CV.pdf")
	if err == nil {
		_, err = io.WriteString(part, cv)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func post(t *testing.T, address, path, contentType, body string) string {
	t.Helper()
	r, err := site.Retry(func() (*http.Response, error) {
		r, err := site.AdminClient.Post("http://"+address+path, contentType, strings.NewReader(body))
		if err != nil {
			err = site.UnansweredError{Err: err}
		}
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(answer))
}

func wantAnswer(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the answer is\n%s, want\n%s", got, want)
	}
}

func wantFile(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s holds %.40q, %v, want %.40q", name, got, err, want)
	}
}

// TestNetProgram builds the program in netprogram as another module, and checks that it serves the
// HTTP contract with net/http alone.
func TestNetProgram(t *testing.T) {
	t.Parallel()
	program := buildProgram(t, "netprogram", `
cp -r caddymedia/integration/netprogram FOLDER
cp go.mod go.sum FOLDER
checkout=$PWD
cd FOLDER
go mod edit -module example.com/netprogram \
	-require github.com/caddymedia/media@v0.0.0 -replace github.com/caddymedia/media="$checkout"
go build
! go list -deps | grep github.com/caddyserver/`)
	s := &site.Site{Address: servers.FreeAddress(t), Client: new(http.Client)}
	s.URL = "http://" + s.Address
	cmd := exec.Command(program, s.Address, netConfig(t))
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Client.CloseIdleConnections()
		cmd.Process.Kill()
		cmd.Wait()
	})
	site.Eventually(t, "the program answers", func() bool {
		r, err := s.Client.Get(s.URL + "/static/img/content/none.png")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusNotFound
	})

	if r := s.Login(t, site.APIKey, "wrong"); r.Status != http.StatusUnauthorized {
		t.Errorf("a wrong password: status %d", r.Status)
	}
	img := sample.PhotoJPEG(64, 48)
	image := s.UploadImage(t, site.File("photo.jpg", img)).One(t)
	if r := s.Fetch(t, image.FullPath); r.Status != http.StatusOK || r.Body != img {
		t.Errorf("the picture: status %d, %d bytes, want %d", r.Status, len(r.Body), len(img))
	}
	if r := s.Fetch(t, image.WebP); r.Status != http.StatusOK || r.Header.Get("Content-Type") != "image/webp" {
		t.Errorf("the variant: status %d, %s", r.Status, r.Header.Get("Content-Type"))
	}
	document := s.UploadFile(t, site.File("cv.pdf", sample.PDF)).One(t)
	if r := s.Fetch(t, document.FullPath); r.Status != http.StatusOK || r.Body != sample.PDF {
		t.Errorf("the file: status %d, body %.40q", r.Status, r.Body)
	}
	refused := s.UploadImage(t, site.File("photo.png", img)).Failures(t, http.StatusUnsupportedMediaType)
	if len(refused) != 1 || refused[0].Filename != "photo.png" {
		t.Errorf("a JPEG called PNG: %+v", refused)
	}
	if r := s.Do(t, http.MethodDelete, "/images/"+image.Filename, nil, ""); r.Status != http.StatusOK {
		t.Errorf("deleting the picture: status %d, %s", r.Status, r.Body)
	}
	for _, address := range []string{image.FullPath, image.WebP} {
		if r := s.Fetch(t, address); r.Status != http.StatusNotFound {
			t.Errorf("%s after it was deleted: status %d", address, r.Status)
		}
	}
}

// netConfig writes the configuration of the program: a bucket, a host and a file for tokens. It
// returns the path.
func netConfig(t *testing.T) string {
	t.Helper()
	bucket := site.StartS3(t)
	host := servers.OpenSSH(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "config.json")
	text, err := json.Marshal(map[string]map[string]any{
		"s3": {
			"bucket": bucket.Folder, "endpoint": "http://" + bucket.Address,
			"access_key_id":     strings.TrimPrefix(bucket.Env[0], "S3_ACCESS_KEY_ID="),
			"secret_access_key": strings.TrimPrefix(bucket.Env[1], "S3_SECRET_ACCESS_KEY="),
		},
		"sftp": {
			"address": host.Address, "user": host.User, "private_key": host.KeyFile, "host_key": []string{host.HostKey}, "root": host.Root,
		},
		"tokens": {"path": filepath.Join(folder, "tokens.db")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWithoutCaddy lists the packages that a program can use without linking Caddy.
func TestWithoutCaddy(t *testing.T) {
	t.Parallel()
	const caddymedia = "github.com/caddymedia/media/caddymedia/"
	for _, name := range []string{
		caddymedia + "media", caddymedia + "mediahttp", caddymedia + "tokens/...",
		"github.com/caddymedia/media/storagedrivers/...",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command("go", "list", "-deps", name).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), "github.com/caddyserver/"); n > 0 {
				t.Errorf("it needs %d packages of Caddy", n)
			}
		})
	}
}
