package upload

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// repetitions are the attempts at one request, whose first attempt began at a time.
type repetitions struct {
	u     *Uploader
	kind  item.Kind
	id    string // OWN by default
	began time.Time
	again bool // an earlier attempt may have stored items
}

// now is the clock of the backends, which are this process.
func now() time.Time { return time.Now() }

// repeating returns the attempts at a request for the only alias of a kind, which began just now.
func repeating(alias *item.Alias) *repetitions {
	return &repetitions{u: newUploader(alias), kind: alias.Kind, began: now()}
}

func (r *repetitions) request() Request {
	return Request{Kind: r.kind, Repetition: &Repetition{ID: cmp.Or(r.id, "OWN"), Began: r.began, Again: r.again}}
}

// store is the next attempt to store the files of a form. It returns their names.
func (r *repetitions) store(t *testing.T, parts ...send) (string, item.Failures) {
	t.Helper()
	items, failures := uploadBody(t, r.u, bytes.NewReader(formBody(parts...)), Upload{Request: r.request(), SubFolder: "/"})
	r.again = true
	return strings.Join(filenames(items), " "), failures
}

// stored is store of an attempt that must store its files under the names.
func (r *repetitions) stored(t *testing.T, want string, parts ...send) {
	t.Helper()
	if got, failures := r.store(t, parts...); failures != nil || got != want {
		t.Errorf("stored %q, %v, want %q", got, failures, want)
	}
}

// timed returns the n-th filename with the time of a.txt, from 0.
func (r *repetitions) timed(n int64) string { return naming.WithTime("a.txt", r.began.Unix()+n) }

// repeatingStorages are storages that know their objects by an ID, and those that do not.
func repeatingStorages() map[string]func(t *testing.T) *storagedrivers.Storage {
	return map[string]func(t *testing.T) *storagedrivers.Storage{
		"memory": func(t *testing.T) *storagedrivers.Storage { return onMemory(t, nil) },
		"local":  func(t *testing.T) *storagedrivers.Storage { return onLocal(t, nil) },
		"repeats": func(t *testing.T) *storagedrivers.Storage {
			d := memory.New()
			d.Repeats = true
			return closed(t, "repeats", d, storagedrivers.Options{})
		},
	}
}

// eachStorage runs a test with an alias of each of them.
func eachStorage(t *testing.T, overwrite bool, test func(t *testing.T, alias *item.Alias)) {
	t.Helper()
	for kind, open := range repeatingStorages() {
		t.Run(fmt.Sprint(kind, " overwrite ", overwrite), func(t *testing.T) {
			t.Parallel()
			alias := newAlias(t, item.DefaultAlias, open(t))
			alias.Overwrite = overwrite
			test(t, alias)
		})
	}
}

// eachStrategy is eachStorage under Append Time, and under Overwrite.
func eachStrategy(t *testing.T, test func(t *testing.T, alias *item.Alias)) {
	t.Helper()
	eachStorage(t, false, test)
	eachStorage(t, true, test)
}

var text = file("a.txt", "text")

// TestRepeated: a request that is repeated after a success stores nothing again.
func TestRepeated(t *testing.T) {
	t.Parallel()
	eachStrategy(t, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		for range 3 {
			r.stored(t, "a.txt", text)
		}
		wantContents(t, alias.Storage, map[string]string{"file/content/a.txt": "text"})
	})
}

// TestFirstAttempt: the first attempt of a request takes no object for its own.
func TestFirstAttempt(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		put(t, alias.Storage, "file/content/a.txt", "text")
		r.stored(t, r.timed(0), text)
	})
}

// TestRepeatedAfterCrash: an attempt that crashed before the commit is repeated under the next
// name, if another item has taken the first one meanwhile.
func TestRepeatedAfterCrash(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		put(t, alias.Storage, "file/content/a.txt", "other")
		r.again = true
		for range 2 {
			r.stored(t, r.timed(0), text)
		}
		wantContents(t, alias.Storage, map[string]string{"file/content/a.txt": "other", "file/content/" + r.timed(0): "text"})
	})
}

// TestRepeatedBytesOfOthers: an object with the same bytes is no own one if it is older than the
// request. A backend that knows its objects by their IDs distinguishes a younger one, too.
func TestRepeatedBytesOfOthers(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{true, false} {
		eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
			if !older && !alias.Storage.Features().Repeat {
				t.Skip("it cannot know")
			}
			put(t, alias.Storage, "file/content/a.txt", "text")
			r := repeating(alias)
			if r.again = true; older {
				r.began = r.began.Add(time.Minute)
			}
			r.stored(t, r.timed(0), text)
		})
	}
}

