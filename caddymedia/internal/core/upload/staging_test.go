package upload

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// observed calls look before each Read.
type observed struct {
	io.Reader
	look func()
}

func (o observed) Read(p []byte) (int, error) {
	o.look()
	return o.Reader.Read(p[:min(len(p), 100)])
}

// TestSmallItemsHoldNoFiles: small files stay in memory until their request is complete. Large
// files, and those without free memory, are staged at once.
func TestSmallItemsHoldNoFiles(t *testing.T) {
	t.Parallel()
	small := map[string]string{"a.txt": "one", "b.txt": "", "c.txt": strings.Repeat("x", headSize-1)}
	for _, c := range []struct {
		name          string
		memory, files int64
		contents      map[string]string
		most          int64 // files that are held before the end of the body
		busy          bool
	}{
		{"small", 1 << 20, 100, small, 0, false},
		{"large", 1 << 20, 100, map[string]string{"a.txt": strings.Repeat("x", headSize), "b.txt": strings.Repeat("x", headSize+1)}, 2, false},
		{"no memory", headSize, 100, small, 3, false},
		{"files of half the limit", 1 << 20, 6, small, 0, false},
		{"too many files", 1 << 20, 5, small, 0, true},
		{"too many files, no memory", 0, 5, small, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			u := newUploader(newAlias(t, item.DefaultAlias, s))
			u.Staging = NewStaging(c.memory, c.files)
			parts := make([]send, 0, len(c.contents))
			want := map[string]string{}
			for name, content := range c.contents {
				parts = append(parts, file(name, content))
				want["file/content/"+name] = content
			}
			var most int64
			body := observed{bytes.NewReader(formBody(parts...)), func() { most = max(most, u.Staging.files.Used()) }}
			_, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.File, Actor: item.Actor{Account: "a"}}}, Form(body, boundary))
			if c.busy {
				wantFailure(t, failures, item.Busy, "", "too many uploads")
				want = map[string]string{}
			} else if failures != nil {
				t.Error(failures)
			}
			if most != c.most {
				t.Errorf("%d files are held before the end of the body, want %d", most, c.most)
			}
			if memory, files := u.Staging.memory.Used(), u.Staging.files.Used(); memory != 0 || files != 0 {
				t.Errorf("%d bytes and %d files are held in the end", memory, files)
			}
			got := contents(t, s)
			if !maps.Equal(got, want) {
				t.Errorf("stored %d items, want %d", len(got), len(want))
			}
		})
	}
}

// TestVariantsHoldFiles: variants reserve files, and so do images that are restaged without
// metadata or on another storage, which need a second file meanwhile.
func TestVariantsHoldFiles(t *testing.T) {
	t.Parallel()
	plain, text := pngOf(red), withText(pngOf(red), "a")
	for _, c := range []struct {
		name    string
		files   int64 // half of them are for one account
		content string
		other   bool
		busy    bool
	}{
		{"variant", 4, plain, false, false},
		{"no file for the variant", 3, plain, false, true},
		{"variant and metadata", 6, text, false, false},
		{"no file without metadata", 5, text, false, true},
		{"other storage", 4, plain, true, false},
		{"no file in the other storage", 3, plain, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			one := imageAlias(t, s)
			one.Imaging.Strip = imaging.StripOn
			u := newUploader(one)
			parts := []send{file("a.png", c.content)}
			if c.other {
				other := imageAlias(t, onMemory(t, nil))
				other.Name = "other"
				u.Aliases[item.Image]["other"] = other
				parts = append(parts, field("alias", "other"))
			}
			u.Staging = NewStaging(0, c.files)
			_, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.Image, Actor: item.Actor{Account: "a"}}}, Form(bytes.NewReader(formBody(parts...)), boundary))
			if c.busy {
				wantFailure(t, failures, item.Busy, "a.png", "too many uploads")
			} else if failures != nil {
				t.Error(failures)
			}
			if files := u.Staging.files.Used(); files != 0 {
				t.Errorf("%d files are held in the end", files)
			}
		})
	}
}

// TestRefusedSmallItemsAreNotStaged: a small file is checked in memory, and staged only if all
// files of its request are accepted.
func TestRefusedSmallItemsAreNotStaged(t *testing.T) {
	t.Parallel()
	var staged atomic.Int64
	s := onLocal(t, func(op, _ string) error {
		if op == "stage" {
			staged.Add(1)
		}
		return nil
	})
	alias := imageAlias(t, s)
	alias.RenameMismatched, alias.Imaging.Strip = true, imaging.StripOn
	u := newUploader(alias)
	u.Staging = NewStaging(1<<20, 100)
	for _, tt := range []struct {
		second string
		staged int64
	}{{"no image", 0}, {pngOf(red), 4}} { // with the variants
		staged.Store(0)
		_, failures := uploadImages(t, u, file("a.jpg", pngOf(blue)), file("b.png", tt.second))
		if failed := failures != nil; failed != (tt.staged == 0) || staged.Load() != tt.staged {
			t.Errorf("%.8q: failures %v, staged %d files, want %d", tt.second, failures, staged.Load(), tt.staged)
		}
		if held := u.Staging.memory.Used() + u.Staging.files.Used(); held != 0 {
			t.Errorf("%.8q: %d bytes and files are still reserved", tt.second, held)
		}
	}
	if stored := contents(t, s); stored["a.png"] != pngOf(blue) || stored["b.png"] != pngOf(red) {
		t.Errorf("stored %q", slices.Collect(maps.Keys(stored)))
	}
}

