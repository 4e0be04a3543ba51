package docs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestDocsPHPSite adds the service to a site of PHP-FPM as documented. Only the addresses, the
// folders and the account differ. The addresses that the page does not name stay those of the site.
func TestDocsPHPSite(t *testing.T) {
	php, pool, folder := servers.Program(t, "php-fpm*"), servers.FreeAddress(t), t.TempDir()
	for name, content := range map[string]string{
		"index.php": `<?php echo "page ", $_SERVER["REQUEST_URI"], " ", getenv("MEDIA_SERVER");`, "robots.txt": "a file",
		"static/style.css": "a file", "static/img/logo.svg": "hidden by the items",
	} {
		site.PutFile(t, filepath.Join(folder, "www", name), content)
	}
	conf := fmt.Sprintf("[global]\nerror_log = %s/php.log\n[www]\nlisten = %s\npm = static\npm.max_children = 1\n", folder, pool)
	if os.Getuid() == 0 {
		conf += "user = root\ngroup = root\n"
	}
	site.PutFile(t, filepath.Join(folder, "php.conf"), conf+pages.Example(t, "existing-site.md", "ini", "env[MEDIA_SERVER]"))
	startFPM(t, php, pool, filepath.Join(folder, "php.conf"))

	config := pages.Example(t, "existing-site.md", "caddyfile", "php_fastcgi unix")
	_, block, found := strings.Cut(config, "\nwww.example.com {")
	if !found || !strings.Contains(block, "unix//run/php/php-fpm.sock") || !strings.Contains(block, "/srv/www") {
		t.Fatalf("the example is another one:\n%s", config)
	}
	address := servers.FreeAddress(t)
	c := site.NewChild(t, "SITE_PASSWORD_HASH="+site.CheapHash)
	c.Sites = "http://" + address + " {" + strings.NewReplacer("unix//run/php/php-fpm.sock", pool, "/srv/www", folder+"/www").Replace(block)
	c.Start("tokens memory\n" + mediaOf(t, config, "site", c.Root))
	client := c.HTTP1()
	for path, want := range map[string]string{
		"/": "page / https://www.example.com", "/shop/7": "page /shop/7 https://www.example.com",
		"/api/orders": "page /api/orders https://www.example.com", "/robots.txt": "a file", "/static/style.css": "a file",
	} {
		if r := client.FetchURL(t, "http://"+address+path); r.Status != http.StatusOK || r.Body != want {
			t.Errorf("%s: %d %q, want %q", path, r.Status, r.Body, want)
		}
	}
	img := sample.JPEG(t, 1000, 800)
	s := &site.Site{URL: "http://" + address, Client: client.Client}
	if r := s.UploadImage(t, site.File("b.jpg", img)); !strings.Contains(r.Body, ` 640w, `) || !strings.Contains(r.Body, `"height":800`) {
		t.Errorf("the answer to an upload lacks what a page needs: %v", r)
	}
	site.PutFile(t, filepath.Join(c.Root, "img/content/a.jpg"), img)
	for path, want := range map[string]int{
		"/static/img/content/a.jpg": http.StatusOK, "/static/img/content@small/a.jpg": http.StatusOK,
		"/static/img/logo.svg": http.StatusNotFound, "/api/upload/images": http.StatusNotFound,
	} {
		if r := client.FetchURL(t, "http://"+address+path); r.Status != want {
			t.Errorf("%s: %d %.100q, want %d", path, r.Status, r.Body, want)
		}
	}
}