// TestRepeatedClocks: an object that seems to be a little older than the request may be its own,
// because clocks differ, and because some have whole seconds.
func TestRepeatedClocks(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		r.began = r.began.Add(clockError)
		for range 2 {
			r.stored(t, "a.txt", text)
		}
	})
}

// TestRepeatedBeyondFreeName: the item of an earlier attempt is found although the name that was
// taken then is free now.
func TestRepeatedBeyondFreeName(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		put(t, alias.Storage, "file/content/a.txt", "other")
		r.stored(t, r.timed(0), text)
		if err := alias.Storage.Delete(t.Context(), "file/content/a.txt"); err != nil {
			t.Fatal(err)
		}
		r.stored(t, r.timed(0), text)
		wantContents(t, alias.Storage, map[string]string{"file/content/" + r.timed(0): "text"})
	})
}

// TestRepeatedFiles: each object is the item of one file, also of files with the same name and
// bytes. Those that are missing are stored.
func TestRepeatedFiles(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		all := []send{text, file("b.txt", "b"), text, file("a.txt", "other"), text}
		want := fmt.Sprint("a.txt b.txt ", r.timed(0), " ", r.timed(1), " ", r.timed(2))
		r.stored(t, want, all...)
		stored := contents(t, alias.Storage)
		r.stored(t, want, all...)
		for key := range stored { // as if a crash had cut the commit short
			if err := alias.Storage.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if _, failures := r.store(t, all...); failures != nil {
				t.Error(failures)
			}
			got := contents(t, alias.Storage)
			bytes := map[string]int{}
			for _, value := range got {
				bytes[value]++
			}
			if len(got) != len(all) || bytes["text"] != 3 || bytes["b"] != 1 || bytes["other"] != 1 {
				t.Fatalf("without %s: %q", key, got)
			}
		}
	})
}

// TestRepeatedManyFiles: the number of files of one name is not bounded by the tries of one name.
func TestRepeatedManyFiles(t *testing.T) {
	t.Parallel()
	alias := newAlias(t, item.DefaultAlias, onMemory(t, nil))
	r := repeating(alias)
	all := slices.Repeat([]send{text}, 200)
	first, failures := r.store(t, all...)
	if failures != nil {
		t.Fatal(failures)
	}
	if again, failures := r.store(t, all...); failures != nil || len(strings.Fields(again)) != len(strings.Fields(first)) {
		t.Errorf("again %q, %v, want %q", again, failures, first)
	}
	if got := contents(t, alias.Storage); len(got) != len(all) {
		t.Errorf("%d objects", len(got))
	}
}

// TestRepeatedOverwritten: an item that others have replaced since is not stored over the newer
// one, if that is known to be newer. One that may be older than the request is replaced.
func TestRepeatedOverwritten(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		eachStorage(t, true, func(t *testing.T, alias *item.Alias) {
			r := repeating(alias)
			want := "newer"
			if r.began = r.began.Add(-time.Minute); older {
				r.began = r.began.Add(time.Hour)
			}
			if older || !alias.Storage.Features().Local {
				want = "text"
			}
			r.stored(t, "a.txt", text)
			replace(t, alias.Storage, "file/content/a.txt", "newer")
			r.stored(t, "a.txt", text)
			wantContents(t, alias.Storage, map[string]string{"file/content/a.txt": want})
		})
	}
}

// TestRepeatedOverwrittenImage: an image that others have replaced since leaves the newer one its
// variant.
func TestRepeatedOverwrittenImage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		alias := imageAlias(t, open(t, nil))
		alias.Overwrite = true
		r := repeating(alias)
		r.began = r.began.Add(-time.Minute)
		r.stored(t, "a.png", file("a.png", pngOf(red)))
		storeImages(t, r.u, file("a.png", pngOf(blue)))
		r.stored(t, "a.png", file("a.png", pngOf(red)))
		want := red
		if alias.Storage.Features().Local {
			want = blue
		}
		wantContents(t, alias.Storage, map[string]string{"a.png": pngOf(want), "a.png.webp": webpOf(want)})
	})
}

