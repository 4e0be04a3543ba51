package docs_test

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestDocsSites runs the documented sites in PHP and Node, from the form to the deletion. Only the
// addresses, the folders and the account differ.
func TestDocsSites(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, folder, server string) (block string){"PHP": startPHP, "Node": startNode} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			c := site.NewChild(t, "SHOP_PASSWORD_HASH="+site.CheapHash)
			config := pages.Example(t, "sites.md", "caddyfile", "{\n\tmedia {")
			address := servers.FreeAddress(t)
			block := start(t, folder, "http://"+address)
			media := strings.NewReplacer("/srv/media", c.Root, "account shop", "account "+site.APIKey).Replace(pages.Media(t, config))
			c.Sites = "http://" + address + " {\n" + block + "}\n"
			c.Start("tokens memory\n" + media)
			suffix := map[string]string{"PHP": ".php"}[name]
			walk(t, c, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, "http://"+address, suffix)
		})
	}
}

// startPHP starts PHP-FPM with the pages of the site, and returns the lines of its block in the
// Caddyfile.
func startPHP(t *testing.T, folder, server string) string {
	t.Helper()
	fpm, php := servers.Program(t, "php-fpm*"), servers.Program(t, "php")
	if modules, err := exec.Command(php, "-m").Output(); err != nil || !strings.Contains(string(modules), "\ncurl\n") || !strings.Contains(string(modules), "\npdo_sqlite\n") {
		site.Skip(t, "php has no curl or pdo_sqlite extension")
	}
	moved := strings.NewReplacer("/srv/", folder+"/")
	for _, name := range []string{"shop/shop", "www/post", "www/invoice", "www/delete"} {
		block := pages.Example(t, "sites.md", "php", "<?php\n// /srv/"+name+".php\n")
		site.PutFile(t, filepath.Join(folder, name+".php"), moved.Replace(block))
	}
	site.PutFile(t, filepath.Join(folder, "shop/MediaClient.php"), string(site.ReadFile(t, filepath.Join(clientFolder(t), "MediaClient.php"))))
	pool := strings.NewReplacer("https://shop.example.com", server, "= shop\n", "= "+site.APIKey+"\n", "the password of the account", site.Password).
		Replace(pages.Example(t, "sites.md", "ini", "env[MEDIA_SERVER]"))
	address, conf := servers.FreeAddress(t), filepath.Join(folder, "php.conf")
	who := ""
	if os.Getuid() == 0 {
		who = "user = root\ngroup = root\n"
	}
	site.PutFile(t, conf, fmt.Sprintf("[global]\nerror_log = %s/php.log\n[www]\nlisten = %s\npm = static\npm.max_children = 2\n%s%s"+
		"env[TMPDIR] = %s\nphp_admin_value[upload_max_filesize] = 1M\n", folder, address, who, pool, folder))
	startFPM(t, fpm, address, conf)
	_, block, _ := strings.Cut(pages.Example(t, "sites.md", "caddyfile", "{\n\tmedia {"), "\nshop.example.com {\n")
	if !strings.Contains(block, "unix//run/php/php8.2-fpm.sock") {
		t.Fatalf("the example lacks the socket: %s", block)
	}
	return strings.TrimSuffix(strings.NewReplacer("unix//run/php/php8.2-fpm.sock", address, "/srv/", folder+"/").Replace(block), "}\n")
}

// startFPM starts PHP-FPM, without variables such as HOME, until the end of the test.
func startFPM(t *testing.T, program, address, conf string) {
	t.Helper()
	manager := exec.Command(program, "--nodaemonize", "--allow-to-run-as-root", "--fpm-config", conf)
	manager.Env = []string{}
	servers.Start(t, address, func() *exec.Cmd { return manager })
	t.Cleanup(func() { // a killed manager would leave its workers
		site.Eventually(t, "PHP-FPM ends", func() bool { return manager.Process.Signal(syscall.SIGTERM) != nil })
	})
}