// TestDocsSinglePage adds the service to an application whose every address is one page.
func TestDocsSinglePage(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "backend ", r.URL.Path) }))
	t.Cleanup(backend.Close)
	folder, address := t.TempDir(), servers.FreeAddress(t)
	site.PutFile(t, filepath.Join(folder, "index.html"), "the page")
	site.PutFile(t, filepath.Join(folder, "app.js"), "the script")
	config := pages.Example(t, "existing-site.md", "caddyfile", "try_files")
	_, block, found := strings.Cut(config, "\nwww.example.com {")
	if !found || !strings.Contains(block, "localhost:3000") || !strings.Contains(block, "/srv/app") {
		t.Fatalf("the example is another one:\n%s", config)
	}
	c := site.NewChild(t, "APP_PASSWORD_HASH="+site.CheapHash)
	c.Sites = "http://" + address + " {" + strings.NewReplacer("localhost:3000", backend.Listener.Addr().String(), "/srv/app", folder).Replace(block)
	c.Start("tokens memory\n" + mediaOf(t, config, "app", c.Root))
	client := c.HTTP1()
	s := &site.Site{URL: "http://" + address, Client: client.Client}
	if r := s.UploadImage(t, site.File("a.jpg", sample.JPEG(t, 1000, 800)), site.Field("sub_folder", "/")); !strings.Contains(r.Body, ` 640w, `) {
		t.Errorf("an upload: %v", r)
	}
	for path, want := range map[string]string{
		"/": "the page", "/shop/7": "the page", "/app.js": "the script", "/api/orders": "backend /api/orders",
		"/static/img/content/none.jpg": "", "/static/app.css": "the page",
	} {
		if r := client.FetchURL(t, s.URL+path); r.Body != want {
			t.Errorf("%s: %d %q, want %q", path, r.Status, r.Body, want)
		}
	}
	if r := client.FetchURL(t, s.URL+"/static/img/content/a.jpg"); r.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("the image: %d %v", r.Status, r.Header)
	}
}

// mediaOf returns the global option media of an example, with the account and the folder of a test.
func mediaOf(t *testing.T, config, account, root string) string {
	t.Helper()
	media := pages.Media(t, config)
	hash := "account " + account + " {env." + strings.ToUpper(account) + "_PASSWORD_HASH}"
	if !strings.Contains(media, hash) || !strings.Contains(media, "/srv/media") {
		t.Fatalf("the example lacks %s:\n%s", hash, media)
	}
	return strings.NewReplacer(hash, "account "+site.APIKey+" "+site.CheapHash, "/srv/media", root).Replace(media)
}

// wordPress has the functions of WordPress that the plug-in for the media library uses. Its
// attachments are the files in the arguments; the one called page.php is refused. The last argument
// is what is done.
const wordPress = `<?php
const MEDIA_API_KEY = "KEY", MEDIA_PASSWORD = "PASSWORD";
define("MEDIA_SERVER", getenv("MEDIA_SERVER"));
$hooks = $meta = $kept = [];
function add_action(string $hook, callable $f, int $priority = 10, int $arguments = 1): void { $GLOBALS["hooks"][$hook][] = [$f, $arguments]; }
function add_filter(...$arguments): void { add_action(...$arguments); }
function apply_filters(string $hook, ...$arguments) {
	foreach ($GLOBALS["hooks"][$hook] ?? [] as [$f, $n]) { $arguments[0] = $f(...array_slice($arguments, 0, $n)); }
	return $arguments[0];
}
function get_transient(string $name) { return $GLOBALS["kept"][$name] ?? false; }
function set_transient(string $name, $value, int $seconds): void { $GLOBALS["kept"][$name] = $value; }
function get_post_meta(int $id, string $key, bool $single) { return $GLOBALS["meta"][$id][$key] ?? ""; }
function update_post_meta(int $id, string $key, $value): void { $GLOBALS["meta"][$id][$key] = $value; }
function get_attached_file(int $id): string { return $GLOBALS["argv"][$id]; }
function wp_attachment_is_image(int $id): bool { return str_ends_with(get_attached_file($id), ".jpg"); }
function wp_get_attachment_metadata(int $id) { return wp_attachment_is_image($id) ? ["width" => 1200, "height" => 900] : false; }
function wp_get_registered_image_subsizes(): array {
	return ["thumbnail" => ["width" => 150, "height" => 150, "crop" => true], "medium" => ["width" => 300, "height" => 300, "crop" => false],
		"large" => ["width" => 1024, "height" => 1024, "crop" => false], "other" => ["width" => 99, "height" => 99, "crop" => false]];
}
function wp_constrain_dimensions(int $w, int $h, int $max_w, int $max_h): array {
	$r = min($max_w / $w, $max_h / $h, 1);
	return [(int) round($w * $r), (int) round($h * $r)];
}
final class WP_Error { public function __construct(private string $m) {} public function get_error_message(): string { return $this->m; } }
function is_wp_error($v): bool { return $v instanceof WP_Error; }
function wp_remote_retrieve_response_code($r): int { return $r[0]; }
function wp_remote_retrieve_body($r): string { return $r[1]; }
function wp_remote_request(string $address, array $o) {
	$lines = array_map(fn ($k, $v) => "$k: $v", array_keys($o["headers"]), $o["headers"]);
	$body = is_array($o["body"]) ? http_build_query($o["body"]) : $o["body"];
	$lines[] = "Content-Type: " . (is_array($o["body"]) ? "application/x-www-form-urlencoded" : "");
	$answer = @file_get_contents($address, false, stream_context_create(["http" => [
		"method" => $o["method"], "header" => $lines, "content" => $body, "ignore_errors" => true, "timeout" => $o["timeout"]]]));
	return $answer === false ? new WP_Error("no connection") : [(int) explode(" ", $http_response_header[0])[1], $answer];
}
require $argv[1];
$kept["media_token"] = "one that has ended";
for ($id = 2; $id < count($argv); $id++) {
	$meta[$id]["_wp_attached_file"] = "2026/11/" . basename($argv[$id]);
	apply_filters("add_attachment", $id);
	$own = "http://own/" . basename($argv[$id]);
	echo apply_filters("wp_get_attachment_url", $own, $id), "\n";
	foreach (["thumbnail", "large", "other", [80, 60]] as $size) {
		echo json_encode([$size, apply_filters("image_downsize", false, $id, $size)], JSON_UNESCAPED_SLASHES), "\n";
	}
	foreach (["large", "thumbnail"] as $size) {
		$src = apply_filters("image_downsize", false, $id, $size)[0] ?? $own;
		echo json_encode(apply_filters("wp_get_attachment_image_attributes", ["src" => $src], (object) ["ID" => $id]), JSON_UNESCAPED_SLASHES), "\n";
		echo apply_filters("wp_content_img_tag", "<img src=\"$src\">", "the_content", $id), "\n";
	}
	apply_filters("delete_attachment", $id);
}
`

