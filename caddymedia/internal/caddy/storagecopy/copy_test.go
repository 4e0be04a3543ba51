package storagecopy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/caddy/storagecopy"
	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// pair is two storages in memory and the options of a copy between them. The objects of the source
// are an hour old.
type pair struct {
	t        *testing.T
	from, to *memory.Driver
	opts     storagecopy.Options

	mu     sync.Mutex
	failed map[string]error
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, from: memory.New(), to: memory.New(), failed: map[string]error{}}
	p.opts = storagecopy.Options{
		From: dated(p.from, func(at time.Time) time.Time { return at.Add(-time.Hour) }),
		To:   storagedrivers.New("to", p.to, storagedrivers.Options{}),

		Prefixes: []string{""}, Parallel: 4, ReadBack: true, Now: time.Now,
		Failed: func(key string, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failed[key] = err
		},
	}
	return p
}

func (p *pair) put(s *storagedrivers.Storage, key, content string) {
	p.t.Helper()
	derivedtest.Replace(p.t, s, key, content)
}

// want holds the expected numbers of items in the report.
type want struct{ copied, present, differing, failed, gone int64 }

func (p *pair) run(expected want) storagecopy.Report {
	p.t.Helper()
	report, err := storagecopy.Run(p.t.Context(), p.opts)
	if err != nil {
		p.t.Errorf("it ended with %v", err)
	}
	p.expect(report, expected)
	return report
}

func (p *pair) expect(r storagecopy.Report, expected want) {
	p.t.Helper()
	got := want{r.Copied.Items, r.Present.Items, r.Differing.Items, r.Failed.Items, r.Gone}
	if got != expected {
		p.t.Errorf("%+v, want %+v; failed are %v", got, expected, p.failed)
	}
}

// contents returns the contents of a storage by key.
func (p *pair) contents(s *storagedrivers.Storage) map[string]string {
	p.t.Helper()
	return derivedtest.Contents(p.t, s)
}

func (p *pair) mustBeSame() {
	p.t.Helper()
	if !maps.Equal(p.contents(p.opts.From), p.contents(p.opts.To)) {
		p.t.Error("the destination is not the same as the source")
	}
}

// fill puts n items into the source. 1,500 items need several pages.
func (p *pair) fill(n int) {
	for i := range n {
		p.put(p.opts.From, fmt.Sprintf("img/%d/item-%d.txt", i%7, i), strings.Repeat(fmt.Sprint(i), i%50))
	}
}

// TestRun: the first run copies all items, and a second one reads none of them.
func TestRun(t *testing.T) {
	t.Parallel()
	const items = 1500
	p := newPair(t)
	p.fill(items)
	p.opts.DryRun = true
	p.run(want{copied: items})
	if n := len(p.contents(p.opts.To)); n != 0 {
		t.Errorf("a dry run copied %d items", n)
	}
	p.opts.DryRun = false
	var done, bytes, opened atomic.Int64
	p.from.Fail = func(op, _ string) error {
		if op == "open" {
			opened.Add(1)
		}
		return nil
	}
	p.opts.Progress = func(n, size int64) {
		done.Add(n)
		bytes.Add(size)
	}
	report := p.run(want{copied: items})
	if done.Load() != items || bytes.Load() != report.Copied.Bytes || report.Copied.Bytes == 0 {
		t.Errorf("%d items and %d bytes were reported, %d were copied", done.Load(), bytes.Load(), report.Copied.Bytes)
	}
	p.mustBeSame()

	p.put(p.opts.From, "img/1/item-1.txt", "replaced since")
	p.put(p.opts.From, "img/new.txt", "new")
	if err := p.opts.To.Delete(t.Context(), "img/2/item-2.txt"); err != nil {
		t.Fatal(err)
	}
	opened.Store(0)
	p.run(want{copied: 2, present: items - 2, failed: 1})
	if n := opened.Load(); n != 2 {
		t.Errorf("%d items were read", n)
	}
	if p.failed["img/1/item-1.txt"] == nil || p.contents(p.opts.To)["img/1/item-1.txt"] != "1" {
		t.Errorf("the replaced item failed with %v", p.failed)
	}
	p.opts.Overwrite = true
	p.run(want{copied: 1, present: items})
	p.mustBeSame()
	opened.Store(0)
	p.opts.Checksum = true
	p.run(want{present: items + 1})
	if n := opened.Load(); n <= items {
		t.Errorf("%d items were read, want all", n)
	}
}

