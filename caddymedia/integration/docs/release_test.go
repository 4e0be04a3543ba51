package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// needsRelease matches texts that lead to what only a published version has.
var needsRelease = regexp.MustCompile(`caddymedia/media/releases|ghcr\.io/caddymedia|caddy add-package|apt install \./caddymedia` +
	`|go (get|install) [^\n]*caddymedia/media|--with github\.com/caddymedia/media/[^\n]*\n*(\x60\x60\x60|$)`)

// published reports whether the changelog begins with a version.
func published(t *testing.T) bool {
	t.Helper()
	title := regexp.MustCompile(`(?m)^## (.+)$`).FindStringSubmatch(pages.Text(t, ".github/CHANGELOG.md"))
	if title == nil {
		t.Fatal("the changelog has no version")
	}
	return strings.HasPrefix(title[1], "v")
}

// TestDocsReleases: while no version is published, no page leads to what needs one. From the first
// version on, no page says that there is none.
func TestDocsReleases(t *testing.T) {
	t.Parallel()
	for _, page := range append(pages.All(t), githubPages(t)...) {
		text := pages.Text(t, page)
		switch found := needsRelease.FindString(text); {
		case published(t) && strings.Contains(text, "\n<!-- until the first release -->\n"):
			t.Errorf("%s: run .release/first-version", page)
		case !published(t) && found != "":
			t.Errorf("%s: nothing is published yet, so that nobody can follow %q", page, found)
		}
	}
}

// TestFirstVersion: .release/first-version leaves no mark on any page, README.md then begins with a
// download, and has all that .ci/release checks after the publication.
func TestFirstVersion(t *testing.T) {
	t.Parallel()
	if published(t) {
		t.Skip("it was run for the first version")
	}
	sh, root, folder := servers.Program(t, "sh"), pages.Root(t), t.TempDir()
	for _, name := range append(pages.All(t), ".release/first-version") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, folder, sh+" .release/first-version")
	for _, page := range pages.All(t) {
		text, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range []string{"the first release", "\n-->\n", "no release yet", "no version"} {
			if strings.Contains(string(text), mark) {
				t.Errorf("%s still has %q", page, mark)
			}
		}
		if page != pages.Top {
			continue
		}
		_, first, _ := strings.Cut(string(text), "\n```sh\n")
		if !strings.HasPrefix(first, "curl -L https://github.com/caddymedia/media/releases/latest/download/caddymedia_linux_amd64.tar.gz") {
			t.Errorf("it begins with %.80s", first)
		}
		for _, command := range []string{
			"\n```sh\ngo run ./caddymedia/caddy run --config Caddyfile.example\n```\n", "\napt install ./caddymedia_amd64.deb\n", "\ndocker run ",
			"--with github.com/caddymedia/media/caddymedia\n```\n", "\ncaddy add-package github.com/caddymedia/media/caddymedia\n",
		} {
			if !strings.Contains(string(text), command) {
				t.Errorf("it has no %q", command)
			}
		}
	}
}
