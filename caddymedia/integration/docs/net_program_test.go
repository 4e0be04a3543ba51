package docs_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestNetProgram builds the program in netprogram as another module, and checks that it serves the
// HTTP contract with net/http alone.
func TestNetProgram(t *testing.T) {
	t.Parallel()
	program := buildNetProgram(t)
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

// netConfig writes the configuration of the program: a bucket, a host and a file for tokens. It returns
// the path.
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

// buildNetProgram builds the program in a new folder. Its go.mod requires the same versions as this
// module, so nothing is downloaded.
func buildNetProgram(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "netprogram")
	cmd := exec.Command(servers.Program(t, "sh"), "-ec", strings.ReplaceAll(`
cp -r caddymedia/integration/netprogram FOLDER
cp go.mod go.sum FOLDER
checkout=$PWD
cd FOLDER
go mod edit -module example.com/netprogram \
	-require github.com/caddymedia/media@v0.0.0 -replace github.com/caddymedia/media="$checkout"
go build
! go list -deps | grep github.com/caddyserver/`, "FOLDER", folder))
	cmd.Dir = "../../.."
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
