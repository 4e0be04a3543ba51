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

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// TestLargeFilesAreSentEarly: a large file is sent to its storage before the request is complete, under
// the name that it will probably have. A wrong guess leaves nothing.
func TestLargeFilesAreSentEarly(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 9<<20/16)
	html := "<!DOCTYPE html>" + big
	for _, c := range []struct {
		name  string
		parts []send
		taken string   // a key
		early []string // keys
		want  []string
	}{
		{
			"large",
			[]send{file("A.txt", big)},
			"",
			[]string{"file/content/a.txt"},
			[]string{"file/content/a.txt"},
		},
		{
			"sub folder before",
			[]send{field("sub_folder", "in/Here"), file("a.txt", big)},
			"",
			[]string{"file/content/in/here/a.txt"},
			[]string{"file/content/in/here/a.txt"},
		},
		{
			"sub folder after",
			[]send{file("a.txt", big), field("sub_folder", "in")},
			"",
			[]string{"file/content/a.txt"},
			[]string{"file/content/in/a.txt"},
		},
		{
			"alias after",
			[]send{file("a.txt", big), field("alias", "papers")},
			"",
			[]string{"file/content/a.txt"},
			[]string{"file/papers/a.txt"},
		},
		{
			"taken",
			[]send{file("a.txt", big)},
			"file/content/a.txt",
			[]string{"file/content/a.txt"},
			[]string{fmt.Sprintf("file/content/a-%d.txt", noon.Unix()), "file/content/a.txt"},
		},
		{
			"two",
			[]send{file("a.txt", big), file("b.txt", big)},
			"",
			[]string{"file/content/a.txt"},
			[]string{"file/content/a.txt", "file/content/b.txt"},
		},
		{
			"refused",
			[]send{file("a.pdf", html)},
			"",
			[]string{"file/content/a.pdf"},
			nil,
		},
		{
			"small",
			[]send{file("a.txt", big[:1<<20])},
			"",
			nil,
			[]string{"file/content/a.txt"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var (
				mu   sync.Mutex
				puts []string
			)
			begun := make(chan struct{}, 10)
			s := onMemory(t, func(op, key string) error {
				if op == "put" {
					mu.Lock()
					defer mu.Unlock()
					puts = append(puts, key)
					begun <- struct{}{}
				}
				return nil
			})
			if c.taken != "" {
				put(t, s, c.taken, "taken")
				<-begun
				puts = nil
			}
			content, papers := newAlias(t, item.DefaultAlias, s), newAlias(t, "papers", s)
			content.MaxSize, papers.MaxSize = 1<<30, 1<<30
			u := newUploader(content, papers)
			var early []string
			body := formBody(c.parts...)
			last := observed{bytes.NewReader(body[len(body)-10:]), func() {
				if early == nil {
					for range c.early {
						<-begun
					}
					mu.Lock()
					defer mu.Unlock()
					early = slices.Clone(puts)
				}
			}}
			src := io.MultiReader(bytes.NewReader(body[:len(body)-10]), last)
			_, failures := uploadBody(t, u, src, Upload{Request: Request{Kind: item.File}})
			if (failures == nil) != (c.want != nil) {
				t.Error(failures)
			}
			if !slices.Equal(early, c.early) {
				t.Errorf("sent %q early, want %q", early, c.early)
			}
			got := contents(t, s)
			if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, c.want) {
				t.Errorf("stored %q, want %q", keys, c.want)
			}
			for key, text := range got {
				if key != c.taken && len(text) != len(c.parts[0].value) && len(text) != len(big) {
					t.Errorf("%q has %d bytes", key, len(text))
				}
			}
		})
	}
}

// TestReplacementIsSentOnce: a large replacement is sent early on condition of the item that was found
// before, and again if that is another one by now.
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
