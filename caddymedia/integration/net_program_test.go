package integration

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestNetProgram builds the program in netprogram as another module, and checks that it serves the
// HTTP contract with net/http alone.
func TestNetProgram(t *testing.T) {
	t.Parallel()
	program := buildNetProgram(t)
	s := &site{address: servers.FreeAddress(t), client: new(http.Client)}
	s.url = "http://" + s.address
	cmd := exec.Command(program, s.address)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		cmd.Process.Kill()
		cmd.Wait()
	})
	eventually(t, "the program answers", func() bool {
		r, err := s.client.Get(s.url + "/static/img/content/none.png")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusNotFound
	})

	if r := s.login(t, apiKey, "wrong"); r.status != http.StatusUnauthorized {
		t.Errorf("a wrong password: status %d", r.status)
	}
	picture := drawnJPEG(64, 48)
	image := s.uploadImage(t, file("photo.jpg", picture)).one(t)
	if r := s.fetch(t, image.FullPath); r.status != http.StatusOK || r.body != picture {
		t.Errorf("the picture: status %d, %d bytes, want %d", r.status, len(r.body), len(picture))
	}
	if r := s.fetch(t, image.WebP); r.status != http.StatusOK || r.header.Get("Content-Type") != "image/webp" {
		t.Errorf("the variant: status %d, %s", r.status, r.header.Get("Content-Type"))
	}
	document := s.uploadFile(t, file("cv.pdf", pdfDocument)).one(t)
	if r := s.fetch(t, document.FullPath); r.status != http.StatusOK || r.body != pdfDocument {
		t.Errorf("the file: status %d, body %.40q", r.status, r.body)
	}
	refused := s.uploadImage(t, file("photo.png", picture)).failures(t, http.StatusUnsupportedMediaType)
	if len(refused) != 1 || refused[0].Filename != "photo.png" {
		t.Errorf("a JPEG called PNG: %+v", refused)
	}
	if r := s.do(t, http.MethodDelete, "/images/"+image.Filename, nil, ""); r.status != http.StatusOK {
		t.Errorf("deleting the picture: status %d, %s", r.status, r.body)
	}
	for _, address := range []string{image.FullPath, image.WebP} {
		if r := s.fetch(t, address); r.status != http.StatusNotFound {
			t.Errorf("%s after it was deleted: status %d", address, r.status)
		}
	}
}

// buildNetProgram builds the program in a new folder. Its go.mod requires the same versions as this
// module, so nothing is downloaded.
func buildNetProgram(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "netprogram")
	cmd := exec.Command("sh", "-ec", strings.ReplaceAll(`
cp -r caddymedia/integration/netprogram FOLDER
cp go.mod go.sum FOLDER
checkout=$PWD
cd FOLDER
go mod edit -module example.com/netprogram \
	-require github.com/caddymedia/media@v0.0.0 -replace github.com/caddymedia/media="$checkout"
go build
! go list -deps | grep github.com/caddyserver/`, "FOLDER", folder))
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return filepath.Join(folder, "netprogram")
}

// TestWithoutCaddy lists the packages that a program can use without linking Caddy.
func TestWithoutCaddy(t *testing.T) {
	t.Parallel()
	const caddymedia = "github.com/caddymedia/media/caddymedia/"
	for _, name := range []string{
		caddymedia + "media", caddymedia + "mediahttp", caddymedia + "ingest", caddymedia + "fetch",
		caddymedia + "httpjson", caddymedia + "imaging/...", caddymedia + "internal/...",
		caddymedia + "naming", caddymedia + "redact", caddymedia + "tokens", caddymedia + "tokens/memory",
		"github.com/caddymedia/media/storagedrivers", "github.com/caddymedia/media/storagedrivers/memory",
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
