package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/integration/ticketserver"
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
	// and five pages and a module, four servers, two clients, six programs for items and four that
	// sign
	if err != nil || len(scripts) != len(clientExamples)+22 {
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

// TestClientKeepsToken: the example in PHP logs in once, and again when its token has expired. It
// keeps a token for each server and account, which no other user of the system can read or plant.
func TestClientKeepsToken(t *testing.T) {
	const other = "blog"
	s := site.Start(t, site.Basic+"account "+other+" "+site.CheapHash+"\n", "media")
	folder := t.TempDir()
	run := func(account, password string) (problems string, code int) {
		t.Helper()
		image := filepath.Join(t.TempDir(), "a.jpg")
		site.PutFile(t, image, sample.JPEG(t, 40, 30))
		_, problems, code = program(t, "php", []string{"TMPDIR=" + folder, "MEDIA_SERVER=" + s.URL, "MEDIA_API_KEY=" + account, "MEDIA_PASSWORD=" + password},
			filepath.Join(clientFolder(t), "upload.php"), image)
		return problems, code
	}
	kept := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(folder, "media-tokens-*", "*.json"))
		if err != nil || len(names) == 0 {
			t.Fatalf("no token is kept: %v", err)
		}
		return names
	}
	upload := func(account, password string) {
		t.Helper()
		if problems, code := run(account, password); code != 0 {
			t.Errorf("exit code %d: %s", code, problems)
		}
	}
	upload(site.APIKey, site.Password)
	file := kept()[0]
	first := site.ReadFile(t, file)
	for name, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): os.ModeDir | 0o700} {
		if stat, err := os.Stat(name); err != nil || stat.Mode() != want {
			t.Errorf("mode of %s: %v %v", name, stat.Mode(), err)
		}
	}
	upload(site.APIKey, "it needs none now")
	if again := site.ReadFile(t, file); !bytes.Equal(again, first) {
		t.Errorf("the token was not kept:\n%s\n%s", first, again)
	}
	if problems, code := run(other, "not this one"); code != 1 || !strings.Contains(problems, "wrong API key or password") {
		t.Errorf("another account with a wrong password: exit code %d, %s", code, problems)
	}
	upload(other, site.Password)
	if names := kept(); len(names) != 2 {
		t.Errorf("the tokens of two accounts are %q", names)
	}
	for name, spoilt := range map[string]string{
		"ended":     `{"token":"` + strings.Repeat("A", 43) + `","expires_at":4000000000}`,
		"expired":   `{"token":"` + strings.Repeat("A", 43) + `","expires_at":1000000000}`,
		"cut short": string(first[:20]),
	} {
		site.PutFile(t, file, spoilt)
		var both sync.WaitGroup
		for range 2 { // processes renew it at once
			both.Go(func() { upload(site.APIKey, site.Password) })
		}
		both.Wait()
		if renewed := site.ReadFile(t, file); !json.Valid(renewed) || strings.Contains(string(renewed), "AAAA") || bytes.Equal(renewed, first) {
			t.Errorf("%s: kept is %s", name, renewed)
		}
	}
	if err := os.Chmod(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if problems, code := run(site.APIKey, site.Password); code != 1 || !strings.Contains(problems, "only this user can read") {
		t.Errorf("a folder that others can read: exit code %d, %s", code, problems)
	}
}

// missing is the content of an image that does not exist.
const missing = "(missing)"

// prepare returns a function that runs the example with a password and images, given as names and
// contents in turn. Temporary files are in a folder of the test.
func (e clientExample) prepare(t *testing.T, server string) func(password string, images ...string) (out, problems string, code int) {
	t.Helper()
	php := servers.Program(t, e.program)
	if e.needs != "" {
		servers.Program(t, e.needs)
	}
	if e.program == "php" {
		if modules, err := exec.Command(php, "-m").Output(); err != nil || !strings.Contains(string(modules), "\ncurl\n") {
			site.Skip(t, "php has no curl extension")
		}
	}
	script, temp := filepath.Join(clientFolder(t), e.script), t.TempDir()
	return func(password string, images ...string) (string, string, int) {
		folder := t.TempDir()
		args := []string{script}
		for i := 0; i < len(images); i += 2 {
			if images[i+1] != missing {
				site.PutFile(t, filepath.Join(folder, images[i]), images[i+1])
			}
			args = append(args, filepath.Join(folder, images[i]))
		}
		return program(t, e.program, []string{"TMPDIR=" + temp, "MEDIA_SERVER=" + server, "MEDIA_PASSWORD=" + password}, args...)
	}
}