// startNode starts the site in JavaScript, and returns the lines of its block in the Caddyfile.
func startNode(t *testing.T, folder, server string) string {
	t.Helper()
	node, address := servers.Program(t, "node"), servers.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	site.PutFile(t, filepath.Join(folder, "server.mjs"), pages.Example(t, "sites.md", "js", "// server.mjs\n"))
	site.PutFile(t, filepath.Join(folder, "media.mjs"), string(site.ReadFile(t, filepath.Join(clientFolder(t), "media.mjs"))))
	servers.Start(t, address, func() *exec.Cmd {
		cmd := exec.Command(node, filepath.Join(folder, "server.mjs"))
		cmd.Env = append(os.Environ(), "PORT="+port, "MEDIA_SERVER="+server, "MEDIA_API_KEY="+site.APIKey, "MEDIA_PASSWORD="+site.Password)
		return cmd
	})
	limit := pages.Example(t, "sites.md", "caddyfile", "@site")
	if !strings.Contains(limit, " 50MB\n") {
		t.Fatalf("the example lacks the limit: %s", limit)
	}
	return strings.Replace(limit, "50MB", "1MB", 1) + "media\nreverse_proxy " + address + "\n"
}

var image = regexp.MustCompile(`<img src="([^"]+)" srcset="([^"]+)" sizes="[^"]+"\s+width="(\d+)" height="(\d+)"`)

// walk uploads images and an invoice by the forms of a site, looks at them, and deletes the images.
func walk(t *testing.T, c *site.Child, client *http.Client, base, suffix string) {
	t.Helper()
	t.Cleanup(client.CloseIdleConnections)
	s := &site.Site{URL: base, Client: client}
	post := func(path string, parts ...site.Part) *site.Reply {
		t.Helper()
		return s.Do(t, http.MethodPost, path, site.FormType, site.Form(parts...))
	}
	field := func(name, filename, content string) site.Part {
		return site.Part{Name: name, File: true, Filename: filename, Content: content}
	}
	page := "/post" + suffix + "?id=7"
	wide, small := sample.JPEG(t, 1600, 1200), sample.JPEG(t, 40, 30)
	r := post(page, field("photos[]", "Můj výlet.JPG", wide), field("photos[]", "b.jpg", small))
	found := image.FindAllStringSubmatch(html.UnescapeString(r.Body), -1)
	if r.Status != http.StatusOK || len(found) != 2 {
		t.Fatalf("the page after an upload: %v", r)
	}
	for i, want := range []struct{ name, width, height, widths, content string }{
		{"/static/img/content/posts/7/muj-vylet.jpg", "1600", "1200", "640w 1280w 1600w", wide}, {"/static/img/content/posts/7/b.jpg", "40", "30", "40w", small},
	} {
		address, srcset := found[i][1], found[i][2]
		if !strings.HasSuffix(address, want.name) || found[i][3] != want.width || found[i][4] != want.height || s.Fetch(t, address).Body != want.content {
			t.Errorf("%d: %q, want %v", i, found[i][1:], want.name)
		}
		var widths []string
		for candidate := range strings.SplitSeq(srcset, ", ") {
			rendition, width, _ := strings.Cut(candidate, " ")
			widths = append(widths, width)
			if r := s.Fetch(t, rendition); r.Status != http.StatusOK {
				t.Errorf("%s: status %d", rendition, r.Status)
			}
		}
		if got := strings.Join(widths, " "); got != want.widths {
			t.Errorf("the widths are %s, want %s", got, want.widths)
		}
	}
	for name, tt := range map[string]struct {
		part site.Part
		want string
	}{
		"an image of another type": {field("photos[]", "c.jpg", sample.PNG(t, 40, 30)), "c.jpg: content is PNG, the name says .jpg"},
		"an empty input":           {field("photos[]", "", ""), "choose a file"},
	} {
		if r := post(page, tt.part); r.Status != http.StatusUnprocessableEntity || !strings.Contains(r.Body, tt.want) {
			t.Errorf("%s: %v, want %s", name, r, tt.want)
		}
	}
	if suffix == ".php" {
		if r := post(page, field("photos[]", "large.jpg", small+strings.Repeat("x", 1<<20))); !strings.Contains(r.Body, "large.jpg: it is larger than 1M") {
			t.Errorf("a file that PHP refuses: %v", r)
		}
	} else { // the limit of the Caddyfile is for the site, and not for the service
		large := small + strings.Repeat("x", 1<<20)
		if r := post(page, field("photos[]", "large.jpg", large)); r.Status == http.StatusOK {
			t.Errorf("a form over the limit: %v", r)
		}
		if r := s.UploadImage(t, site.File("large.jpg", large), site.Field("sub_folder", "large")); r.Status != http.StatusOK {
			t.Errorf("the same past the site: %v", r)
		}
		s.Do(t, http.MethodDelete, "/api/items/image/content/large/large.jpg", s.Credentials(t), "")
	}

	invoice := "/invoice" + suffix
	if r := post(invoice, field("invoice", "2026-17.pdf", sample.PDF)); r.Status != http.StatusCreated {
		t.Fatalf("an invoice: %v", r)
	}
	address := s.Get(t, invoice).Header.Get("Location")
	if r := s.Fetch(t, address); r.Status != http.StatusOK || r.Body != sample.PDF {
		t.Errorf("the invoice at %s: %v", address, r)
	}
	plain, _, _ := strings.Cut(address, "?")
	if r := s.Fetch(t, plain); r.Status != http.StatusForbidden {
		t.Errorf("the invoice without a signature: status %d", r.Status)
	}

	form := url.Values{"id": {"7"}}.Encode()
	r = s.Do(t, http.MethodPost, "/delete"+suffix+"?id=7", site.Headers("Content-Type", "application/x-www-form-urlencoded"), form)
	if r.Status != http.StatusSeeOther || strings.Contains(s.Get(t, r.Header.Get("Location")).Body, "<img") {
		t.Errorf("the deletion: %v", r)
	}
	site.MustHaveOnly(t, c.Root, "file/invoices/17/2026-17.pdf")
}