// TestRunOfPrefixes: only items with the given prefixes are copied.
func TestRunOfPrefixes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, key := range []string{"a/1", "a/2", "ab/3", "b/4", "c/5"} {
		p.put(p.opts.From, key, key)
	}
	p.put(p.opts.To, "a/2", "longer than it")
	p.opts.Prefixes = []string{"a/", "c/"}
	p.opts.DryRun = true
	p.run(want{copied: 2, differing: 1})
	if p.failed["a/2"] == nil || len(p.failed) != 1 {
		t.Errorf("a dry run reports these as different: %v", p.failed)
	}
	p.opts.DryRun = false
	p.run(want{copied: 2, failed: 1})
	if got := slices.Sorted(maps.Keys(p.contents(p.opts.To))); !slices.Equal(got, []string{"a/1", "a/2", "c/5"}) {
		t.Errorf("the destination has %q", got)
	}
	total, err := storagecopy.Count(t.Context(), p.opts)
	if err != nil || total != (storagecopy.Tally{Items: 3, Bytes: 9}) {
		t.Errorf("%+v are counted, error %v", total, err)
	}
}

// TestHeaders: a copy has the Cache-Control header of its key.
func TestHeaders(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.put(p.opts.From, "img/a.png", "a")
	recorder := &recording{Driver: p.to}
	p.opts.To = storagedrivers.New("to", recorder, storagedrivers.Options{})
	p.opts.CacheControl = func(key string) string { return "for " + key }
	p.run(want{copied: 1})
	if recorder.opts.CacheControl != "for img/a.png" || recorder.opts.ContentType != "image/png" {
		t.Errorf("%+v", recorder.opts)
	}
}

// recording records the options of the last Put.
type recording struct {
	*memory.Driver
	opts storagedrivers.PutOptions
}

func (r *recording) Put(
	ctx context.Context, key string, body io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	r.opts = opts
	return r.Driver.Put(ctx, key, body, opts)
}

// TestItemThatChanges: an item that is replaced during the copy is copied again, and fails if it
// changes with each attempt.
func TestItemThatChanges(t *testing.T) {
	t.Parallel()
	for times, want := range map[int]want{1: {copied: 1}, math.MaxInt: {failed: 1}} {
		p := newPair(t)
		p.put(p.opts.From, "a", "first")
		n := 0
		p.to.Fail = func(op, _ string) error {
			if op == "open" && n < times { // the copy is being verified
				n++
				p.put(p.opts.From, "a", fmt.Sprint("generation ", n))
			}
			return nil
		}
		if p.run(want); want.copied > 0 {
			p.mustBeSame()
		}
	}
}

// TestItemThatChangesBeforeItsBytes: an item that is replaced between Stat and Open does not fail,
// whether it is sent or compared.
func TestItemThatChangesBeforeItsBytes(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]string{"sent": "", "compared": "later"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			p.opts.Checksum = true // so that both are read
			p.put(p.opts.From, "a", "first")
			expected := want{copied: 1}
			if there != "" {
				p.put(p.opts.To, "a", there)
				expected = want{present: 1}
			}
			var once sync.Once
			p.from.Fail = func(op, _ string) error {
				if op == "open" {
					once.Do(func() { p.put(p.opts.From, "a", "later") })
				}
				return nil
			}
			p.run(expected)
			p.mustBeSame()
		})
	}
}

