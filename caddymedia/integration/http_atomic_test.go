package integration

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// TestSeveralFailures: every failing file is listed under its submitted name, in the order sent.
// The status of the answer is the highest of theirs.
func TestSeveralFailures(t *testing.T) {
	s := startSite(t, basic+"image_alias tiny {\nmax_size 200B\n}", "media")
	good, large := gifOf(t), jpegOf(t, 30, 30)
	for _, c := range []struct {
		name  string
		parts []formPart
		want  int
		names []string
	}{
		{"one of three", []formPart{file("a.gif", good), file("Bad Ü.JPG", good), file("c.gif", good)}, 415, []string{"Bad Ü.JPG"}},
		{"extension and content", []formPart{file("x.php", "x"), file("a.gif", good), file("y.png", good)}, 415, []string{"x.php", "y.png"}},
		{"name and content", []formPart{file("../a.gif", good), file("y.png", good)}, 415, []string{"../a.gif", "y.png"}},
		{"size and name", []formPart{field("alias", "tiny"), file("big.jpg", large), file("/a.gif", good), file("b.gif", good)}, 413, []string{"big.jpg", "/a.gif"}},
		{"size and content", []formPart{file("big.jpg", large), file(`y "1".png`, good), field("alias", "tiny")}, 415, []string{"big.jpg", `y "1".png`}},
		{"all, one name", []formPart{file("a.jpg", good), file("a.jpg", good)}, 415, []string{"a.jpg", "a.jpg"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			for _, f := range s.uploadImage(t, c.parts...).failures(t, c.want) {
				names = append(names, f.Filename)
			}
			if !reflect.DeepEqual(names, c.names) {
				t.Errorf("failures of %q, want %q", names, c.names)
			}
			s.wantNothing(t)
		})
	}
}

// TestAllOrNothing: if one of three files is bad, in any position, nothing is stored, and a storage
// that overwrites is unchanged.
func TestAllOrNothing(t *testing.T) {
	s := startSite(t, account+"storage default {\ndriver local $ROOT\noverwrite_strategy overwrite\nsub_folder_format /\n}\nfile_alias content", "media")
	for i := range 3 {
		s.uploadFile(t, file(fmt.Sprintf("%d.txt", i), "old")).one(t)
	}
	before := files(t, s.root)
	for i := range 3 {
		parts := make([]formPart, 0, 3)
		for j := range 3 {
			parts = append(parts, file(fmt.Sprintf("%d.txt", j), strings.Repeat("new", 1000)))
		}
		parts[i] = file("bad.pdf", "text")
		s.uploadFile(t, parts...).failures(t, http.StatusUnsupportedMediaType)
		if after := files(t, s.root); !reflect.DeepEqual(before, after) {
			t.Errorf("bad file at %d: the storage has changed", i)
		}
	}
}

// TestUndo: a file that fails at commit rolls back those before it. Here a folder has the name of
// the last one.
func TestUndo(t *testing.T) {
	for name, strategy := range map[string]string{"append": "", "overwrite": "overwrite_strategy overwrite\n"} {
		t.Run(name, func(t *testing.T) {
			s := startSite(t, account+"storage default {\ndriver local $ROOT\nsanitize off\nsub_folder_format /\n"+strategy+"}\nfile_alias content", "media")
			s.uploadFile(t, file("old.txt", "old")).one(t)
			s.uploadFile(t, field("sub_folder", "c.txt"), file("x.txt", "x")).one(t)
			before := files(t, s.root)
			r := s.uploadFile(t, file("old.txt", "new"), file("b.txt", "new"), file("c.txt", "new"))
			if r.status < 400 {
				t.Fatalf("%d %s", r.status, r.body)
			}
			if got := r.failures(t, r.status); len(got) != 1 || got[0].Filename != "c.txt" {
				t.Errorf("failures %+v, want c.txt alone", got)
			}
			if after := files(t, s.root); !reflect.DeepEqual(before, after) {
				t.Errorf("the storage has changed: %v", after)
			}
		})
	}
}
