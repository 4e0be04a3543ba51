package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// web has the contents at addresses. An error is the failure of an address; "broken" breaks off.
type web struct {
	contents map[string]string
	failures map[string]*item.Failure
	broken   string
	asked    atomic.Int64
	running  atomic.Int64
	most     atomic.Int64
	open     atomic.Int64
}

type closing struct {
	io.Reader
	w *web
}

func (c closing) Close() error {
	c.w.open.Add(-1)
	return nil
}

// get is an [Importer]. The name is the last segment of the address.
func (w *web) get(_ context.Context, address string, _ *item.Alias) (string, io.ReadCloser, *item.Failure) {
	w.asked.Add(1)
	n := w.running.Add(1)
	defer w.running.Add(-1)
	for m := w.most.Load(); n > m && !w.most.CompareAndSwap(m, n); m = w.most.Load() {
	}
	time.Sleep(time.Millisecond)
	plain, _, _ := strings.Cut(address, "?")
	if failure := w.failures[plain]; failure != nil {
		return "", nil, failure
	}
	w.open.Add(1)
	body := io.Reader(strings.NewReader(w.contents[plain]))
	if plain == w.broken {
		body = io.MultiReader(body, iotest.ErrReader(&item.Failure{Reason: item.RemoteFailed, Message: "it broke off"}))
	}
	return plain[strings.LastIndexByte(plain, '/')+1:], closing{body, w}, nil
}

// TestImport: the contents at addresses are files of the request, in their order.
func TestImport(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 100_000)
	onEach(t, func(t *testing.T, open opener) {
		s, other := open(t, nil), open(t, nil)
		alias, papers := newAlias(t, item.DefaultAlias, s), newAlias(t, "papers", other)
		u := newUploader(alias, papers)
		u.Staging = NewStaging(1<<20, 100) // small ones stay in memory
		w := &web{contents: map[string]string{"http://x/Read%20Me.txt": "one", "http://x/b.txt": long, "http://x/c.txt": "three"}}
		body := formBody(
			field("url", "http://x/Read%20Me.txt?token=1"), file("a.txt", "file"), field("url", ""), field("url", " http://x/b.txt  "),
			file("b.txt", "file too"), field("alias", "papers"), field("url", "http://x/c.txt"), field("sub_folder", "in"),
		)
		items, failures := uploadBody(t, u, bytes.NewReader(body), Upload{Request: Request{Kind: item.File}, Import: w.get})
		want := []string{"in/read-20me.txt", "in/a.txt", "in/b.txt", "in/b-1795176000.txt", "in/c.txt"}
		names := filenames(items)
		slices.Sort(names[2:4]) // either may get the time
		slices.Sort(want[2:4])
		if failures != nil || !slices.Equal(names, want) {
			t.Errorf("%q, %v, want %q", names, failures, want)
		}
		wantContents(t, s, nil)
		got := contents(t, other)
		if got["file/papers/in/read-20me.txt"] != "one" || got["file/papers/in/c.txt"] != "three" || got["file/papers/in/a.txt"] != "file" ||
			len(got["file/papers/in/b.txt"])+len(got["file/papers/in/b-1795176000.txt"]) != len(long)+len("file too") {
			t.Errorf("stored are %d objects", len(got))
		}
		if w.open.Load() != 0 {
			t.Errorf("%d contents are open", w.open.Load())
		}
	})
}

