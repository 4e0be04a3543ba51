package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
)

// claims are those of one item, as all its attempts see them.
type claims struct {
	mu   sync.Mutex
	id   string
	all  []Claim
	fail int // the claim after which an attempt fails, as after a crash; -1 for none
}

func newClaims(id string) *claims { return &claims{id: id, fail: -1} }

// request returns a request for the item; that of a nil receiver is not repeatable.
func (c *claims) request() Request {
	if c == nil {
		return Request{Kind: aliases.File}
	}
	return Request{Kind: aliases.File, ID: c.id, Claim: c.claim}
}

func (c *claims) claim(_ context.Context, all []Claim) error {
	for i := range all {
		claim, err := c.one(all[i].Try, all[i])
		if err != nil {
			return err
		}
		claim.Item = all[i].Item
		all[i] = claim
	}
	return nil
}

// one returns the n-th claim.
func (c *claims) one(n int, proposed Claim) (Claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := n < len(c.all)
	if !earlier {
		c.all = append(c.all, proposed)
	}
	claim := c.all[n]
	claim.Earlier = earlier
	if n == c.fail {
		return claim, errors.New("crash")
	}
	return claim, nil
}

// onceOn returns an uploader on a storage, with a function that stores an item.
func onceOn(t *testing.T, s *storagedrivers.Storage, overwrite bool) (*aliases.Alias, func(once *claims, content string) (string, aliases.Failures)) {
	t.Helper()
	alias := newAlias(t, aliases.DefaultAlias, s)
	alias.Overwrite = overwrite
	u := newUploader(alias)
	return alias, func(once *claims, content string) (string, aliases.Failures) {
		items, failures := u.Upload(t.Context(), once.request(), Single("a.txt", strings.NewReader(content)))
		checked(t, items, failures)
		return strings.Join(filenames(items), " "), failures
	}
}

// TestOnce: an item that is uploaded again after a success is not stored again.
func TestOnce(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		for _, overwrite := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, " overwrite ", overwrite), func(t *testing.T) {
				t.Parallel()
				s := storage(t, nil)
				_, store := onceOn(t, s, overwrite)
				once := newClaims("one")
				first, failures := store(once, "text")
				if failures != nil {
					t.Fatal(failures)
				}
				for range 3 {
					if again, failures := store(once, "text"); failures != nil || again != first {
						t.Errorf("again %q, %v; want %q", again, failures, first)
					}
				}
				wantContents(t, s, map[string]string{"file/content/a.txt": "text"})
			})
		}
	}
}

// TestOnceAfterCrash: an attempt that crashed before the commit is repeated under its claim, or
// under the next name if another item has taken that.
func TestOnceAfterCrash(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := storage(t, nil)
			_, store := onceOn(t, s, false)
			crashed := newClaims("one")
			crashed.fail = 0
			if _, failures := store(crashed, "text"); failures == nil {
				t.Fatal("no crash")
			}
			if _, failures := store(newClaims("two"), "other"); failures != nil {
				t.Fatal(failures)
			}
			crashed.fail = -1
			name, failures := store(crashed, "text")
			if failures != nil || name == "a.txt" {
				t.Errorf("stored %q, %v", name, failures)
			}
			wantContents(t, s, map[string]string{"file/content/a.txt": "other", "file/content/" + name: "text"})
			if again, failures := store(crashed, "text"); failures != nil || again != name {
				t.Errorf("again %q, %v", again, failures)
			}
		})
	}
}

// TestOnceReplaced: an item that was replaced after its claim is not stored over the newer one.
func TestOnceReplaced(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := storage(t, nil)
			_, store := onceOn(t, s, true)
			once := newClaims("one")
			for _, content := range []string{"old", "new"} {
				if _, failures := store(once, "old"); failures != nil {
					t.Fatal(failures)
				}
				if _, failures := store(nil, content); failures != nil {
					t.Fatal(failures)
				}
			}
			if name, failures := store(once, "old"); failures != nil || name != "a.txt" {
				t.Errorf("stored %q, %v", name, failures)
			}
			wantContents(t, s, map[string]string{"file/content/a.txt": "new"})
		})
	}
}

// TestOnceReplacedImage: an image that was replaced after its claim leaves the newer one its variant.
func TestOnceReplacedImage(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := storage(t, nil)
			alias := imageAlias(t, s)
			alias.Overwrite = true
			u := newUploader(alias)
			once := newClaims("one")
			again := func() {
				t.Helper()
				req := once.request()
				req.Kind = aliases.Image
				items, failures := u.Upload(t.Context(), req, Single("a.png", strings.NewReader(pngOf(red))))
				if checked(t, items, failures); failures != nil {
					t.Error(failures)
				}
			}
			again()
			if _, failures := uploadImages(t, u, file("a.png", pngOf(blue))); failures != nil {
				t.Error(failures)
			}
			again()
			wantContents(t, s, map[string]string{"a.png": pngOf(blue), "a.png.webp": webpOf(blue)})
		})
	}
}

