package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// judge refuses files with the word "evil", does not answer about those with "silent", and keeps
// what it was asked.
type judge struct {
	mu    sync.Mutex
	asked []string // filename and content
}

func (j *judge) Ask(ctx context.Context, f check.File) error {
	content, err := io.ReadAll(f.Content)
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.asked = append(j.asked, f.Filename+" "+string(content))
	j.mu.Unlock()
	switch {
	case int64(len(content)) != f.Size:
		return fmt.Errorf("%d bytes of %d", len(content), f.Size)
	case strings.Contains(string(content), "evil"):
		return &check.RefusedError{Message: "it is evil", Detail: "Evil.1"}
	case strings.Contains(string(content), "silent"):
		return errors.New(secret)
	case strings.Contains(string(content), "hangs"):
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// judged adds a check to an alias.
func judged(alias *item.Alias) (*judge, *check.Check) {
	j := &judge{}
	c := &check.Check{Name: "judge", Program: j, Timeout: time.Minute, MaxSize: 100, Turns: queue.New(queue.Options{Slots: 4})}
	alias.Checks = append(alias.Checks, c)
	return j, c
}

// TestChecks: what a check refuses, is too large for it or gets no answer is not stored, and
// nothing of its request is; with pass it is stored, and named.
func TestChecks(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 101)
	for name, tt := range map[string]struct {
		content           string
		larger, unchecked bool // pass
		reason            item.Reason
		message           string // none if it is stored
	}{
		"good":              {"good", false, false, 0, ""},
		"evil":              {"evil", true, true, item.BadContent, "it is evil"},
		"large":             {large, false, true, item.TooLarge, "larger than what the check judge takes, at most 100 bytes"},
		"large, passed":     {large, true, false, 0, ""},
		"no answer":         {"silent", true, false, item.Unavailable, "the check judge cannot be made now"},
		"no answer, passed": {"silent", false, true, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, open opener) {
				alias := withTrash(t, open(t, nil))
				_, c := judged(alias)
				c.PassesLarger, c.PassesUnanswered = tt.larger, tt.unchecked
				u := newUploader(alias)
				w := watch(u)
				items, failures := uploadForm(t, u, file("a.txt", "good"), file("b.txt", tt.content))
				if tt.message != "" {
					wantFailure(t, failures, tt.reason, "b.txt", tt.message)
					wantContents(t, alias.Storage, map[string]string{})
					return
				}
				if failures != nil || items[0].Unchecked != nil || (items[1].Unchecked != nil) != (tt.content != "good") {
					t.Fatalf("%+v, %v", items, failures)
				}
				if got := w.changes[1].Item.Unchecked; !slices.Equal(got, items[1].Unchecked) || len(w.checks) != 2 {
					t.Errorf("the observer got %q and %q", got, w.checks)
				}
			})
		})
	}
}

// TestChecksOfTransfers: what comes into an alias is asked about, and what moves within it is not.
func TestChecksOfTransfers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		s := open(t, nil)
		alias, other := withTrash(t, s), newAlias(t, "other", s)
		u := newUploader(alias, other)
		storeFiles(t, u, file("a.txt", "evil"))
		trash, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt"})
		if err != nil {
			t.Fatal(err)
		}
		storeFiles(t, u, file("b.txt", "evil"))
		storeFiles(t, u, field("alias", "other"), file("c.txt", "evil"))
		j, _ := judged(alias)
		before := contents(t, s)
		transfer := func(from *item.Alias, filename, to string, copies bool) item.Failures {
			_, failures := u.Transfer(t.Context(), Transfer{
				Request: Request{Kind: item.File, Alias: alias.Name}, From: from, Filename: filename, To: to, Copy: copies,
			})
			return failures
		}
		for _, copies := range []bool{true, false} {
			wantFailure(t, transfer(other, "c.txt", "d.txt", copies), item.BadContent, "c.txt", "evil")
		}
		wantFailure(t, transfer(alias, "b.txt", "d.txt", true), item.BadContent, "b.txt", "evil")
		_, failures := restore(t.Context(), u, alias, trash, true)
		wantFailure(t, failures, item.BadContent, trash, "evil")
		_, failures = u.Replace(t.Context(), Replacement{Request: Request{Kind: item.File}, Filename: "b.txt"}, Body("b.txt", strings.NewReader("evil 2")))
		wantFailure(t, failures, item.BadContent, "b.txt", "evil")
		wantContents(t, s, before)
		if len(j.asked) != 5 {
			t.Errorf("asked %q", j.asked)
		}
		if failures := transfer(alias, "b.txt", "d.txt", false); failures != nil || len(j.asked) != 5 {
			t.Errorf("moved within the alias: %v, asked %q", failures, j.asked)
		}
	})
}

// TestChecksStored: checks are asked about the bytes that are stored, one after the other, and not
// at all about what is refused anyway.
func TestChecksStored(t *testing.T) {
	t.Parallel()
	alias := imageAlias(t, onMemory(t, nil))
	alias.Imaging.Strip = imaging.StripOn
	first, one := judged(alias)
	second, two := judged(alias)
	one.MaxSize, two.MaxSize = 1<<20, 1<<20
	u := newUploader(alias)
	storeImages(t, u, file("a.png", pngOf(red)+"behind the end"))
	_, failures := uploadImages(t, u, file("b.png", pngOf(red)), file("c.png", "no image"))
	if len(failures) != 1 {
		t.Error(failures)
	}
	want := []string{"a.png " + contents(t, alias.Storage)["a.png"]}
	if !slices.Equal(first.asked, want) || !slices.Equal(second.asked, want) {
		t.Errorf("asked %q and %q, want %q", first.asked, second.asked, want)
	}
}

// TestChecksHang: a request of many files does not wait for each of them where a check hangs.
func TestChecksHang(t *testing.T) {
	t.Parallel()
	alias := withTrash(t, onMemory(t, nil))
	j, c := judged(alias)
	c.Timeout = 50 * time.Millisecond
	files := make([]send, 50)
	for i := range files {
		files[i] = file(fmt.Sprintf("%d.txt", i), "hangs")
	}
	_, failures := uploadForm(t, newUploader(alias), files...)
	if most := runtime.GOMAXPROCS(0); len(failures) == 0 || len(failures) > most || len(j.asked) > most {
		t.Errorf("%d failures, asked %d times", len(failures), len(j.asked))
	}
	wantContents(t, alias.Storage, map[string]string{})
}

// TestChecksCut: a caller that leaves does not get a file stored without its check, and that is no
// failure of the check.
func TestChecksCut(t *testing.T) {
	t.Parallel()
	alias := withTrash(t, onMemory(t, nil))
	j, c := judged(alias)
	c.PassesUnanswered = true
	u := newUploader(alias)
	w := watch(u)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			j.mu.Lock()
			asked := len(j.asked)
			j.mu.Unlock()
			if asked > 0 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, failures := u.Upload(ctx, Upload{Request: Request{Kind: item.File}}, Body("a.txt", strings.NewReader("hangs")))
	wantFailure(t, failures, item.BadRequest, "a.txt", "aborted")
	if len(w.checks) > 0 {
		t.Errorf("the observer got %q", w.checks)
	}
	wantContents(t, alias.Storage, map[string]string{})
}
