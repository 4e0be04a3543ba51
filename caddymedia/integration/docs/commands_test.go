package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// firstUpload are the pages whose commands use the variables of one session, in the order of a
// reader.
var firstUpload = []string{
	pages.Top, "http-login.md", "http-uploads.md", "held.md", "http-retries.md", "http-items.md", "http-serving.md", "commands.md",
}

// TestDocsFirstUpload runs the commands of the README and of the pages about HTTP and commands that
// talk to Caddyfile.example, one after the other. The answers are like those in the README.
func TestDocsFirstUpload(t *testing.T) {
	servers.Program(t, "curl")
	s, _ := site.RunExample(t, "off")
	folder := t.TempDir()
	img := sample.JPEG(t, 40, 30)
	for name, content := range map[string]string{
		"photo.jpg": img, "Můj výlet 1.jpg": img, "report.pdf": sample.PDF,
	} {
		site.PutFile(t, filepath.Join(folder, name), content)
	}
	script := "set -e\n"
	for _, page := range firstUpload {
		for _, block := range pages.Blocks(t, page) {
			if block.Language == "sh" && strings.Contains(block.Text, "curl") && !needsRelease.MatchString(block.Text) {
				script += block.Text
			}
		}
	}
	for _, page := range pages.All(t) {
		listed := slices.Contains(firstUpload, page) || slices.Contains(firstUpload, filepath.Base(page)) && page != pages.Top
		for _, block := range pages.Blocks(t, page) {
			if !listed && block.Language == "sh" && strings.Contains(block.Text, "$SERVER/") {
				t.Errorf("the commands of %s are not run", page)
			}
		}
	}
	out := run(t, folder, strings.ReplaceAll(script, "http://localhost:8080", s.URL))
	for _, want := range []string{
		`"token":"`, `/photo.jpg","webp":"`, `/muj-vylet-1.jpg","webp":"`, `/reports/2026/report.pdf"`, `/content/summer/photo.jpg.webp"`,
		`/content/users/17/avatar.jpg"`, `"filename":"summer/photo-`, `"folders":[]`, `{"success":true,"trash":"`, `"result":[{"held":"`, `{"filename":"summer/b.jpg","deleted":false,`, `"result":[],"deleted":0,`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in the answers\n%s", want, out)
		}
	}
	shapes := map[string]bool{}
	for answer := range strings.SplitSeq(strings.ReplaceAll(out, "}{", "}\n{"), "\n") {
		shapes[shape(answer)] = true
	}
	for _, block := range pages.Blocks(t, pages.Top) {
		if example := strings.TrimSpace(block.Text); block.Language == "json" && !shapes[shape(example)] {
			t.Errorf("no answer is like that of the README:\n%s\n%s", example, out)
		}
	}
}

// shape returns a JSON text with every text and number replaced.
func shape(answer string) string {
	return regexp.MustCompile(`:("[^"]*"|[0-9]+)`).ReplaceAllString(answer, ":0")
}

// TestDocsAdmin runs the commands of all pages for the admin endpoint, with Caddyfile.example.
func TestDocsAdmin(t *testing.T) {
	servers.Program(t, "curl")
	admin := servers.FreeAddress(t)
	s, _ := site.RunExample(t, admin)
	s.Login(t, "try-out", "only for trying out")
	wants := map[string]string{
		"config/apps/media/storages/default":          `"driver":`,
		"config/apps/media/accounts/try-out":          `"$argon2id$`,
		"-X PATCH":                                    "",
		"media/health":                                `"state":"up"`,
		"media/usage":                                 `"storages":[`,
		"metrics | grep":                              "\ncaddy_media_storage_up{",
		"media/storages/default/probe":                `{"ok":true`,
		"media/items/img/content?folder=26-11/20&":    `{"success":true,"result":[],"folders":[]}`,
		"-X DELETE localhost:2019/media/accounts/try": `{"ended":`,
	}
	for _, command := range commands(t) {
		if !strings.Contains(command, "localhost:2019") {
			continue
		}
		// The last that fits: the more specific ones begin with another word.
		want, known := "", false
		for part, expected := range wants {
			if strings.Contains(command, part) && (!known || strings.HasPrefix(part, "-X")) {
				want, known = expected, true
			}
		}
		if !known {
			t.Errorf("no answer is known to %s", command)
			continue
		}
		site.Eventually(t, command+" answers "+want, func() bool {
			return strings.Contains(run(t, ".", strings.ReplaceAll(command, "localhost:2019", admin)), want)
		})
	}
}

