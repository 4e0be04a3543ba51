package listing_test

import (
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestPage: a folder that the service returns again is added once, even if pages without
// folders are between.
func TestPage(t *testing.T) {
	t.Parallel()
	cursor := ""
	for i, step := range []struct {
		token   string // that the service is asked with
		folders []string
		want    []string
	}{
		{"", []string{"a/", ".hidden/", "b/", "b/"}, []string{"a/", "b/"}},
		{"token 1", []string{"b/", "c/", "/"}, []string{"c/"}},
		{"token 2", nil, nil},
		{"token 3", []string{"c/"}, nil},
		{"token 4", []string{"c/", "d/"}, []string{"d/"}},
	} {
		page, token := listing.Resume(cursor)
		test.Equal(t, token, step.token, "page", i, "token")
		for _, folder := range step.folders {
			page.TakeFolder(folder)
		}
		got := page.End("token " + string(rune('1'+i)))
		if cursor = got.Next; !slices.Equal(got.Folders, step.want) || cursor == "" {
			t.Errorf("page %d: folders %q, want %q; cursor %q", i, got.Folders, step.want, cursor)
		}
	}
	page, _ := listing.Resume(cursor)
	if got := page.End(""); got.Next != "" {
		t.Errorf("the last page has the cursor %q", got.Next)
	}
}
