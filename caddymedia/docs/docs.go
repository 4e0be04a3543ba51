// Package docs holds the documentation, so that a program has that of its own version. It renders
// nothing: the pages are Markdown, as in the repository. Begin with llms.txt in [Pages], which
// lists them.
package docs

import "embed"

// Pages are the pages of the documentation, llms.txt, which lists them, and llms-full.txt, which
// has all of them and README.md.
//
//go:embed *.md *.txt
var Pages embed.FS
