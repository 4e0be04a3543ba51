package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// listDriver is a driver in memory that calls a function of the test before each listing.
type listDriver struct {
	*memory.Driver
	list   func(ctx context.Context, prefix string) error
	closed atomic.Bool
}

func (d *listDriver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	if d.list != nil {
		if err := d.list(ctx, opts.Prefix); err != nil {
			return storagedrivers.Page{}, err
		}
	}
	return d.Driver.List(ctx, opts)
}

func (d *listDriver) Close() error {
	d.closed.Store(true)
	return d.Driver.Close()
}

// fill stores objects of five bytes.
func (d *listDriver) fill(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := d.Put(t.Context(), key, strings.NewReader("bytes"), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// onListed returns the parts of a service on d with the aliases img/content, img/webp and
// file/content.
func onListed(t *testing.T, d *listDriver) Parts {
	t.Helper()
	parts := partsOf(t)
	parts.Storages[0].Driver = d
	return parts
}

// usageOf returns the usage of an alias, without what changes with the time.
func usageOf(t *testing.T, s *Service, kind item.Kind, name string) Usage {
	t.Helper()
	usages := s.Usages()
	for i, alias := range s.Aliases() {
		if alias.Kind == kind && alias.Name == name {
			usages[i].failed = time.Time{}
			return usages[i]
		}
	}
	t.Fatalf("no alias %s", name)
	return Usage{}
}

// TestUsage: objects are counted by their kinds, on request, and every ten minutes at most.
func TestUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listings, d := 0, &listDriver{Driver: memory.New()}
		d.list = func(ctx context.Context, _ string) error {
			if storagedrivers.Owner(ctx) != countOwner {
				t.Errorf("listed for the owner %q", storagedrivers.Owner(ctx))
			}
			listings++
			return nil
		}
		d.fill(t, "img/webp/a/photo.jpg", "img/webp/a/photo.jpg.webp", "img/webp/b.webp", "img/webp/odd.webp.webp",
			"img/webp@renditions/2/a/photo.jpg/thumb.1.2.webp", "img/webp@trash/2026-11-29T22/x/a.jpg", "file/content/a.txt", "file/content/a.txt.webp",
			"file/content/@uploads/open/x", "elsewhere/a", "img/webp2/a.jpg")
		s := start(t, onListed(t, d))
		synctest.Wait()
		if got := usageOf(t, s, item.Image, "webp"); got != (Usage{}) || listings > 0 {
			t.Errorf("before the first count: %+v, %d listings", got, listings)
		}
		count := func(again bool) int {
			before := listings
			s.CountUsages(again)
			synctest.Wait()
			return listings - before
		}
		const all = 8 // three for each image alias, and two for the file alias
		if n := count(false); n != all {
			t.Errorf("%d listings, want %d", n, all)
		}
		counted := time.Now()
		for _, tt := range []struct {
			kind item.Kind
			name string
			want Usage
		}{
			{item.Image, "content", Usage{Counted: counted}},
			{item.Image, "webp", Usage{Items: Count{3, 15}, Variants: Count{1, 5}, Renditions: Count{1, 5}, Trash: Count{1, 5}, Counted: counted}},
			{item.File, "content", Usage{Items: Count{2, 10}, Counted: counted}},
		} {
			if got := usageOf(t, s, tt.kind, tt.name); got != tt.want {
				t.Errorf("%s/%s: %+v, want %+v", tt.kind, tt.name, got, tt.want)
			}
		}
		time.Sleep(usageAge - time.Nanosecond)
		if n := count(false); n != 0 {
			t.Errorf("%d listings before the count is old", n)
		}
		time.Sleep(time.Nanosecond)
		if n := count(false); n != all {
			t.Errorf("%d listings when the count is old, want %d", n, all)
		}
		if n := count(true); n != all {
			t.Errorf("%d listings of a count again, want %d", n, all)
		}
	})
}

// TestUsageBounds: a count ends at its bounds, and says so.
func TestUsageBounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		objects, most int64
		slow          time.Duration
		want          int64
		atLeast       bool
	}{
		{2500, 2499, 0, 2499, true},
		{2500, 2500, 0, 2500, false},
		{2500, maxCounted, maxCountTime * 2 / 5, 1000, true}, // a page takes so long, and the pause after it
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &listDriver{Driver: memory.New()}
			for i := range tt.objects {
				d.fill(t, fmt.Sprintf("file/content/%d", i))
			}
			d.list = func(ctx context.Context, _ string) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(tt.slow):
					return nil
				}
			}
			s := start(t, onListed(t, d))
			s.process.usages.maxObjects = tt.most
			s.CountUsages(false)
			time.Sleep(4 * maxCountTime)
			got := usageOf(t, s, item.File, "content")
			if got.Items != (Count{tt.want, 5 * tt.want}) || got.AtLeast != tt.atLeast || got.Err != nil || got.Counted.IsZero() {
				t.Errorf("%d objects, at most %d, %v a page: %+v", tt.objects, tt.most, tt.slow, got)
			}
		})
	}
}

// TestUsageProgress: a running count shows its progress, and one alias is counted at a time.
func TestUsageProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &listDriver{Driver: memory.New()}
		for i := range 1500 {
			d.fill(t, fmt.Sprintf("img/content/%d.jpg", i))
		}
		var running int
		d.list = func(context.Context, string) error {
			if running++; running > 1 {
				t.Error("two listings at once")
			}
			time.Sleep(time.Second)
			running--
			return nil
		}
		s := start(t, onListed(t, d))
		s.CountUsages(false)
		s.CountUsages(true)
		time.Sleep(1500 * time.Millisecond)
		if got := usageOf(t, s, item.Image, "content"); !got.Counting || got.Waiting || got.SoFar != 1000 || !got.Counted.IsZero() {
			t.Errorf("the alias that is being counted: %+v", got)
		}
		if got := usageOf(t, s, item.File, "content"); got.Counting || !got.Waiting {
			t.Errorf("an alias that waits: %+v", got)
		}
		time.Sleep(time.Hour)
		if got := usageOf(t, s, item.File, "content"); got.Counting || got.Waiting || got.Counted.IsZero() {
			t.Errorf("after the count: %+v", got)
		}
	})
}