// TestRepeatedVariant: a repetition stores the variant that an earlier attempt could not store any
// more.
func TestRepeatedVariant(t *testing.T) {
	t.Parallel()
	for _, overwrite := range []bool{false, true} {
		for kind, open := range storages {
			t.Run(fmt.Sprint(kind, " overwrite ", overwrite), func(t *testing.T) {
				t.Parallel()
				alias := imageAlias(t, open(t, nil))
				alias.Overwrite = overwrite
				r := repeating(alias)
				r.stored(t, "a.png", file("a.png", pngOf(red)))
				if err := alias.Storage.Delete(t.Context(), "a.png.webp"); err != nil {
					t.Fatal(err)
				}
				w := watch(r.u)
				r.stored(t, "a.png", file("a.png", pngOf(red)))
				if len(w.changes) != 1 || w.changes[0].Item.WebP == "" {
					t.Errorf("changes %+v", w.changes)
				}
				wantContents(t, alias.Storage, map[string]string{"a.png": pngOf(red), "a.png.webp": webpOf(red)})
			})
		}
	}
}

// TestRepeatedCondition: the item of an earlier attempt meets the condition of the request, which
// that has compared. Another item is compared as always.
func TestRepeatedCondition(t *testing.T) {
	t.Parallel()
	eachStrategy(t, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		r.began = r.began.Add(-time.Minute)
		attempt := func() item.Failures {
			req := Upload{Request: r.request(), SubFolder: "/", Matches: isMissing}
			if failures := r.u.Precheck(t.Context(), req, "a.txt", 4); failures != nil {
				return failures
			}
			_, failures := uploadSingle(t, r.u, "a.txt", strings.NewReader("text"), req)
			r.again = true
			return failures
		}
		for range 2 {
			if failures := attempt(); failures != nil {
				t.Error(failures)
			}
		}
		replace(t, alias.Storage, "file/content/a.txt", "other")
		wantFailure(t, attempt(), item.Changed, "a.txt", "condition")
		wantContents(t, alias.Storage, map[string]string{"file/content/a.txt": "other"})
	})
}

// TestRepeatedReplacement: so it is for a replacement.
func TestRepeatedReplacement(t *testing.T) {
	t.Parallel()
	eachStorage(t, true, func(t *testing.T, alias *item.Alias) {
		put(t, alias.Storage, "file/content/a.txt", "old")
		r := repeating(alias)
		r.began = r.began.Add(-time.Minute)
		matches := same(t, alias, "a.txt")
		attempt := func() item.Failures {
			stored, err := item.Stat(t.Context(), alias.Storage, alias.Key("a.txt"))
			if err != nil {
				t.Fatal(err)
			}
			req := Replacement{Request: r.request(), Filename: "a.txt", Matches: matches, Stored: stored}
			if failures := r.u.PrecheckReplacement(t.Context(), req, 4); failures != nil {
				return failures
			}
			_, failures := r.u.Replace(t.Context(), req, Body("a.txt", strings.NewReader("text")))
			r.again = true
			return failures
		}
		for range 2 {
			if failures := attempt(); failures != nil {
				t.Error(failures)
			}
		}
		replace(t, alias.Storage, "file/content/a.txt", "other")
		wantFailure(t, attempt(), item.Changed, "a.txt", "another one")
		r.again = false
		wantFailure(t, attempt(), item.Changed, "a.txt", "another one") // before its body is read
		wantContents(t, alias.Storage, map[string]string{"file/content/a.txt": "other"})
	})
}

// TestRepeatedDates: all attempts use the clock of the first one.
func TestRepeatedDates(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		format, err := naming.ParseFormat("%Y/%m")
		if err != nil {
			t.Fatal(err)
		}
		alias.SubFolder = format
		r := repeating(alias)
		folder := r.began.Format("2006/01/")
		for range 2 {
			items, failures := uploadBody(t, r.u, bytes.NewReader(formBody(text, text)), Upload{Request: r.request()})
			if r.again = true; failures != nil || items[0].Filename != folder+"a.txt" || items[1].Filename != folder+r.timed(0) {
				t.Errorf("%v, %v", filenames(items), failures)
			}
		}
	})
}

// TestRepeatedNames: all attempts make the same names, also with suffixes. Those of other requests
// have other suffixes.
func TestRepeatedNames(t *testing.T) {
	t.Parallel()
	alias := newAlias(t, item.DefaultAlias, onMemory(t, nil))
	names := func(id string) string {
		r := Request{Kind: item.File, Repetition: &Repetition{ID: id, Began: noon}}
		b := newUploader(alias).newUpload(Upload{Request: r})
		b.alias, b.uploads = alias, []*received{{plain: "a.txt"}}
		all := make([]string, b.secondTries(b.uploads[0])+suffixTries+1)
		for n := range all {
			all[n] = b.nameOf(b.uploads[0], n)
		}
		return strings.Join(all, " ")
	}
	one := names("ONE")
	if again := names("ONE"); one != again {
		t.Errorf("%s, again %s", one, again)
	}
	wanted := fmt.Sprintf(`^a.txt a-%d.txt .*a-\d+-[a-z2-7]{6}.txt$`, noon.Unix())
	if two := names("TWO"); one == two || !regexp.MustCompile(wanted).MatchString(two) {
		t.Errorf("%s, of another request %s", one, two)
	}
}