// TestLargeFilesAreSentEarly: a large file is sent to its storage before the request is complete,
// under the name that it will probably have. A wrong guess leaves nothing.
func TestLargeFilesAreSentEarly(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 9<<20/16)
	html := "<!DOCTYPE html>" + big
	for _, c := range []struct {
		name  string
		parts []send
		taken string // a key
		early string // keys, below file/
		want  string
	}{
		{"large", []send{file("A.txt", big)}, "", "content/a.txt", "content/a.txt"},
		{"sub folder before", []send{field("sub_folder", "in/Here"), file("a.txt", big)}, "", "content/in/here/a.txt", "content/in/here/a.txt"},
		{"sub folder after", []send{file("a.txt", big), field("sub_folder", "in")}, "", "content/a.txt", "content/in/a.txt"},
		{"alias after", []send{file("a.txt", big), field("alias", "papers")}, "", "content/a.txt", "papers/a.txt"},
		{"taken", []send{file("a.txt", big)}, "content/a.txt", "content/a.txt", fmt.Sprintf("content/a-%d.txt content/a.txt", noon.Unix())},
		{"two", []send{file("a.txt", big), file("b.txt", big)}, "", "content/a.txt", "content/a.txt content/b.txt"},
		{"refused", []send{file("a.pdf", html)}, "", "content/a.pdf", ""},
		{"small", []send{file("a.txt", big[:1<<20])}, "", "", "content/a.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var (
				mu          sync.Mutex
				puts, early []string
			)
			begun := make(chan struct{}, 10)
			s := onMemory(t, func(op, key string) error {
				if op == "put" {
					mu.Lock()
					defer mu.Unlock()
					puts = append(puts, strings.TrimPrefix(key, "file/"))
					begun <- struct{}{}
				}
				return nil
			})
			if c.taken != "" {
				put(t, s, "file/"+c.taken, "taken")
				<-begun
				puts = nil
			}
			content, papers := newAlias(t, item.DefaultAlias, s), newAlias(t, "papers", s)
			content.MaxSize, papers.MaxSize = 1<<30, 1<<30
			u := newUploader(content, papers)
			body := formBody(c.parts...)
			last := observed{bytes.NewReader(body[len(body)-10:]), func() {
				if early == nil {
					for range strings.FieldsSeq(c.early) {
						<-begun
					}
					mu.Lock()
					defer mu.Unlock()
					early = slices.Clone(puts)
				}
			}}
			src := io.MultiReader(bytes.NewReader(body[:len(body)-10]), last)
			_, failures := uploadBody(t, u, src, Upload{Request: Request{Kind: item.File}})
			if (failures == nil) != (c.want != "") {
				t.Error(failures)
			}
			if strings.Join(early, " ") != c.early {
				t.Errorf("sent %q early, want %q", early, c.early)
			}
			got := contents(t, s)
			keys := strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(got)), " "), "file/", "")
			if keys != c.want {
				t.Errorf("stored %q, want %q", keys, c.want)
			}
			for key, text := range got {
				if key != "file/"+c.taken && len(text) != len(c.parts[0].value) && len(text) != len(big) {
					t.Errorf("%q has %d bytes", key, len(text))
				}
			}
		})
	}
}

// TestReplacementIsSentOnce: a large replacement is sent early on condition of the item that was
// found before, and again if that is another one by now.
func TestReplacementIsSentOnce(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 9<<20/16)
	for _, overtaken := range []bool{false, true} {
		t.Run(fmt.Sprint(overtaken), func(t *testing.T) {
			t.Parallel()
			var puts atomic.Int64
			begun := make(chan struct{}, 10)
			s := onMemory(t, func(op, _ string) error {
				if op == "put" {
					puts.Add(1)
					begun <- struct{}{}
				}
				return nil
			})
			over := newAlias(t, "over", s)
			over.Overwrite, over.MaxSize = true, 1<<30
			put(t, s, "file/over/a.txt", "old")
			stored, err := s.Stat(t.Context(), "file/over/a.txt")
			if err != nil {
				t.Fatal(err)
			}
			if overtaken {
				replace(t, s, "file/over/a.txt", "theirs")
			}
			before := puts.Load()
			for range before {
				<-begun
			}
			body := io.MultiReader(strings.NewReader(big[10:]), observed{bytes.NewReader([]byte(big[:10])), sync.OnceFunc(func() { <-begun })})
			items, failures := newUploader(over).Replace(t.Context(), Replacement{Request: Request{Kind: item.File, Alias: "over"}, Filename: "a.txt", Stored: stored}, Body("a.txt", body))
			checked(t, items, failures)
			if got := contents(t, s)["file/over/a.txt"]; failures != nil || len(got) != len(big) || overtaken != (puts.Load()-before == 2) {
				t.Errorf("%v, %d bytes are stored, sent %d times", failures, len(got), puts.Load()-before)
			}
		})
	}
}