// TestDocsWordPress: the plug-in stores attachments in the service, shows them and their sizes from
// there, and deletes them. One that the service refuses stays with WordPress.
func TestDocsWordPress(t *testing.T) {
	config := pages.Example(t, "existing-site.md", "caddyfile", "{\n\tmedia {\n\t\taccount wordpress")
	s := site.Start(t, mediaOf(t, config, "wordpress", "$ROOT"), "media")
	folder := t.TempDir()
	for name, content := range map[string]string{
		"run.php": strings.NewReplacer("KEY\"", site.APIKey+"\"", "PASSWORD\"", site.Password+"\"").Replace(wordPress),
		"été.jpg": sample.JPEG(t, 1200, 900), "cv.pdf": sample.PDF, "page.php": "<?php",
	} {
		site.PutFile(t, filepath.Join(folder, name), content)
	}
	plugin := filepath.Join(pages.Root(t), "caddymedia", "docs", "existing-site", "media-library.php")
	run := func(server string, names ...string) (out, problems string) {
		args := slices.Concat([]string{filepath.Join(folder, "run.php"), plugin}, names)
		for i := range names {
			args[i+2] = filepath.Join(folder, names[i])
		}
		out, problems, code := program(t, "php", []string{"MEDIA_SERVER=" + server}, args...)
		if code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, problems)
		}
		return out, problems
	}
	const others = `["other",false]` + "\n" + `[[80,60],false]` + "\n"
	none := func(name string) string {
		shown := `{"src":"http://own/` + name + `"}` + "\n" + `<img src="http://own/` + name + `">` + "\n"
		return `["thumbnail",false]` + "\n" + `["large",false]` + "\n" + others + shown + shown
	}
	at := s.URL + "/static/img/content"
	small, large := at+"@thumbnail/2026/11/ete.jpg", at+"@large/2026/11/ete.jpg"
	srcset := at + "@medium/2026/11/ete.jpg 300w, " + large + " 1024w"
	want := at + "/2026/11/ete.jpg\n" +
		`["thumbnail",["` + small + `",150,150,true]]` + "\n" + `["large",["` + large + `",1024,768,true]]` + "\n" + others +
		`{"srcset":"` + srcset + `","src":"` + large + `","sizes":"100vw"}` + "\n" +
		`<img srcset="` + srcset + `" sizes="100vw" src="` + large + `">` + "\n" +
		`{"src":"` + small + `"}` + "\n" + `<img src="` + small + `">` + "\n" +
		s.URL + "/static/file/content/2026/11/cv.pdf\n" + none("cv.pdf") + "http://own/page.php\n" + none("page.php")
	out, problems := run(s.URL, "été.jpg", "cv.pdf", "page.php")
	if out != want {
		t.Errorf("it shows\n%s\nwant\n%s", out, want)
	}
	if !strings.Contains(problems, "2026/11/page.php is not in the media service: files with the extension .php are never accepted") ||
		strings.Contains(problems, "stays") || strings.Contains(problems, "Warning") {
		t.Errorf("it logs %s", problems)
	}
	s.WantNothing(t)
	if out, problems = run("http://127.0.0.1:1", "cv.pdf"); out != "http://own/cv.pdf\n"+none("cv.pdf") || !strings.Contains(problems, "no connection") {
		t.Errorf("without the service: %s%s", out, problems)
	}
}