// program runs a program of the documentation in the name of the account, with further variables.
func program(t *testing.T, name string, env []string, args ...string) (out, problems string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), servers.Program(t, name), args...)
	cmd.Env = append(append(os.Environ(), "MEDIA_API_KEY="+site.APIKey, "MEDIA_PASSWORD="+site.Password,
		"PYTHONDONTWRITEBYTECODE=1"), env...) // beside the programs
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
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

// itemSite runs a site whose account may do everything with items, which are in the root of the
// alias. It may import from a server that answers with content; its address is returned.
func itemSite(t *testing.T, content string) (s *site.Site, remote string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, content) }))
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return site.Start(t, "account "+site.APIKey+" "+site.CheapHash+" {\nmay upload list delete move copy replace import\n}\n"+
		"storage default {\ndriver local $ROOT\nsub_folder_format /\noverwrite_strategy overwrite\n}\nimage_alias content\n"+
		"downloads {\nallow 127.0.0.1\nports "+port+"\n}\n", "media"), server.URL
}

// TestItemExamples: each program lists, moves, copies, replaces, imports and deletes images, and
// says why something is refused.
func TestItemExamples(t *testing.T) {
	img, other := sample.JPEG(t, 40, 30), sample.JPEG(t, 30, 40)
	s, remote := itemSite(t, other)
	for name, script := range map[string]string{"sh": "items.sh", "php": "items.php", "python3": "items.py", "node": "items.mjs"} {
		t.Run(name, func(t *testing.T) {
			env := []string{"TMPDIR=" + t.TempDir(), "MEDIA_SERVER=" + s.URL}
			run := func(args ...string) (out, problems string, code int) {
				return program(t, name, env, append([]string{filepath.Join(clientFolder(t), script)}, args...)...)
			}
			// want runs a command, and checks the filenames that it prints with their addresses.
			want := func(args []string, filenames ...string) {
				t.Helper()
				want := ""
				for _, filename := range filenames {
					want += s.URL + "/static/img/content/" + filename + " " + filename + "\n"
				}
				if out, problems, code := run(args...); code != 0 || out != want {
					t.Fatalf("%q: exit code %d, output %q, want %q, problems %s", args, code, out, want, problems)
				}
			}
			refused := func(problem string, args ...string) {
				t.Helper()
				if out, problems, code := run(args...); code != 1 || out != "" || !strings.Contains(problems, problem) || strings.Contains(problems, "Traceback") {
					t.Errorf("%q: exit code %d, output %q, problems %q", args, code, out, problems)
				}
			}
			folder := t.TempDir()
			site.PutFile(t, filepath.Join(folder, "new.jpg"), other)
			names := make([]string, 0, 250) // three pages
			for i := range cap(names) {
				names = append(names, fmt.Sprintf("many/%03d.jpg", i))
				site.PutFile(t, filepath.Join(s.Root, "img/content", names[i]), img)
			}
			site.PutFile(t, filepath.Join(s.Root, "img/content/a.jpg"), img)

			want([]string{"list"}, "a.jpg")
			want([]string{"list", "many"}, names...)
			want([]string{"move", "a.jpg", "summer/b.jpg"}, "summer/b.jpg")
			want([]string{"copy", "summer/b.jpg", "c.jpg"}, "c.jpg")
			want([]string{"replace", "c.jpg", filepath.Join(folder, "new.jpg")}, "c.jpg")
			for name, content := range map[string]string{"c.jpg": other, "summer/b.jpg": img} {
				if s.Fetch(t, s.URL+"/static/img/content/"+name).Body != content {
					t.Errorf("%s has other content", name)
				}
			}
			want([]string{"import", remote + "/d.jpg"}, "d.jpg")
			want([]string{"list"}, "c.jpg", "d.jpg")
			want([]string{"delete", "c.jpg"})
			refused("there is no such item", "delete", "c.jpg")
			refused("there is no such item", "replace", "c.jpg", filepath.Join(folder, "new.jpg"))
			refused("d.jpg", "move", "d.jpg", "d.png") // whose content is JPEG
			refused("many/none.jpg: there is no such item", append([]string{"delete", "d.jpg", "many/none.jpg", "summer/b.jpg"}, names...)...)
			want([]string{"list"})
			want([]string{"list", "many"})
			for _, wrong := range [][]string{nil, {"lists"}, {"delete"}, {"move", "a.jpg"}, {"import"}} {
				refused("usage: "+name+" "+script+" list [folder]", wrong...)
			}
		})
	}
}

