package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/integration/ticketserver"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// heldMedia are the lines of a site whose items are at the root of their aliases.
const heldMedia = site.Account + site.AtRoot + "}\nimage_alias content\nfile_alias content\n"

// held uploads files that wait, with a token or a ticket, and returns their ids.
func held(t *testing.T, s *site.Site, kind string, header http.Header, parts ...site.Part) []string {
	t.Helper()
	r := s.Do(t, http.MethodPost, "/api/upload/"+kind, site.Merged(header, site.FormType), site.Form(parts...))
	var answer struct{ Result []struct{ Held string } }
	if err := json.Unmarshal([]byte(r.Body), &answer); err != nil || r.Status != http.StatusAccepted || len(answer.Result) == 0 {
		t.Fatalf("a held upload: %v", r)
	}
	ids := make([]string, len(answer.Result))
	for i, element := range answer.Result {
		ids[i] = element.Held
	}
	return ids
}

// withHold is a part of a form.
var withHold = site.Field("hold", "60")

// TestSaveServers: the documented programs keep the uploads of a form, in its order and once, tell
// the user which of them is over, and hide the cause of other failures.
func TestSaveServers(t *testing.T) {
	for name, start := range ticketserver.All {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, heldMedia, "media")
			env := append(os.Environ(), "MEDIA_SERVER="+s.URL, "MEDIA_API_KEY="+site.APIKey)
			address := "http://" + start(t, append(env, "MEDIA_PASSWORD="+site.Password))
			client, stranger := loggedIn(t, address), new(http.Client)
			save := func(client *http.Client, method, address, user string, form url.Values) (int, string) {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), method, address+"/save", strings.NewReader(form.Encode()))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				if user != "" {
					req.Header.Set("Remote-User", user)
				}
				r := s.Send(t, client, req)
				return r.Status, r.Body
			}
			_, answer := ask(t, client, http.MethodPost, address, "anna", "kind=file&max_files=3")
			ticket := site.Headers("Authorization", fmt.Sprint("Bearer ", answer["ticket"]))
			ids := held(t, s, "file", ticket, site.File("a.pdf", sample.PDF), site.File("b.pdf", sample.PDF), site.File("c.pdf", sample.PDF))
			form := url.Values{"kind": {"file"}, "title": {"A post"}, "held[]": {ids[2], ids[0]}}

			if status, text := save(stranger, http.MethodPost, address, "", form); status != http.StatusForbidden || text != "log in first" {
				t.Errorf("without a login: %d %s", status, text)
			}
			if status, text := save(client, http.MethodGet, address, "anna", form); status != http.StatusMethodNotAllowed {
				t.Errorf("GET: %d %s", status, text)
			}
			if site.Exists(filepath.Join(s.Root, "file/content")) {
				t.Error("something is stored before the form is saved")
			}
			want := "It is saved.\n" + s.URL + "/static/file/content/c.pdf\n" + s.URL + "/static/file/content/a.pdf"
			for range 2 {
				if status, text := save(client, http.MethodPost, address, "anna", form); status != http.StatusOK || text != want {
					t.Errorf("it answers %d %s, want %s", status, text, want)
				}
			}
			s.Do(t, http.MethodDelete, "/api/upload/file/held/"+ids[1], ticket, "")
			form.Set("held[]", ids[1])
			if status, text := save(client, http.MethodPost, address, "anna", form); status != http.StatusUnprocessableEntity || !strings.HasPrefix(text, ids[1]+": ") {
				t.Errorf("an upload that is over: %d %s", status, text)
			}
			form.Del("held[]")
			if status, text := save(client, http.MethodPost, address, "anna", form); status != http.StatusOK || text != "It is saved." {
				t.Errorf("a form without uploads: %d %s", status, text)
			}

			address = "http://" + start(t, append(env, "MEDIA_PASSWORD=not this one"))
			form.Set("held[]", ids[0])
			if status, text := save(loggedIn(t, address), http.MethodPost, address, "anna", form); status != http.StatusBadGateway || strings.Contains(text, "password") {
				t.Errorf("with a wrong password: %d %s", status, text)
			}
		})
	}
}

// laravelHeld has the parts of Laravel that the documented controller uses. The arguments are the
// folder of the clients and the ids.
const laravelHeld = `<?php
namespace Illuminate\Database\Eloquent {
	abstract class Model {
		protected array $values = [];
		public function __construct(array $values) { $this->values = $values; }
		public function __get(string $name) { return $this->values[$name] ?? null; }
		public function __set(string $name, $value): void { $this->values[$name] = $value; }
		public function save(): void { echo json_encode($this->values, JSON_UNESCAPED_SLASHES), "\n"; }
	}
}
namespace {
	use App\Models\Post;
	class Request {
		public function __construct(private array $input) {}
		public function validate(array $rules): array { return array_intersect_key($this->input, $rules); }
		public function array(string $name): array { return $this->input[$name] ?? []; }
	}
	class RedirectResponse { public function route(string $name, Post $post): self { return $this; } }
	class ValidationException extends Exception {
		public static function withMessages(array $messages): self { return new self(json_encode($messages)); }
	}
	function redirect(): RedirectResponse { return new RedirectResponse; }
	[, $clients] = $argv;
	require "$clients/MediaClient.php"; // which Composer does
	require "$clients/laravel.php";
	class PostController { CONTROLLER }
	try {
		(new PostController)->store(new Request(['title' => 'A post', 'held' => array_slice($argv, 2)]));
	} catch (ValidationException $e) {
		echo $e->getMessage(), "\n";
	}
}
`