// TestImportRefused: all or nothing, with one failure for each address, which is its filename.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	one := []send{field("url", "http://x/a.txt")}
	forbidden := &item.Failure{Reason: item.Forbidden, Message: "no right"}
	limited := func(string) bool { return false }
	for _, c := range []struct {
		name  string
		parts []send
		req   Upload
		want  []string // reason and filename of each failure
		asked int64
	}{
		{"refused address", []send{field("url", "http://x/bad.txt"), file("a.txt", "file")}, Upload{}, []string{"bad_request http://x/bad.txt"}, 1},
		{"slow", []send{field("url", "http://x/slow.txt")}, Upload{}, []string{"remote_slow http://x/slow.txt"}, 1},
		{
			"several",
			[]send{field("url", "http://x/bad.txt"), file("a.exe", "file"), field("url", "http://x/slow.txt"), field("url", "http://x/a.txt")},
			Upload{},
			[]string{"bad_request http://x/bad.txt", "bad_content a.exe", "remote_slow http://x/slow.txt"},
			3,
		},
		{"breaks off", []send{field("url", "http://x/broken.txt")}, Upload{}, []string{"remote_failed http://x/broken.txt"}, 1},
		{"too large", []send{field("url", "http://x/huge.txt")}, Upload{}, []string{"too_large http://x/huge.txt"}, 1},
		{"content", []send{field("url", "http://x/a.pdf")}, Upload{}, []string{"bad_content http://x/a.pdf"}, 1},
		{"extension", []send{field("url", "http://x/a.exe")}, Upload{}, []string{"bad_content http://x/a.exe"}, 1},
		{"no right to import", append(one, file("a.txt", "file")), Upload{NoImports: forbidden}, []string{"forbidden "}, 0},
		{"no right to upload", append(one, file("a.txt", "file")), Upload{NoFiles: forbidden}, []string{"forbidden "}, 0},
		{"unknown alias", append(one, field("alias", "none")), Upload{}, []string{"bad_request "}, 0},
		{"alias of another account", one, Upload{Request: Request{Allows: limited}}, []string{"forbidden "}, 0},
		{"sub folder", append(one, field("sub_folder", "..")), Upload{}, []string{"bad_request http://x/a.txt"}, 1},
		{"empty", []send{field("url", "")}, Upload{}, []string{"bad_request "}, 0},
		{"too many", append(one, file("a.txt", ""), field("url", "http://x/b.txt"), field("url", "http://x/c.txt")), Upload{}, []string{"too_large "}, 0},
		{"same name twice", append(one, file("a.txt", "file")), Upload{Request: Request{Alias: "over"}}, []string{"conflict http://x/a.txt", "conflict a.txt"}, 1},
		{"addresses are no fields", append(one, field("url", "http://x/b.txt"), field("x", ""), field("y", "")), Upload{}, []string{"too_large "}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onLocal(t, nil)
			alias, over := newAlias(t, item.DefaultAlias, s), newAlias(t, "over", s)
			alias.MaxSize, over.Overwrite = 100_000, true
			u := newUploader(alias, over)
			u.Limits.MaxFiles, u.Limits.MaxFields = 4, 1
			if c.name == "too many" {
				u.Limits.MaxFiles = 3
			}
			observed := watch(u)
			w := &web{
				contents: map[string]string{"http://x/a.txt": "text", "http://x/a.pdf": "GIF8", "http://x/huge.txt": strings.Repeat("x", 100_001), "http://x/broken.txt": strings.Repeat("x", 90_000)},
				failures: map[string]*item.Failure{
					"http://x/bad.txt": {Reason: item.BadRequest, Message: "the address may not be fetched"}, "http://x/slow.txt": {Reason: item.RemoteSlow, Message: "slow"},
				},
				broken: "http://x/broken.txt",
			}
			c.req.Kind, c.req.Import = item.File, w.get
			_, failures := uploadBody(t, u, bytes.NewReader(formBody(c.parts...)), c.req)
			got := make([]string, len(failures))
			for i, f := range failures {
				got[i] = f.Reason.String() + " " + f.Filename
			}
			if !slices.Equal(got, c.want) || w.asked.Load() != c.asked || w.open.Load() != 0 {
				t.Errorf("%q after %d requests, want %q after %d; %d are open", got, w.asked.Load(), c.want, c.asked, w.open.Load())
			}
			wantContents(t, s, nil)
			if len(observed.failures) != len(failures) {
				t.Errorf("observed %v", observed.failures)
			}
		})
	}
}

// TestImportIsIgnored: without an importer, the field is one like any other.
func TestImportIsIgnored(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	items, failures := uploadForm(t, newUploader(newAlias(t, item.DefaultAlias, s)), field("url", "http://x/a.txt"), file("a.txt", "file"))
	if failures != nil || len(items) != 1 {
		t.Errorf("%v, %v", items, failures)
	}
}