// surroundings are what PHP programs of the documentation need of the system that runs them, with a
// post that is deleted, whose images are in $filenames.
var surroundings = map[string]string{
	"wordpress.php": `<?php
		$filenames = array_slice($argv, 2);
		function add_action(string $hook, callable $callback): void { $GLOBALS['hooks'][$hook][] = $callback; }
		function get_post_meta(int $post, string $key): array {
			return [$post, $key] === [7, 'media_filename'] ? $GLOBALS['filenames'] : [];
		}
		require $argv[1];
		foreach ([7, 8] as $post) {
			foreach ($hooks['before_delete_post'] as $callback) { $callback($post, new stdClass); }
		}
		echo "deleted\n";`,
	"laravel.php": `<?php
		namespace Illuminate\Database\Eloquent {
			abstract class Model {
				private static array $deleting = [];
				public function __construct(public ?array $images) { static::booted(); }
				public static function deleting(callable $callback): void { self::$deleting = [$callback]; }
				public function delete(): void {
					foreach (self::$deleting as $callback) { $callback($this); }
					echo "deleted\n";
				}
			}
		}
		namespace {
			require dirname($argv[1]) . '/MediaClient.php'; // which Composer does
			require $argv[1];
			try {
				(new App\Models\Post(array_slice($argv, 2)))->delete();
			} catch (RuntimeException $e) {
				error_log($e->getMessage());
			}
		}`,
}

// counted returns the address of a proxy of a site, and a function that returns the requests since
// its last call.
func counted(t *testing.T, s *site.Site) (address string, taken func() []string) {
	t.Helper()
	backend, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var requests []string
	proxy := httputil.NewSingleHostReverseProxy(backend)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests = append(requests, r.Method+" "+r.URL.Path)
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { requests = nil }()
		return requests
	}
}

// TestPostExamples: the programs for WordPress and Laravel delete the 30 images of a post with one
// request. Without the service WordPress deletes the post, and Laravel keeps it; both log it.
func TestPostExamples(t *testing.T) {
	s, _ := itemSite(t, "")
	server, taken := counted(t, s)
	for name, php := range surroundings {
		t.Run(name, func(t *testing.T) {
			temp := "TMPDIR=" + t.TempDir()
			runner := filepath.Join(t.TempDir(), "run.php")
			site.PutFile(t, runner, php)
			args := append(make([]string, 0, 32), runner, filepath.Join(clientFolder(t), name))
			for i := range 30 {
				args = append(args, fmt.Sprintf("26-11/20/ěš č-%d.jpg", i))
				site.PutFile(t, filepath.Join(s.Root, "img/content", args[len(args)-1]), "an image")
			}
			site.PutFile(t, filepath.Join(s.Root, "img/content/26-11/20/other.jpg"), "an image")
			taken()
			out, problems, code := program(t, "php", []string{temp, "MEDIA_SERVER=" + server}, args...)
			if code != 0 || out != "deleted\n" || problems != "" {
				t.Errorf("exit code %d, output %q, problems %q", code, out, problems)
			}
			want := []string{"POST /api/auth/generateToken", "POST /api/items/image/content"}
			if requests := taken(); !slices.Equal(requests, want) {
				t.Errorf("requests %q, want %q", requests, want)
			}
			left, err := os.ReadDir(filepath.Join(s.Root, "img/content/26-11/20"))
			if err != nil || len(left) != 1 {
				t.Errorf("left are %v, %v", left, err)
			}
			_, problems, _ = program(t, "php", []string{temp, "MEDIA_SERVER=" + server}, args...)
			if strings.Count(problems, "there is no such item") != 30 {
				t.Errorf("again: problems %q", problems)
			}
			out, problems, _ = program(t, "php", []string{temp, "MEDIA_SERVER=http://" + servers.FreeAddress(t)}, args...)
			if out != map[string]string{"wordpress.php": "deleted\n"}[name] || problems == "" {
				t.Errorf("without the service: output %q, problems %q", out, problems)
			}
		})
	}
}