// TestRepeatedRush: the item of an earlier attempt is found although many others had its plain name
// in the same second, and some have given up their names since. Each of them needs few tries.
func TestRepeatedRush(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		for n := range 20 {
			other := &repetitions{u: r.u, kind: r.kind, id: fmt.Sprint("OTHER", n), began: r.began}
			if _, failures := other.store(t, file("a.txt", fmt.Sprint(n))); failures != nil {
				t.Fatal(failures)
			}
		}
		first, failures := r.store(t, text)
		if failures != nil || len(first) <= len(r.timed(0)) {
			t.Errorf("stored %s, %v", first, failures)
		}
		for n := range int64(3) {
			if err := alias.Storage.Delete(t.Context(), "file/content/"+r.timed(n)); err != nil {
				t.Fatal(err)
			}
		}
		r.stored(t, first, text)
	})
}

// TestRepeatedLate: what an earlier attempt stores late is in the way of its repetition.
func TestRepeatedLate(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		put(t, alias.Storage, "file/content/a.txt", "other")
		r.u.seconds.next(alias.LockName("a.txt"), r.began.Unix()) // another request has tried a name
		r.again = true
		r.stored(t, r.timed(0), text)
	})
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

// TestRepeatedRecovers: a repetition recovers the commit of a dead process.
func TestRepeatedRecovers(t *testing.T) {
	t.Parallel()
	d := &sweeping{Driver: local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))}
	r := repeating(newAlias(t, item.DefaultAlias, closed(t, "local", d, storagedrivers.Options{})))
	for n := range 3 {
		if r.stored(t, "a.txt", text); d.sweeps != n {
			t.Errorf("%d sweeps after %d earlier attempts", d.sweeps, n)
		}
	}
}

// TestLeaseLost: an attempt that has lost its lease stores nothing.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
		r := repeating(alias)
		lost := false
		req := Upload{Request: r.request()}
		req.Confirm = func(context.Context, Commitment) (func(Outcome), *item.Failure) {
			lost = true
			return nil, nil
		}
		ctx := storagedrivers.WithLease(t.Context(), func() bool { return lost })
		_, failures := r.u.Upload(ctx, req, Single("a.txt", strings.NewReader("text")))
		wantFailure(t, failures, item.Busy, "", "another attempt")
		wantContents(t, alias.Storage, nil)
	})
}

// TestRepeatedTransfer: a repeated copy, or a move whose first attempt has not removed the old
// item, finds the new one.
func TestRepeatedTransfer(t *testing.T) {
	t.Parallel()
	for _, isCopy := range []bool{true, false} {
		eachStorage(t, false, func(t *testing.T, alias *item.Alias) {
			r := repeating(alias)
			r.began = r.began.Add(-time.Minute)
			want := map[string]string{"file/content/a.txt": "text"}
			for range 3 {
				put(t, alias.Storage, "file/content/b.txt", "text")
				items, failures := r.u.Transfer(t.Context(), Transfer{Request: r.request(), From: alias, Filename: "b.txt", To: "a.txt", Copy: isCopy})
				if r.again = true; failures != nil || items[0].Filename != "a.txt" {
					t.Errorf("%v, %v", filenames(items), failures)
				}
				if isCopy {
					want["file/content/b.txt"] = "text"
				}
				wantContents(t, alias.Storage, want)
				if err := item.Remove(t.Context(), alias.Storage, "file/content/b.txt"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestDigest: equal names and bytes have the same digest.
func TestDigest(t *testing.T) {
	t.Parallel()
	alias := newAlias(t, item.DefaultAlias, onLocal(t, nil))
	digests := map[string]bool{}
	for _, parts := range [][]send{{text}, {text}, {file("b.txt", "text")}, {file("a.txt", "tex")}, {text, text}, {text, file("b.txt", "text")}} {
		r := repeating(alias)
		req := Upload{Request: r.request()}
		req.Confirm = func(_ context.Context, c Commitment) (func(Outcome), *item.Failure) {
			digest, err := c.Digest()
			if err != nil {
				t.Error(err)
			}
			digests[digest] = true
			return nil, nil
		}
		if _, failures := uploadBody(t, r.u, bytes.NewReader(formBody(parts...)), req); failures != nil {
			t.Error(failures)
		}
	}
	if len(digests) != 5 {
		t.Errorf("%d digests", len(digests))
	}
}