// TestImportsAtOnce: four addresses of a request are fetched side by side.
func TestImportsAtOnce(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	w := &web{contents: map[string]string{}}
	parts := make([]send, 0, 40)
	for i := range 40 {
		address := fmt.Sprintf("http://x/%02d.txt", i)
		w.contents[address] = address
		parts = append(parts, field("url", address))
	}
	items, failures := uploadBody(t, newUploader(newAlias(t, item.DefaultAlias, s)), bytes.NewReader(formBody(parts...)), Upload{Request: Request{Kind: item.File}, Import: w.get})
	if failures != nil || len(items) != 40 || w.most.Load() > 4 || w.most.Load() < 2 {
		t.Errorf("%d items, %v, %d at once", len(items), failures, w.most.Load())
	}
	for i, item := range items {
		if want := fmt.Sprintf("%02d.txt", i); item.Filename != want {
			t.Errorf("%s, want %s", item.Filename, want)
		}
	}
}

// TestImportSum: all imports of a request end when they have too many bytes together, also those
// that have not begun or wait for their server.
func TestImportSum(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64]int{0: 6, 600: 6, 599: 0} {
		u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)))
		w := &web{contents: map[string]string{}}
		var parts []send
		for n := range 6 {
			address := fmt.Sprintf("https://example.com/%d.txt", n)
			w.contents[address] = strings.Repeat("x", 100)
			parts = append(parts, field("url", address))
		}
		if want == 0 {
			parts = append(parts, field("url", "https://example.com/slow"))
		}
		get := func(ctx context.Context, address string, alias *item.Alias) (string, io.ReadCloser, *item.Failure) {
			if strings.HasSuffix(address, "slow") {
				<-ctx.Done()
				return "", nil, &item.Failure{Reason: item.RemoteSlow, Message: "it is too slow"}
			}
			return w.get(ctx, address, alias)
		}
		req := Upload{Request: Request{Kind: item.File}, Import: get, MaxImported: most}
		items, failures := uploadBody(t, u, bytes.NewReader(formBody(parts...)), req)
		if len(items) != want || w.open.Load() != 0 {
			t.Errorf("%d bytes: %d items, %v; %d are open", most, len(items), failures, w.open.Load())
		}
		for _, failure := range failures {
			if failure.Reason != item.TooLarge || failure.Filename == "" {
				t.Errorf("%d bytes: %+v", most, failure)
			}
		}
	}
}

// TestImportTime: the imports of a request end together.
func TestImportTime(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context, _ string, _ *item.Alias) (string, io.ReadCloser, *item.Failure) {
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%v", ctx.Err())
		}
		return "", nil, &item.Failure{Reason: item.RemoteSlow, Message: "slow"}
	}
	_, failures := uploadBody(t, newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil))), bytes.NewReader(formBody(field("url", "http://x/a.txt"))),
		Upload{Request: Request{Kind: item.File}, Import: slow, ImportTime: time.Millisecond})
	wantFailure(t, failures, item.RemoteSlow, "http://x/a.txt", "slow")
}

// TestImportIsObservedWithoutQuery: the query of an address may be a credential. The caller, who
// sent it, sees it.
func TestImportIsObservedWithoutQuery(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://x/a%2Fb.txt?key=1#y": "http://x/a%2Fb.txt", "https://me:secret@x/a": "https://x/a", "http://x/%zz?key=1": "", "a.txt?key=1": "a.txt",
	} {
		u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)))
		observed := watch(u)
		failing := func(context.Context, string, *item.Alias) (string, io.ReadCloser, *item.Failure) {
			return "", nil, &item.Failure{Reason: item.BadRequest, Message: "why"}
		}
		_, failures := uploadBody(t, u, bytes.NewReader(formBody(field("url", address))), Upload{Request: Request{Kind: item.File}, Import: failing})
		wantFailure(t, failures, item.BadRequest, address, "why")
		wantFailure(t, observed.failures, item.BadRequest, want, "why")
	}
}
