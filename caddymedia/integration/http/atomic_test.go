package http_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestSeveralFailures: every failing file is listed under its submitted name, in the order sent.
// The status of the answer is the highest of theirs.
func TestSeveralFailures(t *testing.T) {
	s := site.Start(t, site.Basic+"image_alias tiny {\nmax_size 200B\n}", "media")
	good, large := sample.GIF(t), sample.JPEG(t, 30, 30)
	for _, c := range []struct {
		name  string
		parts []site.Part
		want  int
		names []string
	}{
		{"one of three", []site.Part{site.File("a.gif", good), site.File("Bad Ü.JPG", good), site.File("c.gif", good)}, 415, []string{"Bad Ü.JPG"}},
		{"extension and content", []site.Part{site.File("x.php", "x"), site.File("a.gif", good), site.File("y.png", good)}, 415, []string{"x.php", "y.png"}},
		{"name and content", []site.Part{site.File("../a.gif", good), site.File("y.png", good)}, 415, []string{"../a.gif", "y.png"}},
		{"size and name", []site.Part{site.Field("alias", "tiny"), site.File("big.jpg", large), site.File("/a.gif", good), site.File("b.gif", good)}, 413, []string{"big.jpg", "/a.gif"}},
		{"size and content", []site.Part{site.File("big.jpg", large), site.File(`y "1".png`, good), site.Field("alias", "tiny")}, 415, []string{"big.jpg", `y "1".png`}},
		{"all, one name", []site.Part{site.File("a.jpg", good), site.File("a.jpg", good)}, 415, []string{"a.jpg", "a.jpg"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			failures := s.UploadImage(t, c.parts...).Failures(t, c.want)
			names := make([]string, 0, len(failures))
			for _, f := range failures {
				names = append(names, f.Filename)
			}
			if !reflect.DeepEqual(names, c.names) {
				t.Errorf("failures of %q, want %q", names, c.names)
			}
			s.WantNothing(t)
		})
	}
}

// TestAllOrNothing: if one of three files is bad, in any position, nothing is stored, and a storage
// that overwrites is unchanged.
func TestAllOrNothing(t *testing.T) {
	s := site.Start(t, site.Account+"storage default {\ndriver local $ROOT\noverwrite_strategy overwrite\nsub_folder_format /\n}\nfile_alias content", "media")
	for i := range 3 {
		s.UploadFile(t, site.File(fmt.Sprintf("%d.txt", i), "old")).One(t)
	}
	before := site.Files(t, s.Root)
	for i := range 3 {
		parts := make([]site.Part, 0, 3)
		for j := range 3 {
			parts = append(parts, site.File(fmt.Sprintf("%d.txt", j), strings.Repeat("new", 1000)))
		}
		parts[i] = site.File("bad.pdf", "text")
		s.UploadFile(t, parts...).Failures(t, http.StatusUnsupportedMediaType)
		if after := site.Files(t, s.Root); !reflect.DeepEqual(before, after) {
			t.Errorf("bad file at %d: the storage has changed", i)
		}
	}
}

// TestUndo: a file that fails at commit rolls back those before it. Here a folder has the name of
// the last one.
func TestUndo(t *testing.T) {
	for name, strategy := range map[string]string{"append": "", "overwrite": "overwrite_strategy overwrite\n"} {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, site.Account+"storage default {\ndriver local $ROOT\nsanitize off\nsub_folder_format /\n"+strategy+"}\nfile_alias content", "media")
			s.UploadFile(t, site.File("old.txt", "old")).One(t)
			s.UploadFile(t, site.Field("sub_folder", "c.txt"), site.File("x.txt", "x")).One(t)
			before := site.Files(t, s.Root)
			r := s.UploadFile(t, site.File("old.txt", "new"), site.File("b.txt", "new"), site.File("c.txt", "new"))
			if r.Status < 400 {
				t.Fatalf("%d %s", r.Status, r.Body)
			}
			if got := r.Failures(t, r.Status); len(got) != 1 || got[0].Filename != "c.txt" {
				t.Errorf("failures %+v, want c.txt alone", got)
			}
			if after := site.Files(t, s.Root); !reflect.DeepEqual(before, after) {
				t.Errorf("the storage has changed: %v", after)
			}
		})
	}
}
