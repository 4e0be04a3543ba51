package docs_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// clientExamples are the programs in caddymedia/docs/clients. Each uploads the images in its
// arguments, and all of them use the service in the same way.
var clientExamples = []clientExample{
	{name: "curl", program: "sh", script: "upload.sh", needs: "curl"},
	{name: "PHP", program: "php", script: "upload.php"},
	{name: "Python", program: "python3", script: "upload.py"},
	{name: "JavaScript", program: "node", script: "upload.mjs"},
}

type clientExample struct {
	name    string
	program string // that runs the script
	script  string
	needs   string // another program
}

// TestDocsClients: the page links every program, and every program is tested.
func TestDocsClients(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(clientFolder(t), "*"))
	// and four pages, two servers, two clients, six programs for items and four that sign
	if err != nil || len(scripts) != len(clientExamples)+18 {
		t.Fatalf("clients are %v, %v", scripts, err)
	}
	for _, script := range scripts {
		if name := filepath.Base(script); !strings.Contains(pages.Text(t, "clients.md"), "](clients/"+name+")") {
			t.Errorf("clients.md does not link %s", name)
		}
	}
}

// clientFolder returns the folder of the programs.
func clientFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(pages.Root(t), "caddymedia", "docs", "clients")
}

// TestClients: each example stores images on a site, and prints why others are refused.
func TestClients(t *testing.T) {
	site.AwaitOneDay()
	s := site.Start(t, site.Basic, "media")
	img := sample.JPEG(t, 40, 30)
	for _, example := range clientExamples {
		t.Run(example.name, func(t *testing.T) {
			run := example.prepare(t, s.URL)
			t.Run("success", func(t *testing.T) {
				out, problems, code := run(site.Password, "Test \"Photo\"; 1, ěščř.JPG", img)
				if code != 0 { // Node 18 warns of fetch
					t.Fatalf("exit code %d: %s%s", code, out, problems)
				}
				wantStored(t, s, out, "escr", img)
			})
			t.Run("wrong password", func(t *testing.T) {
				out, problems, code := example.prepare(t, s.URL)("not this one", "a.jpg", img) // no token is stored
				if code != 1 || out != "" || !strings.Contains(problems, "wrong API key or password") || strings.Contains(problems, "not this one") {
					t.Errorf("exit code %d, output %q, problems %q", code, out, problems)
				}
			})
			t.Run("refused", func(t *testing.T) {
				out, problems, code := run(site.Password, "a.jpg", sample.PNG(t, 40, 30))
				if code != 1 || out != "" || !strings.Contains(problems, "content is PNG, the name says .jpg") {
					t.Errorf("exit code %d, output %q, problems %q", code, out, problems)
				}
			})
			t.Run("several", func(t *testing.T) {
				out, problems, code := run(site.Password, "one.jpg", img, "two.jpg", img)
				first, second, _ := strings.Cut(out, "\n")
				if code != 0 {
					t.Fatalf("exit code %d: %s", code, problems)
				}
				wantStored(t, s, first, "one", img)
				wantStored(t, s, second, "two", img)
				out, problems, code = run(site.Password, "fine.jpg", img, "bad.jpg", "no image")
				if code != 1 || out != "" || !strings.Contains(problems, "bad.jpg: ") || strings.Contains(problems, "fine.jpg") {
					t.Errorf("one refused: exit code %d, output %q, problems %q", code, out, problems)
				}
				out, problems, code = run(site.Password)
				if code != 1 || out != "" || !strings.Contains(problems, "no file") || strings.Contains(problems, ": no file") {
					t.Errorf("the whole request refused: exit code %d, output %q, problems %q", code, out, problems)
				}
			})
			t.Run("no such file", func(t *testing.T) {
				out, problems, code := run(site.Password, "there.jpg", img, "nope.jpg", missing)
				if code != 1 || out != "" || !strings.Contains(problems, "nope.jpg") {
					t.Errorf("exit code %d, output %q, problems %q", code, out, problems)
				}
			})
			t.Run("no password", func(t *testing.T) {
				out, problems, code := example.prepare(t, s.URL)("", "a.jpg", img)
				if code == 0 || out != "" || !strings.Contains(problems, "MEDIA_PASSWORD") || strings.Count(problems, "\n") > 1 {
					t.Errorf("exit code %d, output %q, problems %q", code, out, problems)
				}
			})
			t.Run("no service", func(t *testing.T) {
				server := servers.FreeAddress(t)
				_, port, _ := strings.Cut(server, ":")
				out, problems, code := example.prepare(t, "http://"+server)(site.Password, "a.jpg", img)
				if code != 1 || out != "" || !strings.Contains(problems, port) {
					t.Errorf("exit code %d, output %q, problems %q", code, out, problems)
				}
			})
		})
	}
}