// TestItemThatGoes: an item that is deleted before it is read does not count as failed.
func TestItemThatGoes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.put(p.opts.From, "a", "a")
	p.put(p.opts.From, "b", "b")
	p.from.Fail = func(op, key string) error {
		if op == "open" && key == "b" {
			p.from.Delete(context.Background(), "b", storagedrivers.DeleteOptions{})
		}
		return nil
	}
	p.run(want{copied: 1, gone: 1})
}

// TestRunAgainAfterEnd interrupts runs at random times and repeats them until all items are copied.
func TestRunAgainAfterEnd(t *testing.T) {
	t.Parallel()
	const items = 400
	p := newPair(t)
	p.fill(items)
	for runs := 1; ; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		var puts atomic.Int64
		p.to.Fail = func(op, _ string) error {
			if op == "put" && puts.Add(1) == 60 {
				cancel()
			}
			return nil
		}
		report, err := storagecopy.Run(ctx, p.opts)
		cancel()
		if err == nil {
			p.expect(report, want{copied: report.Copied.Items, present: items - report.Copied.Items})
			break
		}
		if !errors.Is(err, context.Canceled) || report.Failed.Items != 0 || runs > items {
			t.Fatalf("run %d ended with %v: %+v", runs, err, report)
		}
	}
	p.mustBeSame()
}

// TestCorruptCopy: a corrupt copy is removed.
func TestCorruptCopy(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.put(p.opts.From, "a", "content")
	p.opts.To = storagedrivers.New("to", &corrupting{p.to}, storagedrivers.Options{})
	p.run(want{failed: 1})
	if err := p.failed["a"]; err == nil || !strings.Contains(err.Error(), "other bytes than were sent") {
		t.Errorf("it failed with %v", err)
	}
	if got := p.contents(p.opts.To); len(got) != 0 {
		t.Errorf("the destination has %q", got)
	}
	p.opts.ReadBack = false // so that only the size is compared
	p.run(want{copied: 1})
}

// corrupting stores other bytes than it receives.
type corrupting struct{ *memory.Driver }

func (c *corrupting) Put(
	ctx context.Context, key string, body io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	b[0]++
	return c.Driver.Put(ctx, key, bytes.NewReader(b), opts)
}

// TestFailures: some failures concern one item, and others end the run.
func TestFailures(t *testing.T) {
	t.Parallel()
	const items = 100
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		op, key  string // which fail; empty for all but listing, and for all keys
		from, to int64  // counted by what is put
		err      error
		want     want
		stopped  bool
	}{
		"one item":          {"put", "img/3/item-3.txt", 0, items, refused, want{copied: items - 1, failed: 1}, false},
		"away for a moment": {"put", "", 51, 54, storagedrivers.ErrUnavailable, want{copied: items}, false},
		"away":              {"", "", 51, math.MaxInt64, storagedrivers.ErrUnavailable, want{}, true},
		"full":              {"put", "", 51, math.MaxInt64, storagedrivers.ErrNoSpace, want{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			p.fill(items)
			var puts atomic.Int64
			p.to.Fail = func(op, key string) error {
				if op == "put" {
					puts.Add(1)
				}
				isOp := op == test.op || test.op == "" && op != "list"
				if n := puts.Load(); isOp && (test.key == "" || key == test.key) && n >= test.from && n <= test.to {
					return test.err
				}
				return nil
			}
			report, err := storagecopy.Run(t.Context(), p.opts)
			if test.stopped != errors.Is(err, test.err) || !test.stopped && err != nil {
				t.Errorf("it ended with %v", err)
			}
			if !test.stopped {
				p.expect(report, test.want)
				return
			}
			if report.Failed.Items != 0 || report.Copied.Items == 0 || report.Copied.Items > 50 {
				t.Errorf("%+v", report)
			}
			if !strings.Contains(err.Error(), `"to"`) {
				t.Errorf("it does not say which storage: %v", err)
			}
		})
	}
}