// signers are the programs in caddymedia/docs/clients that sign addresses, and what runs them.
var signers = map[string]string{"sign.php": "php", "sign.py": "python3", "sign.mjs": "node", "sign.sh": "sh"}

// signed runs a program that signs, and returns the query that it prints.
func signed(t *testing.T, script, key string, args ...string) string {
	t.Helper()
	if script == "sign.sh" {
		servers.Program(t, "openssl")
	}
	out, problems, code := program(t, signers[script], []string{"MEDIA_SIGNING_KEY=" + key}, append([]string{filepath.Join(clientFolder(t), script)}, args...)...)
	if code != 0 {
		t.Fatalf("%s %q: exit code %d, %s", script, args, code, problems)
	}
	return strings.TrimSuffix(out, "\n")
}

// TestSigners: each program signs the test vectors.
func TestSigners(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(pages.Root(t), "caddymedia", "docs", "signing.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Key, Kind, Alias, Scope, Name, Rendition, Download, Signature string
		Expires, Generation                                           int64
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	for script := range signers {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			for i, v := range vectors {
				query := signed(t, script, v.Key, v.Kind, v.Alias, v.Scope, v.Name, strconv.FormatInt(v.Expires, 10),
					v.Rendition, v.Download, strconv.FormatInt(v.Generation, 10))
				want := url.Values{"expires": {strconv.FormatInt(v.Expires, 10)}, "signature": {v.Signature}}
				if v.Scope == "folder" {
					want.Set("scope", v.Name)
				}
				if v.Download != "" {
					want.Set("download", v.Download)
				}
				if got, err := url.ParseQuery(query); err != nil || got.Encode() != want.Encode() {
					t.Fatalf("%d: got %s (%v), want %s", i, query, err, want.Encode())
				}
			}
		})
	}
}

// TestSignersAreAccepted: the service accepts the addresses that each program has signed offline.
func TestSignersAreAccepted(t *testing.T) {
	const key = "a signing key, which is shared with a site"
	s := site.Start(t, site.Basic+"signing_key \""+key+"\"\nfile_alias papers {\nprivate\n}\n", "media")
	const name = "ěš č+&.txt"
	address := s.URL + "/static/file/papers/" + url.PathEscape(name)
	expires := strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10)
	for script := range signers {
		t.Run(script, func(t *testing.T) {
			for query, want := range map[string]int{
				signed(t, script, key, "file", "papers", "filename", name, expires):                                http.StatusNotFound,
				signed(t, script, key, "file", "papers", "filename", name, expires, "", "a+b č.txt", "0"):          http.StatusNotFound,
				signed(t, script, key, "file", "papers", "folder", "/", expires):                                   http.StatusNotFound,
				signed(t, script, key, "file", "papers", "filename", name, expires, "", "", "1"):                   http.StatusForbidden,
				signed(t, script, strings.ToUpper(key), "file", "papers", "filename", name, expires):               http.StatusForbidden,
				strings.Replace(signed(t, script, key, "file", "papers", "filename", name, expires), "=", "=1", 1): http.StatusForbidden,
			} {
				if got := s.Get(t, strings.TrimPrefix(address, s.URL)+"?"+query); got.Status != want {
					t.Errorf("%s: status %d, want %d", query, got.Status, want)
				}
			}
		})
	}
}

// TestDocsSign: the commands of the pages print what the pages say, and addresses that are
// accepted.
func TestDocsSign(t *testing.T) {
	servers.Program(t, "php")
	servers.Program(t, "curl")
	s := site.Start(t, site.LocalDefault+"account "+site.APIKey+" "+site.CheapHash+" {\nmay sign\n}\nimage_alias photos {\nprivate\n}\n", "media")
	run := func(command string, env ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), servers.Program(t, "sh"), "-euc", command)
		cmd.Dir, cmd.Env = pages.Root(t), append(os.Environ(), env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(out)
	}
	const signing, http = "signing.md", "http-serving.md"
	query := strings.TrimSpace(run(pages.Example(t, signing, "sh", "MEDIA_SIGNING_KEY")))
	if !strings.Contains(pages.Text(t, signing), "photo.jpg?"+query+"\n") {
		t.Errorf("the page does not have %s", query)
	}
	var answer struct{ Result []struct{ URL string } }
	out := run(pages.Example(t, http, "sh", "$SERVER/api/sign"), "SERVER="+s.URL, "TOKEN="+s.Token(t, site.APIKey))
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Result) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	const missing = 404 // but not forbidden
	if got := s.Fetch(t, answer.Result[0].URL); got.Status != missing {
		t.Errorf("%s: status %d", answer.Result[0].URL, got.Status)
	}
}