// TestClientKeepsToken: the example in PHP logs in once, and again when its token has expired.
func TestClientKeepsToken(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	example := clientExamples[1]
	run := example.prepare(t, s.URL)
	kept := filepath.Join(os.Getenv("HOME"), ".media-token.json")
	upload := func(password string) []byte {
		t.Helper()
		if out, problems, code := run(password, "a.jpg", sample.JPEG(t, 40, 30)); code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, problems)
		}
		content, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	first := upload(site.Password)
	if stat, err := os.Stat(kept); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("mode of the token file: %v %v", stat.Mode(), err)
	}
	if again := upload("it needs none now"); !bytes.Equal(again, first) {
		t.Errorf("the token was not kept:\n%s\n%s", first, again)
	}
	for name, spoilt := range map[string]string{
		"ended":     `{"token":"` + strings.Repeat("A", 43) + `","expires_at":4000000000}`,
		"expired":   `{"token":"` + strings.Repeat("A", 43) + `","expires_at":1000000000}`,
		"cut short": string(first[:20]),
	} {
		if err := os.WriteFile(kept, []byte(spoilt), 0o600); err != nil {
			t.Fatal(err)
		}
		if renewed := upload(site.Password); strings.Contains(string(renewed), "AAAA") || bytes.Equal(renewed, first) {
			t.Errorf("%s: kept is %s", name, renewed)
		}
	}
}

// missing is the content of an image that does not exist.
const missing = "(missing)"

// prepare returns a function that runs the example with a password and images, given as names and
// contents in turn. The user's home is a folder of the test.
func (e clientExample) prepare(t *testing.T, server string) func(password string, images ...string) (out, problems string, code int) {
	t.Helper()
	program := servers.Program(t, e.program)
	if e.needs != "" {
		servers.Program(t, e.needs)
	}
	if e.program == "php" {
		if modules, err := exec.Command(program, "-m").Output(); err != nil || !strings.Contains(string(modules), "\ncurl\n") {
			site.Skip(t, "php has no curl extension")
		}
	}
	script := filepath.Join(clientFolder(t), e.script)
	t.Setenv("HOME", t.TempDir())
	return func(password string, images ...string) (string, string, int) {
		folder := t.TempDir()
		args := []string{script}
		for i := 0; i < len(images); i += 2 {
			if images[i+1] != missing {
				site.PutFile(t, filepath.Join(folder, images[i]), images[i+1])
			}
			args = append(args, filepath.Join(folder, images[i]))
		}
		var out, problems bytes.Buffer
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "MEDIA_SERVER="+server, "MEDIA_API_KEY="+site.APIKey, "MEDIA_PASSWORD="+password)
		cmd.Stdout, cmd.Stderr = &out, &problems
		err := cmd.Run()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatal(err)
		}
		return out.String(), problems.String(), cmd.ProcessState.ExitCode()
	}
}

// wantStored checks that an example prints full_path and filename of an image, and that it is
// stored.
func wantStored(t *testing.T, s *site.Site, output, name, content string) {
	t.Helper()
	filename := ""
	for word := range strings.FieldsFuncSeq(output, func(r rune) bool { return r == ' ' || r == '\n' || r == '"' }) {
		if strings.Contains(word, name) && !strings.Contains(word, ":") {
			filename = word
		}
	}
	address := s.URL + "/static/img/content/" + filename
	if filename == "" || !strings.Contains(output, address) {
		t.Fatalf("%q lacks filename and full_path", output)
	}
	if got := s.Fetch(t, address).Body; got != content {
		t.Errorf("%s is not the image that was sent", address)
	}
}
