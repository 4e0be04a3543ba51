package docs_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

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

// program runs a program of the documentation in the name of the account.
func program(t *testing.T, server, name string, args ...string) (out, problems string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), servers.Program(t, name), args...)
	cmd.Env = append(os.Environ(), "MEDIA_SERVER="+server, "MEDIA_API_KEY="+site.APIKey, "MEDIA_PASSWORD="+site.Password,
		"PYTHONDONTWRITEBYTECODE=1") // beside the programs
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// TestItemExamples: each program lists, moves, copies, replaces, imports and deletes images, and says
// why something is refused.
func TestItemExamples(t *testing.T) {
	img, other := sample.JPEG(t, 40, 30), sample.JPEG(t, 30, 40)
	s, remote := itemSite(t, other)
	for name, script := range map[string]string{"sh": "items.sh", "php": "items.php", "python3": "items.py", "node": "items.mjs"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			run := func(args ...string) (out, problems string, code int) {
				return program(t, s.URL, name, append([]string{filepath.Join(clientFolder(t), script)}, args...)...)
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

// TestPostExamples: the programs for WordPress and Laravel delete the 30 images of a post with one
// request. Without the service WordPress deletes the post, and Laravel keeps it; both log it.
func TestPostExamples(t *testing.T) {
	s, _ := itemSite(t, "")
	backend, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var requests []string
	proxy := httputil.NewSingleHostReverseProxy(backend)
	counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests = append(requests, r.Method+" "+r.URL.Path)
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(counted.Close)
	taken := func() []string { // since the last call
		mu.Lock()
		defer mu.Unlock()
		defer func() { requests = nil }()
		return requests
	}
	for name, php := range surroundings {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			runner := filepath.Join(t.TempDir(), "run.php")
			site.PutFile(t, runner, php)
			args := append(make([]string, 0, 32), runner, filepath.Join(clientFolder(t), name))
			for i := range 30 {
				args = append(args, fmt.Sprintf("26-11/20/ěš č-%d.jpg", i))
				site.PutFile(t, filepath.Join(s.Root, "img/content", args[len(args)-1]), "an image")
			}
			site.PutFile(t, filepath.Join(s.Root, "img/content/26-11/20/other.jpg"), "an image")
			taken()
			out, problems, code := program(t, counted.URL, "php", args...)
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
			_, problems, _ = program(t, counted.URL, "php", args...)
			if strings.Count(problems, "there is no such item") != 30 {
				t.Errorf("again: problems %q", problems)
			}
			out, problems, _ = program(t, "http://"+servers.FreeAddress(t), "php", args...)
			if out != map[string]string{"wordpress.php": "deleted\n"}[name] || problems == "" {
				t.Errorf("without the service: output %q, problems %q", out, problems)
			}
		})
	}
}
