package item

import (
	"fmt"
	"strings"
	"testing"
)

// TestRefusedExtension: the message names what is accepted, and where other files go.
func TestRefusedExtension(t *testing.T) {
	t.Parallel()
	many := map[string]bool{}
	for i := range 830 {
		many[fmt.Sprintf("x%03d", i)] = true
	}
	few := map[string]bool{"pdf": true, "csv": true}
	for _, c := range []struct {
		kind       Kind
		origin     Origin
		extensions map[string]bool
		ext, want  string
	}{
		{File, OriginHTTP, few, "exe", ".exe is not accepted; files may be csv or pdf"},
		{File, OriginHTTP, few, "", "the name has no extension; files may be csv or pdf"},
		{File, OriginHTTP, map[string]bool{"pdf": true}, "exe", ".exe is not accepted; files may be pdf"},
		{Image, OriginHTTP, few, "mp4", ".mp4 is not accepted; images may be csv or pdf; files of other kinds go to /api/upload/file"},
		{Image, OriginHTTP, few, "webp", ".webp is not accepted; images may be csv or pdf; to accept it, an administrator adds formats webp to the image alias photos"},
		{Image, OriginHTTP, few, "", "the name has no extension; images may be csv or pdf; files of other kinds go to /api/upload/file"},
		{Image, OriginPanel, few, "mp4", ".mp4 is not accepted; images may be csv or pdf; choose a library for files"},
		{Image, OriginPanel, few, "heic", ".heic is not accepted; images may be csv or pdf; to accept it, an administrator adds formats heic to the image alias photos"},
		{File, OriginPanel, few, "exe", ".exe is not accepted; files may be csv or pdf"},
		{File, OriginHTTP, many, "exe", "x058, x059 or 770 others"},
	} {
		alias := &Alias{Kind: c.kind, Name: "photos", Extensions: c.extensions}
		got := alias.refusedExtension(c.ext, c.origin).Error()
		if got != c.want && (len(c.extensions) < 10 || !strings.HasSuffix(got, c.want)) {
			t.Errorf("%s of %d: %q, want %q", c.ext, len(c.extensions), got, c.want)
		}
	}
}