// flag is an option of a command.
var flag = regexp.MustCompile(`--[a-z-]+`)

// TestDocsCommandFlags: `caddy media` has every command and flag in the documentation.
func TestDocsCommandFlags(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	help := map[string]string{}
	for _, command := range commands(t) {
		_, args, found := strings.Cut(command, "caddy media ")
		if !found {
			continue
		}
		args, _, _ = strings.Cut(args, "#")
		name, _, _ := strings.Cut(strings.TrimSpace(args), " ")
		if help[name] == "" {
			cmd := exec.Command(program, "media", name, "--help")
			cmd.Env = append(os.Environ(), site.RunCaddy+"=1")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "caddy media "+name) {
				t.Fatalf("caddy media %s: %v\n%s", name, err, out)
			}
			help[name] = string(out)
		}
		for _, f := range flag.FindAllString(args, -1) {
			if !strings.Contains(help[name], f+" ") {
				t.Errorf("caddy media %s has no %s", name, f)
			}
		}
	}
	if len(help) < 5 {
		t.Errorf("the documentation shows %d commands", len(help))
	}
}

// tested are the beginnings of commands, and the test that runs them. Commands in the list that
// begin with a comment sign are not run, for the reason in it.
var tested = map[string]string{
	"curl -sS http://localhost:8080": "TestDocsFirstUpload",
	"curl -sS $SERVER":               "TestDocsFirstUpload",
	"curl -sS \"$SERVER":             "TestDocsFirstUpload",
	"curl -sS -T":                    "TestDocsFirstUpload",
	"curl -sSf -T":                   "TestS3Programs",
	"curl -sSf -o copy.pdf":          "TestS3Programs",
	"SERVER=":                        "TestDocsFirstUpload",
	"KEY=":                           "TestDocsFirstUpload",
	"for attempt":                    "TestDocsFirstUpload",
	"done":                           "TestDocsFirstUpload",
	"TOKEN=":                         "TestDocsFirstUpload",
	"TICKET=":                        "TestDocsFirstUpload",
	"curl -sS localhost:2019":        "TestDocsAdmin",
	"export AWS_ACCESS_KEY_ID=":      "TestS3Programs",
	"aws ":                           "TestS3Programs",
	"rclone ":                        "TestS3Programs",
	"curl -sS -X":                    "TestDocsAdmin",
	"curl -sS 'localhost:2019":       "TestDocsAdmin",
	"caddy media ":                   "TestDocsCommandFlags",
	"export MEDIA_SERVER=":           "TestClients",
	"export MEDIA_SIGNING_KEY=":      "TestDocsSign",
	"curl -sS $SERVER/api/sign":      "TestDocsSign",
	"php ":                           "TestClients",
	"cp -r caddymedia/integration/":  "TestGoProgram",
	"cd /srv/people":                 "TestGoProgram",
	"go build":                       "TestGoProgram",
	"OTEL_":                          "the tests of package observe",
	"go run ./caddymedia/caddy run":  ".ci/run",
	"go test":                        "# the tests themselves",
	"MEDIA_BENCH_DIR=":               "# the benchmarks take minutes",
	".ci/run release":                ".ci/run",
	"xcaddy build":                   ".ci/run",
	"mkdir -p /srv/":                 "TestDocsRestore",
	"tar -C /srv":                    "TestDocsRestore",
	"cp /etc/caddy/Caddyfile":        "TestDocsRestore",
	"sed 's|/srv/media":              "TestDocsRestore",
	"diff -r":                        "TestDocsRestore",
	"mkdir -p /srv/backup/wal":       "TestDocsDatabase",
	"psql ":                          "TestDocsDatabase",
	"pg_basebackup ":                 "TestDocsDatabase",
	"cd /var/lib/postgresql":         "TestDocsDatabase",
	"mv main ":                       "TestDocsDatabase",
	"cp -a /srv/backup":              "TestDocsDatabase",
	"touch main/":                    "TestDocsDatabase",
	"echo \"re":                      "TestDocsDatabase",
	"caddy reload":                   "# it has no part of ours",
	"HELD=":                          "TestDocsHeld",
	"apt-get install -y clamav":      "TestDocsClamd",
	"docker ":                        "# it needs docker; .ci/release runs the image",
	"curl -L":                        ".ci/release check-public",
	"caddy add-package":              ".ci/release check-public",
	"sha256sum ":                     "# it needs a published release",
	"cosign ":                        "# it needs a published release",
	"gh ":                            "# it needs a published release",
	"diff ":                          "# it needs a published release",
	"goreleaser ":                    ".ci/release",
	"tar -xzf .release/dist":         ".ci/release",
	"cd caddymedia":                  ".ci/release",
	"./caddy run":                    ".ci/release",
	"cd /var/lib/media":              ".ci/release",
	"apt install ./":                 ".ci/release, by dpkg",
	"install -":                      "# it changes the system",
	"echo \"SHOP_PASSWORD_HASH=":     "# it changes the system",
	"cp -p /usr/bin/":                "# it changes the system",
	"mv /usr/bin/":                   "# it changes the system",
	"(set -a ":                       "# it needs the system of the recipe",
	"runuser ":                       "# it needs the system of the recipe",
	"dpkg-divert ":                   "# it changes the system",
	"update-alternatives ":           "# it changes the system",
	"useradd ":                       "# it changes the system",
	"systemctl ":                     "# it changes the system",
	"cp -a /var/lib/":                "# it changes the system",
	"chown ":                         "# it changes the system",
	"rm /usr/bin/":                   "# it changes the system",
	"export SHOP_PASSWORD_HASH=":     "# it needs docker",
}