// clientCalls are programs that call the client in PHP and in JavaScript. The arguments are the
// client, and the paths of an image, and of another file. Each prints the same lines.
var clientCalls = map[string]string{
	"php": `<?php
		[, $client, $image, $paper] = $argv;
		require $client;
		$media = MediaClient::fromEnvironment();
		$show = function (callable $call): void {
			try {
				$result = json_encode($call(), JSON_UNESCAPED_SLASHES);
			} catch (RuntimeException $e) {
				$result = $e::class . ' ' . $e->getMessage();
			}
			echo $result, "\n";
		};
		$names = fn ($items) => array_column([...$items], 'filename');
		$show(fn () => $names($media->uploadImages([
			'name' => ['a' => ['x' => 'One.JPG'], 'b' => 'two.jpg', 'c' => ''],
			'tmp_name' => ['a' => ['x' => $image], 'b' => $image, 'c' => ''],
			'error' => ['a' => ['x' => 0], 'b' => 0, 'c' => 4],
		])));
		$show(fn () => $names($media->uploadFiles(['CV.pdf' => $paper])));
		$show(fn () => array_column([...$media->items('image', 'content', '', ['facts' => 1, 'limit' => 50])], 'width'));
		$show(fn () => array_map(fn ($url) => (bool) strpos($url, 'signature='), $media->sign('file', 'papers', ['cv.pdf'], 60)));
		$show(fn () => array_keys($media->ticket(['kind' => 'image'])));
		$show(fn () => $media->delete('file', 'content', ['cv.pdf', 'none.pdf']));
		$ids = array_column($media->uploadImages(['one.jpg' => $image, 'two.jpg' => $image], ['hold' => 60]), 'held');
		$show(fn () => array_column([$media->held('image', $ids[1])], 'size', 'name') === ['two.jpg' => filesize($image)]);
		$show(fn () => $names($media->keep('image', 'content', $ids, 'posts/7')));
		$show(fn () => $names($media->keep('image', 'content', $ids, 'posts/7')));
		$show(fn () => $names($media->keep('image', 'content', ['', null, []])));
		[['held' => $id]] = $media->uploadFiles(['CV.pdf' => $paper], ['hold' => 60]);
		$show(fn () => $media->release('file', $id));
		foreach ([
			fn () => $media->held('file', $id), fn () => $media->keep('file', 'content', [$id], '', 'a.pdf'),
		] as $call) {
			try { $call(); } catch (MediaRefusal $e) { echo str_replace($id, 'ID', $e->getMessage()), "\n"; }
		}
		$show(fn () => $media->release('file', '../file'));
		$show(fn () => $media->uploadImages(['a.png' => $image]));
		$show(fn () => $media->sign('file', 'content', ['cv.pdf']));
		foreach ([1, 2, 3, 4, 6, 7, 8] as $error) {
			$show(fn () => $media->uploadImages(['name' => 'a.jpg', 'tmp_name' => '', 'error' => $error]));
		}`,
	"node": `
		import { readFile } from 'node:fs/promises';
		const [client, image, paper] = process.argv.slice(2);
		const media = await import(client);
		async function show(call) {
			try {
				console.log(JSON.stringify(await call()));
			} catch (error) {
				console.log(error.constructor.name, error.message);
			}
		}
		const names = (items) => items.map((item) => item.filename);
		const file = async (name, path) => new File([await readFile(path)], name);
		await show(async () => names((await Promise.all([ // which share a login
			media.uploadImages([await file('One.JPG', image)]), media.uploadImages([await file('two.jpg', image)]),
		])).flat()));
		await show(async () => names(await media.uploadFiles([await file('CV.pdf', paper)])));
		await show(async () => {
			const widths = [];
			for await (const { width } of media.items('image', 'content', '', { facts: 1, limit: 50 })) widths.push(width);
			return widths;
		});
		await show(async () => Object.fromEntries((await media.sign('file', 'papers', ['cv.pdf'], 60))
			.map(({ filename, url }) => [filename, url.includes('signature=')])));
		await show(async () => Object.keys(await media.getTicket({ kind: 'image' })));
		await show(async () => Object.fromEntries((await media.remove('file', 'content', ['cv.pdf', 'none.pdf']))
			.map(({ filename, message }) => [filename, message])));
		const photos = [await file('one.jpg', image), await file('two.jpg', image)];
		const ids = (await media.uploadImages(photos, { hold: 60 })).map((element) => element.held);
		await show(async () => {
			const { name, size } = await media.getHeld('image', ids[1]);
			return name === 'two.jpg' && size === photos[1].size;
		});
		await show(async () => names(await media.keep('image', 'content', ids, { sub_folder: 'posts/7' })));
		await show(async () => names(await media.keep('image', 'content', ids, { sub_folder: 'posts/7' })));
		await show(async () => names(await media.keep('image', 'content', ['', null])));
		const [{ held: id }] = await media.uploadFiles([await file('CV.pdf', paper)], { hold: 60 });
		await show(async () => await media.release('file', id) ?? null);
		for (const call of [() => media.getHeld('file', id), () => media.keep('file', 'content', [id], { filename: 'a.pdf' })]) {
			await call().catch((error) => console.log(error.message.replaceAll(id, 'ID')));
		}
		await show(() => media.release('file', '../file'));
		await show(async () => media.uploadImages([await file('a.png', image)]));
		await show(() => media.sign('file', 'content', ['cv.pdf']));`,
}

