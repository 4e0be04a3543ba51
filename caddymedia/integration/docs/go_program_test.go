package docs_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	program := buildGoProgram(t)
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
	media := "tokens memory\n" + site.LocalDefault + "image_alias people {\nwebp\n}\nfile_alias documents {\ncdn_base https://cdn.example.com\n}\n"
	const network = "allow 10.0.0.0/8"
	downloads, ports := pages.Example(t, "go.md", "caddyfile", "downloads {"), "\n\tports 80 443 "+port
	c.Start(media + strings.Replace(downloads, network, network+ports, 1))
	from := url.Values{"from": {remote.URL + "/photos/My%20Portrait?size=large"}}.Encode()
	portrait := func() string { return post(t, address, "/portrait", "application/x-www-form-urlencoded", from) }
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

	site.AwaitOneDay()
	body, contentType := cvForm(t, sample.PDF)
	name := time.Now().Format("06-01/02") + "/cv.pdf"
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

// buildGoProgram builds the program with the documented commands, in a new folder. Its go.mod
// requires the same versions as this module, so nothing is downloaded.
func buildGoProgram(t *testing.T) string {
	t.Helper()
	commands := pages.Example(t, "go.md", "sh", "cp -r ")
	folder := filepath.Join(t.TempDir(), "people")
	cmd := exec.Command(servers.Program(t, "sh"), "-ec", strings.ReplaceAll(commands, "/srv/people", folder))
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return filepath.Join(folder, "people")
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