// TestDocsCommandsAreTested: a test runs every command in the documentation, or there is a reason
// why none does.
func TestDocsCommandsAreTested(t *testing.T) {
	t.Parallel()
	for _, command := range commands(t) {
		known := false
		for begin := range tested {
			known = known || strings.HasPrefix(command, begin)
		}
		if !known {
			t.Errorf("no test runs %s", command)
		}
	}
	ci, err := os.ReadFile(filepath.Join(pages.Root(t), ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	_, build, _ := strings.Cut(pages.Example(t, pages.Top, "sh", "xcaddy build"), "--with")
	for line := range strings.Lines("--with" + build) {
		if line = strings.Trim(line, "\t\\\n "); !strings.Contains(string(ci), line) {
			t.Errorf(".ci/run does not build with %s", line)
		}
	}
}

// commands returns the commands in the sh blocks of all pages, each on one line.
func commands(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, page := range pages.All(t) {
		for _, block := range pages.Blocks(t, page) {
			if block.Language != "sh" {
				continue
			}
			joined := regexp.MustCompile(`(\\|\|)\n\t+`).ReplaceAllString(block.Text, "$1 ")
			for line := range strings.Lines(strings.ReplaceAll(joined, "\\ ", "")) {
				if line = strings.TrimSpace(line); line != "" {
					all = append(all, line)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// run runs a script in a folder and returns its output.
func run(t *testing.T, folder, script string) string {
	t.Helper()
	cmd := exec.Command(servers.Program(t, "sh"), "-c", script)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v in\n%s\n%s", err, script, out)
	}
	return string(out)
}

// TestDocsJSON: every block of JSON in the documentation is whole, or each of its lines is.
func TestDocsJSON(t *testing.T) {
	t.Parallel()
	for _, page := range pages.All(t) {
		for _, block := range pages.Blocks(t, page) {
			if block.Language != "json" || json.Valid([]byte(block.Text)) {
				continue
			}
			for line := range strings.Lines(block.Text) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: %s", page, line)
				}
			}
		}
	}
}

// took is the time of a step in the output of a probe, and the spaces after it.
var took = regexp.MustCompile(`[0-9.]+(µs|ms|s) +`)

// TestDocsProbe: a probe of a local folder prints what the documentation shows, except for the
// times.
func TestDocsProbe(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	config := filepath.Join(folder, "Caddyfile")
	site.PutFile(t, config, "{\n\tmedia {\n\t\tstorage default {\n\t\t\tdriver local "+folder+"/media\n\t\t}\n\t}\n}\n")
	cmd := exec.CommandContext(t.Context(), program, "media", "probe", "--config", config)
	cmd.Env = append(os.Environ(), site.RunCaddy+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, want := took.ReplaceAllString(string(out), ""), took.ReplaceAllString(pages.Example(t, "commands.md", "", "can be used"), "")
	if got != want {
		t.Errorf("it prints\n%s\nThe documentation shows\n%s", got, want)
	}
}

// TestDocsRestore runs the commands of the backup and of the trial of its restore, in folders of
// the test.
func TestDocsRestore(t *testing.T) {
	servers.Program(t, "tar")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	media := filepath.Join(folder, "srv", "media")
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Account + "storage default {\ndriver local " + media + "\n}\nimage_alias content {\nwebp\n}\n")
	client, image := c.HTTP1(), sample.JPEG(t, 40, 30)
	answer := client.UploadImage(t, client.MustLogin(t), "content", "photo.jpg", image)
	if len(answer.Result) != 1 {
		t.Fatalf("%+v", answer)
	}
	stored := filepath.FromSlash(answer.Result[0].Filename)
	for _, key := range []string{"@uploads/open/x", "img/content@renditions/x"} { // not in a backup
		site.PutFile(t, filepath.Join(media, key), "x")
	}
	if err := os.Remove(filepath.Join(media, "img", "content", stored+".webp")); err != nil {
		t.Fatal(err)
	}
	site.PutFile(t, filepath.Join(folder, "etc", "caddy", "Caddyfile"), string(site.ReadFile(t, filepath.Join(c.Home, "Caddyfile"))))
	caddy := filepath.Join(folder, "bin", "caddy")
	site.PutFile(t, caddy, "#!/bin/sh\n"+site.RunCaddy+"=1 exec "+program+" \"$@\"\n")
	if err := os.Chmod(caddy, 0o700); err != nil {
		t.Fatal(err)
	}
	script := "set -e\nPATH=" + filepath.Dir(caddy) + ":$PATH\n"
	for _, begin := range []string{"mkdir -p /srv/backup", "mkdir -p /srv/trial"} {
		script += pages.Example(t, "operations.md", "sh", begin)
	}
	out := run(t, folder, strings.NewReplacer("/srv", folder+"/srv", "/etc/caddy", folder+"/etc/caddy").Replace(script))
	if !strings.Contains(out, "can be used\n") || strings.Contains(out, "Only in") {
		t.Errorf("it prints\n%s", out)
	}
	trial := filepath.Join(folder, "srv", "trial", "media")
	if got := string(site.ReadFile(t, filepath.Join(trial, "img", "content", stored))); got != image {
		t.Errorf("the restored item has %d bytes, want %d", len(got), len(image))
	}
	for name, want := range map[string]bool{stored + ".webp": true, "../content@renditions": false, "../../@uploads": false} {
		if _, err := os.Stat(filepath.Join(trial, "img", "content", name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