// TestClientCalls: the clients in PHP and JavaScript have the same methods, log in once, and tell
// refusals of a user's files from other failures. That in PHP takes each form of $_FILES, and names
// the errors of PHP.
func TestClientCalls(t *testing.T) {
	const refusals = `["one.jpg","two.jpg"]
["cv.pdf"]
[40,40]
{"cv.pdf":true}
["ticket","expires_at"]
{"none.pdf":"there is no such item"}
true
["posts/7/one.jpg","posts/7/two.jpg"]
["posts/7/one.jpg","posts/7/two.jpg"]
[]
null
there is no such held upload, or its time is over
ID: there is no such held upload, or its time is over
MediaRefusal the name "file/held/../file" has a part that is empty, . or ..
MediaRefusal a.png: content is JPEG, the name says .png
ERROR the alias "content" is not private: its addresses need no signature
`
	const ofPHP = `MediaRefusal a.jpg: it is larger than 2M
MediaRefusal a.jpg: it is larger than the form allows
MediaRefusal a.jpg: it has not arrived completely
MediaRefusal choose a file
RuntimeException PHP has no upload_tmp_dir
RuntimeException PHP cannot write into its upload_tmp_dir
RuntimeException PHP has not received a.jpg: its error 8
`
	clients := map[string][3]string{
		"php":  {"MediaClient.php", strings.Replace(refusals, "ERROR", "RuntimeException", 1) + ofPHP, "-dupload_max_filesize=2M"},
		"node": {"media.mjs", strings.Replace(refusals, "ERROR", "Error", 1), "--no-warnings"},
	}
	for name, call := range clientCalls {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, "account "+site.APIKey+" "+site.CheapHash+" {\nmay upload list delete sign\n}\n"+
				"storage default {\ndriver local $ROOT\nsub_folder_format /\n}\nimage_alias content {\nfacts\n}\n"+
				"file_alias content\nfile_alias papers {\nprivate\n}\n", "media")
			server, taken := counted(t, s)
			folder := t.TempDir()
			script := filepath.Join(folder, "calls."+map[string]string{"php": "php", "node": "mjs"}[name])
			for file, content := range map[string]string{script: call, filepath.Join(folder, "phpRrnXW3"): sample.JPEG(t, 40, 30), filepath.Join(folder, "php7tK"): sample.PDF} {
				site.PutFile(t, file, content)
			}
			out, problems, code := program(t, name, []string{"TMPDIR=" + folder, "MEDIA_SERVER=" + server},
				clients[name][2], script, filepath.Join(clientFolder(t), clients[name][0]), filepath.Join(folder, "phpRrnXW3"), filepath.Join(folder, "php7tK"))
			if want := clients[name][1]; code != 0 || out != want {
				t.Errorf("exit code %d, it prints\n%s%s\nwant\n%s", code, out, problems, want)
			}
			if logins := strings.Count(strings.Join(taken(), "\n"), "/api/auth/generateToken"); logins != 1 {
				t.Errorf("it logs in %d times", logins)
			}
		})
	}
}

