package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

const finishing = site.Account + `
storage keep {
	driver local $ROOT/keep
}
storage replace {
	driver local $ROOT/replace
	overwrite_strategy overwrite
}
image_alias content {
	storage keep
	prefix /
	webp
}
image_alias over {
	storage replace
	prefix /
	webp
}
`

// TestCrashInFinish kills a Caddy at random moments in the last requests of uploads. Package mediahttp
// has a test that ends a process after each operation of the storage. After the restart alone, every
// image that was received completely is stored once, with its variant.
func TestCrashInFinish(t *testing.T) {
	t.Parallel()
	const rounds = 6
	random := rand.New(rand.NewPCG(seed(t), 0))
	c := site.NewChild(t)
	c.Start(finishing)
	client := c.HTTP1()
	token := client.MustLogin(t)
	alone, asked, answered, early := 0, 0, 0, 0
	want := map[string][]string{"keep": nil, "replace": nil}
	for round := range rounds {
		img := []byte(sample.EncodePNG(t, sample.Photo(900+round, 700)))
		wait := time.Duration(random.IntN(400)) * time.Millisecond
		var all [2]*site.Tus
		ended := make(chan error, len(all))
		for i, alias := range []string{"content", "over"} {
			u := &site.Tus{HTTP: client.Client, Base: client.Base, Token: token, Kind: "image"}
			all[i] = u
			name := fmt.Sprintf("image-%d.png", round)
			if err := u.Create(t.Context(), int64(len(img)), "filename", name, "alias", alias, "sub_folder", "/"); err != nil {
				t.Fatal(err)
			}
			go func() { ended <- u.Patch(context.Background(), 0, bytes.NewReader(img), int64(len(img))) }()
			want[[]string{"keep", "replace"}[i]] = append(want[[]string{"keep", "replace"}[i]], name, name+".webp")
		}
		time.Sleep(wait) // the random moment
		c.Kill()
		for range all {
			if err := <-ended; err == nil {
				answered++
			}
		}
		received := receivedCompletely(t, c, len(img))
		c.Start(finishing)
		if received { // both, so no request is needed
			alone++
			site.Eventually(t, "the restart alone finishes the uploads", func() bool {
				return slices.Equal(items(t, c, "keep"), sorted(want["keep"])) && slices.Equal(items(t, c, "replace"), sorted(want["replace"])) &&
					len(open(t, c)) == 0
			})
		} else {
			early++
		}
		for _, u := range all {
			offset, err := u.Head(t.Context())
			if err == nil && u.Filename == "" {
				asked++
				err = u.Patch(t.Context(), offset, bytes.NewReader(img[offset:]), int64(len(img))-offset)
			}
			if err != nil || u.Filename != fmt.Sprintf("image-%d.png", round) {
				t.Fatalf("round %d after %v: %q, error %v", round, wait, u.Filename, err)
			}
		}
		for folder, names := range want {
			if got := items(t, c, folder); !slices.Equal(got, sorted(names)) {
				t.Fatalf("round %d after %v: %s has %q, want %q", round, wait, folder, got, sorted(names))
			}
		}
	}
	t.Logf("%d requests were answered before the kill; %d rounds ended by the restart alone, %d kills came earlier; %d uploads were continued",
		answered, alone, early, asked)
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// items returns the files of a storage, without those of uploads and hidden ones.
func items(t *testing.T, c *site.Child, storage string) []string {
	t.Helper()
	return slices.DeleteFunc(site.FilesBelow(t, filepath.Join(c.Root, storage)), func(name string) bool {
		return strings.HasPrefix(name, "@uploads/") || strings.HasPrefix(name, ".")
	})
}

// open returns the records and the data of unfinished uploads.
func open(t *testing.T, c *site.Child) []string {
	t.Helper()
	return slices.DeleteFunc(site.FilesBelow(t, c.Root), func(name string) bool {
		return !strings.Contains(name, "@uploads/open/") && !strings.Contains(name, "@uploads/data/")
	})
}

// receivedCompletely reports whether no unfinished upload lacks bytes.
func receivedCompletely(t *testing.T, c *site.Child, size int) bool {
	t.Helper()
	left := open(t, c)
	for _, record := range left {
		id, ok := idOf(record)
		if !ok {
			continue
		}
		complete := slices.ContainsFunc(left, func(name string) bool {
			return strings.HasSuffix(name, "/"+id+".bytes") && sizeOf(t, filepath.Join(c.Root, name)) == int64(size)
		})
		if !complete {
			return false
		}
	}
	return true
}

// idOf returns the ID in the path of a record.
func idOf(path string) (id string, ok bool) {
	_, name, ok := strings.Cut(path, "@uploads/open/")
	if !ok {
		return "", false
	}
	_, id, ok = strings.Cut(name, ".")
	return id, ok
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