// sweeping is a local driver that counts its sweeps.
type sweeping struct {
	*local.Driver
	sweeps int
}

func (d *sweeping) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	d.sweeps++
	return d.Driver.Sweep(ctx, opts)
}

// TestOnceRecovers: an attempt recovers the commit of a dead process if an earlier one has claimed the
// filename.
func TestOnceRecovers(t *testing.T) {
	t.Parallel()
	d := &sweeping{Driver: local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))}
	_, store := onceOn(t, closed(t, "local", d, storagedrivers.Options{}), false)
	once := newClaims("one")
	for n := range 3 {
		if _, failures := store(once, "text"); failures != nil {
			t.Error(failures)
		}
		if d.sweeps != n {
			t.Errorf("%d sweeps after %d earlier attempts", d.sweeps, n)
		}
	}
}

// TestOnceOfMany: items of the same name and bytes are different ones, and concurrent attempts of
// one item store it once.
func TestOnceOfMany(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := storage(t, nil)
			alias, _ := onceOn(t, s, false)
			var wg sync.WaitGroup
			var mu sync.Mutex
			names := [5]map[string]bool{}
			for n := range names {
				names[n] = map[string]bool{}
			}
			for n := range names {
				once := newClaims(fmt.Sprint("upload", n))
				for range 3 {
					u := newUploader(alias) // as in another process, with its own memory of names
					wg.Go(func() {
						items, failures := u.Upload(t.Context(), once.request(), Single("a.txt", strings.NewReader("text")))
						mu.Lock()
						defer mu.Unlock()
						if failures != nil {
							t.Error(failures)
							return
						}
						names[n][items[0].Filename] = true
					})
				}
			}
			wg.Wait()
			all := map[string]bool{}
			for n, of := range names {
				if len(of) != 1 {
					t.Errorf("upload %d has the names %v", n, of)
				}
				for name := range of {
					all[name] = true
				}
			}
			if len(all) != len(names) {
				t.Errorf("items %v", names)
			}
			stored := 0
			for range s.All(t.Context(), "") {
				stored++
			}
			if stored != len(names) {
				t.Errorf("%d objects", stored)
			}
		})
	}
}

func TestEqualReaders(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"a", "b", false},
		{"a", "", false},
		{"", "a", false},
		{long, long, true},
		{long, long + "x", false},
		{long + "x", long, false},
		{long[:64<<10], long[:64<<10], true},
	} {
		if got, err := equalReaders(strings.NewReader(c.a), strings.NewReader(c.b)); got != c.want || err != nil {
			t.Errorf("%d and %d bytes: %t, %v", len(c.a), len(c.b), got, err)
		}
	}
	broken := errors.New("broken")
	if _, err := equalReaders(strings.NewReader("a"), io.MultiReader(strings.NewReader("a"), errReader{broken})); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// TestPrecheck: what is sure to be refused is refused without its bytes.
func TestPrecheck(t *testing.T) {
	t.Parallel()
	u := newUploader(newAlias(t, aliases.DefaultAlias, onMemory(t, nil)))
	for _, c := range []struct {
		name   string
		req    Request
		size   int64
		reason aliases.Reason
	}{
		{"a.exe", Request{}, 1, aliases.BadContent},
		{"a.php.txt", Request{}, 1, aliases.BadContent},
		{"a.txt", Request{Alias: "none"}, 1, aliases.BadRequest},
		{"a.txt", Request{SubFolder: "../x"}, 1, aliases.BadRequest},
		{"a.txt", Request{Allows: func(string) bool { return false }}, 1, aliases.Forbidden},
		{"a.txt", Request{}, 1<<20 + 1, aliases.TooLarge},
	} {
		c.req.Kind = aliases.File
		w := watch(u)
		failures := u.Precheck(t.Context(), c.req, c.name, c.size)
		if len(failures) != 1 || failures[0].Reason != c.reason {
			t.Errorf("%s %+v: got %v, want %v", c.name, c.req, failures, c.reason)
		}
		if len(w.refusals) != 1 {
			t.Errorf("%s: %d refusals observed", c.name, len(w.refusals))
		}
	}
	if failures := u.Precheck(t.Context(), Request{Kind: aliases.File}, "a.txt", 1<<20); failures != nil {
		t.Errorf("refused: %v", failures)
	}
}

// TestOnceLocks: an attempt under Overwrite locks the name that an earlier one has claimed, which may
// be that of another day.
func TestOnceLocks(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			alias, store := onceOn(t, storage(t, nil), true)
			once := newClaims("one")
			once.all = []Claim{{Filename: "yesterday/a.txt"}}
			unlock, err := alias.Lock(t.Context(), "yesterday/a.txt")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan aliases.Failures)
			go func() {
				_, failures := store(once, "text")
				ended <- failures
			}()
			select {
			case failures := <-ended:
				t.Errorf("stored while the name is locked: %v", failures)
				unlock()
			case <-time.After(50 * time.Millisecond):
				unlock()
				if failures := <-ended; failures != nil {
					t.Error(failures)
				}
			}
		})
	}
}