// TestClientsOfASilentServer: a visitor does not wait without end for a ticket of a server that is
// silent. The clients wait for 30 seconds, here for one.
func TestClientsOfASilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for name, c := range map[string]struct{ client, text, shorter, script, call string }{
		"php": {"MediaClient.php", " ? 30 :", " ? 1 :", "call.php", `<?php require __DIR__ . '/MediaClient.php';
			try { MediaClient::fromEnvironment()->ticket([]); } catch (RuntimeException $e) { echo 'no ticket'; }`},
		"node": {"media.mjs", "timeout(30_000)", "timeout(1000)", "call.mjs", `import { getTicket } from './media.mjs';
			getTicket({}).catch(() => process.stdout.write('no ticket'));`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			client := string(site.ReadFile(t, filepath.Join(clientFolder(t), c.client)))
			if strings.Count(client, c.text) != 1 {
				t.Fatalf("%s has not one %q", c.client, c.text)
			}
			site.PutFile(t, filepath.Join(folder, c.client), strings.Replace(client, c.text, c.shorter, 1))
			script := filepath.Join(folder, c.script)
			site.PutFile(t, script, c.call)
			out, problems, code := program(t, name, []string{"TMPDIR=" + folder, "MEDIA_SERVER=http://" + silent.Addr().String()}, script)
			if code != 0 || out != "no ticket" {
				t.Errorf("exit code %d: %s%s", code, out, problems)
			}
		})
	}
}
