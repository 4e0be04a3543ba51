package ingest

import (
	"image/color"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestGroupFails: if a storage cannot make the content or the names of a request durable, all
// commits and removals are rolled back.
func TestGroupFails(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"prepare", "finish"} {
		for name, overwrite := range map[string]bool{"append": false, "overwrite": true} {
			t.Run(step+" "+name, func(t *testing.T) {
				t.Parallel()
				failing := false
				s := onLocal(t, func(op, _ string) error {
					if failing && op == step {
						return storagedrivers.ErrNoSpace
					}
					return nil
				})
				alias := pictures(t, s)
				alias.Overwrite = overwrite
				u := newUploader(alias)
				if _, failures := uploadPictures(t, u, file("a.png", picture(red)), file("b.png", picture(red))); failures != nil {
					t.Fatal(failures)
				}
				before := contents(t, s)
				failing = true
				for _, paint := range []color.NRGBA{blue, unloved} { // unloved has no variant: the old one is removed
					_, failures := uploadPictures(t, u,
						file("a.png", picture(paint)), file("b.png", picture(green)), file("new.png", picture(blue)))
					wantFailure(t, failures, NoSpace, "", "full")
					wantContents(t, s, before)
				}
			})
		}
	}
}
