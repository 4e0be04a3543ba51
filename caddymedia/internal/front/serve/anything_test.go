package serve

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// TestAnyContentIsSaved: browsers save unchecked content, and run none of it.
func TestAnyContentIsSaved(t *testing.T) {
	t.Parallel()
	for extension, want := range map[string][2]string{
		item.AnyExtension: {sandbox, "attachment; filename=a.png"}, "png": {"", ""},
	} {
		header := http.Header{}
		alias := &item.Alias{Kind: item.File, Extensions: map[string]bool{extension: true}}
		setHeaders(header, target{alias: alias, filename: "a.png"}, storagedrivers.Info{Key: "file/a.png", ContentType: "image/png"})
		got := [2]string{header.Get("Content-Security-Policy"), header.Get("Content-Disposition")}
		if got != want || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %q, want %q", extension, got, want)
		}
	}
}
