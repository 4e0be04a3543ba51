package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/caddymedia/media/caddymedia/integration/pages"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestDocsLinks: every relative link leads to a file or folder of the repository, and every #anchor
// to a heading. Every page is linked from another one.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	root, linked := pages.Root(t), map[string]bool{pages.Top: true}
	all := append(pages.All(t), githubPages(t)...)
	for _, page := range all {
		for _, match := range link.FindAllStringSubmatch(prose(t, page), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
				linked[target] = true
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil || strings.HasPrefix(target, "..") {
				t.Errorf("%s: %s leads nowhere", page, match[1])
				continue
			}
			if anchor != "" && !anchors(t, target)[anchor] {
				t.Errorf("%s: there is no heading %s", page, match[1])
			}
		}
	}
	for _, page := range all {
		if !linked[page] {
			t.Errorf("no page links %s", page)
		}
	}
}

// githubPages returns the pages in .github.
func githubPages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(pages.Root(t), ".github", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = ".github/" + filepath.Base(name)
	}
	return names
}

// prose returns a page without its fenced blocks.
func prose(t *testing.T, page string) string {
	t.Helper()
	return fenced.ReplaceAllString(pages.Text(t, page), "")
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(prose(t, page), -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, match[1])] = true
	}
	return found
}