// django has the parts of Django that the storage uses, and saves the files in the arguments.
var django = map[string]string{
	"django/core/files/base.py": `
import io
class ContentFile(io.BytesIO):
    def __init__(self, content, name=None):
        super().__init__(content)
        self.size, self.name = len(content), name
    def chunks(self):
        self.seek(0)
        while piece := self.read(1000):
            yield piece
`,
	"django/core/files/storage.py": `
class Storage:
    def save(self, name, content):
        return self._save(name, content)
    def open(self, name):
        return self._open(name)
`,
	"django/utils/deconstruct.py": "deconstructible = lambda c: c",
	"run.py": `
import sys
from django.core.files.base import ContentFile
from media_storage import MediaStorage
image, paper = (open(name, "rb").read() for name in sys.argv[1:])
images, papers = MediaStorage(), MediaStorage(kind="file")
first, second = (images.save("posts/2026/été.jpg", ContentFile(image)) for _ in range(2))
kept = first != second and images.open(first).read() == image and images.size(first) == len(image)
print(first, kept, images.url(first, "small"))
images._token = "one that has ended"
name = papers.save("papers/cv.pdf", ContentFile(paper))
print(name, papers.open(name).read() == paper)
try:
    images.save("a.jpg", ContentFile(paper))
except ValueError as refused:
    print(refused)
for storage, name in ((images, first), (images, first), (images, second), (papers, name)):
    storage.delete(name)
`,
}

// writeDjango writes the parts of Django into a folder.
func writeDjango(t *testing.T, folder string) {
	t.Helper()
	for name, content := range django {
		site.PutFile(t, filepath.Join(folder, name), content)
	}
}

// TestDocsDjango: the storage of Django stores, reads and deletes items.
func TestDocsDjango(t *testing.T) {
	config := pages.Example(t, "existing-site.md", "caddyfile", "{\n\tmedia {\n\t\taccount django")
	s := site.Start(t, mediaOf(t, config, "django", "$ROOT"), "media")
	folder := t.TempDir()
	writeDjango(t, folder)
	site.PutFile(t, filepath.Join(folder, "a.jpg"), sample.JPEG(t, 800, 600))
	site.PutFile(t, filepath.Join(folder, "cv.pdf"), sample.PDF)
	env := []string{"MEDIA_SERVER=" + s.URL, "PYTHONPATH=" + folder + ":" + filepath.Join(pages.Root(t), "caddymedia", "docs", "existing-site")}
	out, problems, code := program(t, "python3", env, filepath.Join(folder, "run.py"), filepath.Join(folder, "a.jpg"), filepath.Join(folder, "cv.pdf"))
	want := "posts/2026/ete.jpg True " + s.URL + "/static/img/content@small/posts/2026/ete.jpg\n" +
		"papers/cv.pdf True\ncontent is PDF, the name says .jpg\n"
	if code != 0 || out != want {
		t.Errorf("exit code %d, %s%s, want %s", code, out, problems, want)
	}
	s.WantNothing(t)
}