// TestTicketServers: the documented programs answer logged-in users with tickets, renew a token
// that has ended, and hide the cause of a missing ticket.
func TestTicketServers(t *testing.T) {
	for name, start := range ticketserver.All {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, site.Basic, "media")
			env := append(os.Environ(), "MEDIA_SERVER="+s.URL, "MEDIA_API_KEY="+site.APIKey)
			address := "http://" + start(t, append(env, "MEDIA_PASSWORD="+site.Password))
			client, stranger := loggedIn(t, address), new(http.Client)

			status, answer := ask(t, stranger, http.MethodPost, address, "", "kind=file")
			if status != http.StatusForbidden || answer["message"] != "log in first" {
				t.Errorf("without a login: %d %v", status, answer)
			}
			if status, answer = ask(t, client, http.MethodGet, address, "anna", "kind=file"); status != http.StatusMethodNotAllowed {
				t.Errorf("GET: %d %v", status, answer)
			}
			for _, when := range []string{"at first", "with the token kept", "after the token has ended"} {
				if strings.HasPrefix(when, "after") {
					s.Load(t, site.Config{Media: site.Basic + "tokens bolt " + filepath.Join(t.TempDir(), "tokens.db") + "\n", Site: "media"}) // which has no tokens yet
				}
				status, answer = ask(t, client, http.MethodPost, address, "anna", "kind=file")
				ticket, _ := answer["ticket"].(string)
				expires, _ := answer["expires_at"].(float64)
				if status != http.StatusOK || len(ticket) < 40 || expires == 0 || len(answer) != 2 {
					t.Errorf("%s: %d %v", when, status, answer)
				}
				bearer := site.Headers("Authorization", "Bearer "+ticket)
				if r := s.Do(t, http.MethodPost, "/api/upload/file", site.Merged(bearer, site.FormType), site.Form(site.File("cv.pdf", sample.PDF))); r.Status != http.StatusAccepted {
					t.Errorf("%s: the ticket holds no file: %v", when, r)
				}
			}

			for form, n := range map[string]int{
				"kind=file&editor=1": 10, "kind=file&editor=1&max_files=12": 12, "kind=file&editor=1&max_files=-1": 1, "kind=file&editor=1&max_files=x": 1,
			} {
				_, answer = ask(t, client, http.MethodPost, address, "anna", form)
				bearer := site.Headers("Authorization", fmt.Sprint("Bearer ", answer["ticket"]))
				for _, try := range []struct{ files, status int }{{n + 1, http.StatusForbidden}, {n, http.StatusOK}} {
					body := site.Form(slices.Repeat([]site.Part{site.File("cv.pdf", sample.PDF)}, try.files)...)
					if r := s.Do(t, http.MethodPost, "/api/upload/file", site.Merged(bearer, site.FormType), body); r.Status != try.status {
						t.Errorf("%s: %d files: %v, want %d", form, try.files, r, try.status)
					}
				}
			}
			if status, answer = ask(t, client, http.MethodPost, address, "anna", "kind=file&x="+strings.Repeat("x", 1000)); name == "Node" && status != http.StatusRequestEntityTooLarge {
				t.Errorf("a large form: %d %v", status, answer)
			}

			address = "http://" + start(t, append(env, "MEDIA_PASSWORD=not this one"))
			status, answer = ask(t, loggedIn(t, address), http.MethodPost, address, "anna", "kind=file")
			if status != http.StatusBadGateway || answer["message"] != "uploads are not possible now" || len(answer) != 1 {
				t.Errorf("with a wrong password: %d %v", status, answer)
			}
		})
	}
}

// loggedIn returns a client with a session of the site.
func loggedIn(t *testing.T, address string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	r, err := client.Get(address + "/log-in")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return client
}

// ask requests a ticket by a form in the name of a user; empty for a request without a login.
func ask(t *testing.T, client *http.Client, method, address, user, form string) (status int, answer map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, address+"/media-ticket", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if user != "" {
		req.Header.Set("Remote-User", user)
	}
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%d %s: %v", r.StatusCode, body, err)
	}
	return r.StatusCode, answer
}