// TestUsageOfFailingStorage: a failed attempt keeps the count before, and is repeated after a
// minute.
func TestUsageOfFailingStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down error
		d := &listDriver{Driver: memory.New()}
		d.list = func(context.Context, string) error { return down }
		d.fill(t, "file/content/a.txt")
		s := start(t, onListed(t, d))
		count := func(again bool) Usage {
			s.CountUsages(again)
			time.Sleep(10 * time.Second)
			return usageOf(t, s, item.File, "content")
		}
		before := count(false)
		down = errors.New("down")
		failed := count(true)
		if !errors.Is(failed.Err, down) || failed.Items != before.Items || failed.Counted != before.Counted {
			t.Errorf("failed: %+v, before: %+v", failed, before)
		}
		down = nil
		if got := count(false); got != failed {
			t.Errorf("soon after the failure: %+v", got)
		}
		time.Sleep(failedAge)
		if got := count(false); got.Err != nil || !got.Counted.After(before.Counted) {
			t.Errorf("a minute later: %+v", got)
		}
	})
}

// TestUsageReload: the next service has the counts, and continues one that the end of the service
// before it has interrupted.
func TestUsageReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &listDriver{Driver: memory.New()}
		d.fill(t, "img/content/a.jpg", "file/content/a.txt")
		hold := make(chan struct{})
		d.list = func(ctx context.Context, prefix string) error {
			if prefix != "file/content/" {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-hold:
				return nil
			}
		}
		process := NewProcess()
		parts := onListed(t, d)
		parts.Process = process
		parts.Storages[0].Options.Close = func() error { return nil }
		before, err := New(parts)
		if err != nil {
			t.Fatal(err)
		}
		before.CountUsages(false)
		synctest.Wait()
		parts.Aliases = aliasesOf(newAlias(t, item.Image, "content"), newAlias(t, item.File, "content"))
		parts.Tokens, parts.Previous = new(store), before
		after := start(t, parts)
		if got := usageOf(t, after, item.File, "content"); !got.Counting {
			t.Errorf("while the service before counts: %+v", got)
		}
		if err := before.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		before.CountUsages(true) // as by a request that still runs
		if got := usageOf(t, after, item.Image, "content"); got.Items.Objects != 1 {
			t.Errorf("counted before: %+v", got)
		}
		synctest.Wait()
		if got := usageOf(t, after, item.File, "content"); !got.Counting {
			t.Errorf("interrupted by a reload: %+v", got)
		}
		close(hold)
		synctest.Wait()
		if got := usageOf(t, after, item.File, "content"); got.Items.Objects != 1 || got.Counting || got.Waiting || got.Err != nil {
			t.Errorf("continued: %+v", got)
		}
		if n := len(process.usages.all); n != 2 {
			t.Errorf("%d aliases are kept", n)
		}
	})
}

// TestUsageShutdown: a count ends with its service, whose storage is closed after it.
func TestUsageShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &listDriver{Driver: memory.New()}
		d.list = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			if d.closed.Load() {
				t.Error("the driver was closed during a listing")
			}
			return ctx.Err()
		}
		s, err := New(onListed(t, d))
		if err != nil {
			t.Fatal(err)
		}
		s.CountUsages(false)
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !d.closed.Load() {
			t.Error("the driver stays open")
		}
		s.CountUsages(true)
		synctest.Wait() // and the end of the test finds no goroutine
	})
}

// TestUnfinished: the unfinished uploads of a storage are those of its last sweep.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	s := start(t, partsOf(t))
	storage, _ := s.Storage("default")
	if got := s.Unfinished(storage); got != (Count{}) {
		t.Errorf("before the first sweep: %+v", got)
	}
	s.process.usages.setUnfinished(storage, resumable.Open{Uploads: 2, Bytes: 7})
	if got := s.Unfinished(storage); got != (Count{2, 7}) {
		t.Errorf("%+v", got)
	}
}

// roomy is a driver that reports its space, or an error.
type roomy struct {
	*memory.Driver
	err error
}

func (r *roomy) Space(context.Context) (storagedrivers.Space, error) {
	return storagedrivers.Space{Free: 2, Total: 3}, r.err
}

// TestHealthSpace: a check notes the space. A storage that does not report it is as healthy, and is
// not checked more often.
func TestHealthSpace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want storagedrivers.Space
	}{
		{nil, storagedrivers.Space{Free: 2, Total: 3}},
		{errors.ErrUnsupported, storagedrivers.Space{}},
		{storagedrivers.ErrUnavailable, storagedrivers.Space{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var checks atomic.Int32
			d := &roomy{memory.New(), tt.err}
			d.Fail = func(op, _ string) error {
				if op == "check" {
					checks.Add(1)
				}
				return nil
			}
			parts := partsOf(t)
			parts.Storages[0].Driver = d
			s := start(t, parts)
			s.Start()
			time.Sleep(30*time.Minute - time.Second)
			if got := s.Health()["default"]; got.Space != tt.want || got.Err != nil || checks.Load() != 30 {
				t.Errorf("%v: %+v, %d checks", tt.err, got, checks.Load())
			}
		})
	}
}