// TestDocsHeld runs the examples of the page: each keeps what waits.
func TestDocsHeld(t *testing.T) {
	const page = "held.md"
	s := site.Start(t, heldMedia, "media")
	env := []string{"TMPDIR=" + t.TempDir(), "MEDIA_SERVER=" + s.URL}
	folder, token := t.TempDir(), s.Credentials(t)
	photo := sample.JPEG(t, 40, 30)
	two := func(a, b string) []string {
		t.Helper()
		return held(t, s, "image", token, withHold, site.File(a, photo), site.File(b, photo))
	}
	stored := func(t *testing.T, names ...string) {
		t.Helper()
		for _, name := range names {
			if r := s.Get(t, "/static/img/content/"+name); r.Body != photo {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
	t.Run("PHP", func(t *testing.T) {
		script := filepath.Join(folder, "keep.php")
		site.PutFile(t, script, "<?php require $argv[1];\n$_POST['held'] = array_slice($argv, 2);\n"+
			pages.Example(t, page, "php", "$items = MediaClient")+"echo implode(' ', array_column($items, 'filename'));")
		out, problems, _ := program(t, "php", env, append([]string{script, filepath.Join(clientFolder(t), "MediaClient.php")}, two("a.jpg", "b.jpg")...)...)
		if out != "posts/7/a.jpg posts/7/b.jpg" {
			t.Errorf("it keeps %q, %s", out, problems)
		}
		stored(t, "posts/7/a.jpg", "posts/7/b.jpg")
	})
	t.Run("Node", func(t *testing.T) {
		script := filepath.Join(folder, "keep.mjs")
		site.PutFile(t, script, "const { keep } = await import(process.argv[2]);\nconst form = new FormData();\n"+
			"for (const id of process.argv.slice(3)) form.append('held[]', id);\n"+
			pages.Example(t, page, "js", "const items = await keep")+"console.log(...items.map((item) => item.filename));")
		out, problems, _ := program(t, "node", env, append([]string{script, filepath.Join(clientFolder(t), "media.mjs")}, two("c.jpg", "d.jpg")...)...)
		if out != "posts/7/c.jpg posts/7/d.jpg\n" {
			t.Errorf("it keeps %q, %s", out, problems)
		}
		stored(t, "posts/7/c.jpg", "posts/7/d.jpg")
	})
	t.Run("Laravel", func(t *testing.T) {
		script := filepath.Join(folder, "laravel.php")
		site.PutFile(t, script, strings.Replace(laravelHeld, "CONTROLLER", pages.Example(t, page, "php", "public function store"), 1))
		ids := two("e.jpg", "f.jpg")
		const want = `{"title":"A post","images":["e.jpg","f.jpg"]}` + "\n"
		if out, problems, _ := program(t, "php", env, append([]string{script, clientFolder(t)}, ids...)...); out != want {
			t.Errorf("it saves %s%s, want %s", out, problems, want)
		}
		stored(t, "e.jpg", "f.jpg")
		if out, problems, _ := program(t, "php", env, script, clientFolder(t), "unknown"); !strings.HasPrefix(out, `{"held":"unknown: `) {
			t.Errorf("an upload that is over: %s%s", out, problems)
		}
	})
	t.Run("curl", func(t *testing.T) {
		servers.Program(t, "curl")
		work := t.TempDir()
		site.PutFile(t, filepath.Join(work, "photo.jpg"), photo)
		cmd := exec.CommandContext(t.Context(), servers.Program(t, "sh"), "-euc", pages.Example(t, page, "sh", "HELD="))
		cmd.Dir, cmd.Env = work, append(os.Environ(), "SERVER="+s.URL, "TOKEN="+s.Token(t, site.APIKey))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		element := regexp.MustCompile(`\{"held":"([\w-]{22,})","name":"photo.jpg","size":\d+,"content_type":"image/jpeg","expires_at":\d{10}`)
		if !element.Match(out) || !strings.Contains(string(out), `"filename":"photo.jpg"`) {
			t.Errorf("it prints %s", out)
		}
		if string(site.ReadFile(t, filepath.Join(work, "preview.jpg"))) != photo {
			t.Error("the preview is another image")
		}
		stored(t, "photo.jpg")
	})
}
