package docs_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// namePrograms call a client with a name: each line of the output is the message of a refusal. The
// clients and what they need are in the other arguments.
var namePrograms = map[string]string{
	"php": `<?php
		require $argv[1];
		$c = MediaClient::fromEnvironment();
		$name = $argv[2];
		foreach ([
			fn () => $c->move('image', 'content', $name, 'b.jpg'), fn () => $c->replace('image', 'content', $name, $argv[0]),
			fn () => $c->move('image', $name, 'a.jpg', 'b.jpg'), fn () => iterator_to_array($c->items('image', $name)),
			fn () => $c->delete($name, 'content', ['a.jpg']),
		] as $call) {
			try { $call(); } catch (MediaRefusal $e) { echo $e->getMessage(), "\n"; }
		}`,
	"node": `
		const [, self, client, name] = process.argv;
		const { items, remove, replace, transfer } = await import(client);
		for (const call of [
			() => transfer('image', 'content', name, { to: 'b.jpg' }), () => replace('image', 'content', name, self),
			() => transfer('image', name, 'a.jpg', { to: 'b.jpg' }), () => items('image', name).next(),
			() => remove(name, 'content', ['a.jpg']),
		]) {
			try { await call(); } catch (e) { console.log(e.message); }
		}`,
	"python3": `
import sys
sys.path[:0] = sys.argv[1].split(":")
from django.core.files.base import ContentFile
from media_storage import MediaStorage
images, name = MediaStorage(), sys.argv[2]
for call in (lambda: images.save(name, ContentFile(b"")), lambda: images.open(name), lambda: images.size(name),
        lambda: images.delete(name), lambda: images.url(name)):
    try:
        call()
    except ValueError as refused:
        print(refused)
`,
	"wordpress": `<?php
		const MEDIA_API_KEY = 'site', MEDIA_PASSWORD = 'secret', MEDIA_SERVER = '';
		function add_action(...$arguments): void {}
		function add_filter(...$arguments): void {}
		function get_transient(string $name) { return 'a token'; }
		function is_wp_error($v): bool { return false; }
		function wp_remote_retrieve_response_code($r): int { return 400; }
		function wp_remote_retrieve_body($r): string { return '{"errors":[{"message":"the server refuses it"}]}'; }
		function wp_remote_request(string $address, array $o) { file_get_contents(getenv('MEDIA_SERVER') . $address); }
		require $argv[1];
		foreach (['PUT', 'DELETE'] as $method) { echo media_call($method, 'image', $argv[2])['message'], "\n"; }`,
}

// refuser returns the address of a service that logs in everybody and refuses the rest. requests
// returns the paths of those that it got.
func refuser(t *testing.T) (address string, requests func() []string) {
	t.Helper()
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/auth/generateToken" {
			io.WriteString(w, `{"success":true,"token":"a token","expires_at":4000000000}`)
			return
		}
		mu.Lock()
		got = append(got, r.URL.Path)
		mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"success":false,"errors":[{"message":"the server refuses it","filename":""}]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// TestClientNames: no client sends a name whose segments would lead to another address than that of
// the item. Codes of such segments are letters of a name.
func TestClientNames(t *testing.T) {
	t.Parallel()
	django, wordpress, existing := t.TempDir(), filepath.Join(t.TempDir(), "run.php"), filepath.Join(pages.Root(t), "caddymedia", "docs", "existing-site")
	writeDjango(t, django)
	site.PutFile(t, wordpress, namePrograms["wordpress"])
	photo := filepath.Join(t.TempDir(), "photo.jpg")
	site.PutFile(t, photo, "an image")
	// Each returns the arguments of its program for a name.
	runs := map[string]func(name string) []string{
		"WordPress": func(name string) []string {
			return []string{"php", wordpress, filepath.Join(existing, "media-library.php"), name}
		},
	}
	for program, client := range map[string]string{
		"php": filepath.Join(clientFolder(t), "MediaClient.php"), "node": filepath.Join(clientFolder(t), "media.mjs"), "python3": django + ":" + existing,
	} {
		script := filepath.Join(t.TempDir(), "run."+map[string]string{"php": "php", "node": "mjs", "python3": "py"}[program])
		site.PutFile(t, script, namePrograms[program])
		runs[program] = func(name string) []string { return []string{program, script, client, name} }
	}
	for program, script := range map[string]string{"sh": "items.sh", "python3": "items.py"} { // the others use the clients above
		for _, command := range []string{"delete NAME", "move NAME b.jpg", "copy NAME b.jpg", "replace NAME " + photo} {
			runs[script+" "+command[:4]] = func(name string) []string {
				args := strings.Split(command, " ")
				args[1] = name
				return append([]string{program, filepath.Join(clientFolder(t), script)}, args...)
			}
		}
	}
	for run, args := range runs {
		t.Run(run, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"../x", "a/../../x", "./x", "a/..", "a//b", "/x", ""} {
				server, requests := refuser(t)
				out, problems, _ := program(t, args(name)[0], []string{"TMPDIR=" + t.TempDir(), "MEDIA_SERVER=" + server}, args(name)[1:]...)
				if got := requests(); len(got) > 0 || !strings.Contains(out+problems, "name") || strings.Contains(out+problems, "refuses") {
					t.Errorf("%q: the requests %q were sent, output %q, problems %q", name, got, out, problems)
				}
			}
			const name = "%2e%2e/[1-2]{a,b} .."
			server, requests := refuser(t)
			out, problems, _ := program(t, args(name)[0], []string{"TMPDIR=" + t.TempDir(), "MEDIA_SERVER=" + server}, args(name)[1:]...)
			got := requests()
			for _, path := range got {
				if !strings.Contains(path, name) {
					t.Errorf("the request is for %s", path)
				}
			}
			if len(got) == 0 || !strings.Contains(out+problems, "refuses") {
				t.Errorf("a good name: the requests %q were sent, output %q, problems %q", got, out, problems)
			}
		})
	}
}
