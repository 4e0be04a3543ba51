// Package pages reads the documentation for tests: README.md and the pages in caddymedia/docs.
package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Top is the README.md of the repository.
const Top = "README.md"

// A Block is a fenced part of a page.
type Block struct {
	Language string
	Text     string
	Line     int // of its first line
}

// Root returns the folder of the repository.
func Root(tb testing.TB) string {
	tb.Helper()
	folder, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			tb.Fatal("no go.mod above the folder of the test")
		}
		folder = filepath.Dir(folder)
	}
}

// All returns the names of all pages, relative to Root: README.md and those in caddymedia/docs.
func All(tb testing.TB) []string {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(Root(tb), "caddymedia", "docs", "*.md"))
	if err != nil || len(names) == 0 {
		tb.Fatalf("no pages: %v", err)
	}
	for i, name := range names {
		names[i] = "caddymedia/docs/" + filepath.Base(name)
	}
	return append(names, Top)
}

// later is a text that the first release shows: see .release/first-version.
var later = regexp.MustCompile(`(?ms)^<!-- from the first release$.*?^-->$`)

// Text returns the text of a page as readers see it, line by line. Its name is relative to Root;
// one without a folder is in caddymedia/docs, except for Top.
func Text(tb testing.TB, page string) string {
	tb.Helper()
	if page != Top && !strings.Contains(page, "/") {
		page = "caddymedia/docs/" + page
	}
	text, err := os.ReadFile(filepath.Join(Root(tb), filepath.FromSlash(page)))
	if err != nil {
		tb.Fatal(err)
	}
	return later.ReplaceAllStringFunc(string(text), func(hidden string) string {
		return strings.Repeat("\n", strings.Count(hidden, "\n"))
	})
}

// Blocks returns the fenced blocks of a page in their order.
func Blocks(tb testing.TB, page string) []Block {
	tb.Helper()
	var blocks []Block
	var open *Block
	line := 0
	for text := range strings.Lines(Text(tb, page)) {
		line++
		language, fence := strings.CutPrefix(text, "```")
		switch {
		case fence && open != nil:
			blocks, open = append(blocks, *open), nil
		case fence:
			open = &Block{Language: strings.TrimSpace(language), Line: line + 1}
		case open != nil:
			open.Text += text
		}
	}
	if open != nil {
		tb.Fatalf("%s:%d: a block without an end", page, open.Line)
	}
	return blocks
}

// Example returns the first block of a language on a page that begins with text, or else the first
// that contains it.
func Example(tb testing.TB, page, language, text string) string {
	tb.Helper()
	for _, fits := range []func(block, text string) bool{strings.HasPrefix, strings.Contains} {
		for _, block := range Blocks(tb, page) {
			if block.Language == language && fits(block.Text, text) {
				return block.Text
			}
		}
	}
	tb.Fatalf("%s has no %s example with %q", page, language, text)
	return ""
}

// Media returns the lines inside the global option media of a Caddyfile.
func Media(tb testing.TB, caddyfile string) string {
	tb.Helper()
	_, media, found := strings.Cut(caddyfile, "\n\tmedia {\n")
	media, _, ended := strings.Cut(media, "\n\t}\n")
	if !found || !ended {
		tb.Fatalf("no global option media in\n%s", caddyfile)
	}
	return media + "\n"
}
