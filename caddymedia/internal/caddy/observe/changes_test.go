package observe

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// TestChangesOrder: the last 200 changes are kept, the newest first, without the addresses of
// clients.
func TestChangesOrder(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	c := newChanges(func() time.Time {
		now = now.Add(time.Second)
		return now
	})
	if last, since := c.Last(); len(last) != 0 || !since.Equal(time.Unix(1001, 0)) {
		t.Errorf("at first: %v since %v", last, since)
	}
	for n := 1; n <= 3*maxChanges/2; n++ {
		c.add(Change{Filename: strconv.Itoa(n), Actor: item.Actor{Account: "shop", Client: "192.0.2.1"}})
		last, _ := c.Last()
		if len(last) != min(n, maxChanges) {
			t.Fatalf("%d changes after %d", len(last), n)
		}
		for i, change := range last {
			if change.Filename != strconv.Itoa(n-i) || !change.Time.Equal(time.Unix(int64(1001+n-i), 0)) ||
				change.Actor != (item.Actor{Account: "shop"}) {
				t.Fatalf("change %d of %d: %+v", i, n, change)
			}
		}
	}
}

// TestConfigurationStays: a change of the configuration stays among the last ones, in its place,
// however many items are stored.
func TestConfigurationStays(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	c := newChanges(func() time.Time {
		now = now.Add(time.Second)
		return now
	})
	c.add(Change{Filename: "first"})
	c.add(Change{Section: "image alias", Name: "old"})
	for range 3 * maxChanges {
		c.add(Change{Filename: "a"})
	}
	c.add(Change{Section: "image alias", Name: "new"})
	c.add(Change{Filename: "last"})
	last, _ := c.Last()
	if n := len(last); n != maxChanges+2 || last[0].Filename != "last" || last[1].Name != "new" || last[n-1].Name != "old" {
		t.Errorf("%d changes, %+v ... %+v", len(last), last[:2], last[len(last)-1])
	}
}

// TestChangesSize: a text is kept up to the length of a key.
func TestChangesSize(t *testing.T) {
	t.Parallel()
	c, long := newChanges(time.Now), strings.Repeat("x", 1<<20)
	c.add(Change{
		Alias: long, Filename: long, ToAlias: long, To: long, Folder: long, Result: long, Options: long, Actor: item.Actor{Account: long, User: long},
	})
	last, _ := c.Last()
	if size := len(fmt.Sprintf("%+v", last[0])); size > 10*maxText {
		t.Errorf("a change has %d bytes", size)
	}
}

// TestChangesAtOnce: changes are kept and read at once.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	c := newChanges(time.Now)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				c.add(Change{Action: "store"})
				c.Last()
			}
		})
	}
	all.Wait()
	if last, _ := c.Last(); len(last) != maxChanges {
		t.Errorf("%d changes", len(last))
	}
}

// TestChangesMade: what was changed is kept, and what was refused or failed is not.
func TestChangesMade(t *testing.T) {
	t.Parallel()
	alias, other := &item.Alias{Kind: item.File, Name: "content"}, &item.Alias{Kind: item.File, Name: "other"}
	actor := item.Actor{Origin: item.OriginPanel, Account: "alice"}
	it := upload.Item{Filename: "a.txt", Size: 7}
	move := &upload.Transfer{From: other, Filename: "old.txt", To: "a.txt"}
	kept := Change{Kind: item.File, Alias: "content", Filename: "a.txt", Size: 7, Actor: actor, Result: "ok"}
	as := func(change func(*Change)) *Change {
		c := kept
		change(&c)
		return &c
	}
	for name, tt := range map[string]struct {
		report func(o *Observer)
		want   *Change // nil for none
	}{
		"store": {func(o *Observer) {
			o.Changed(t.Context(), upload.Change{Action: upload.Stored, Alias: alias, Item: it, Actor: actor})
		}, as(func(c *Change) { c.Action = "store" })},
		"replace": {func(o *Observer) {
			o.Changed(t.Context(), upload.Change{Action: upload.Replaced, Alias: alias, Item: it, Actor: actor})
		}, as(func(c *Change) { c.Action = "replace" })},
		"failed delete": {func(o *Observer) {
			o.Changed(t.Context(), upload.Change{Action: upload.Deleted, Alias: alias, Item: it, Actor: actor, Err: errors.New("down")})
		}, nil},
		"move": {func(o *Observer) {
			o.Changed(t.Context(), upload.Change{Action: upload.Stored, Alias: alias, Item: it, Actor: actor, Transfer: move})
			o.Changed(t.Context(), upload.Change{Action: upload.Deleted, Alias: other, Item: upload.Item{Filename: "old.txt"}, Actor: actor, Transfer: move})
		}, as(func(c *Change) {
			c.Action, c.Alias, c.Filename, c.ToAlias, c.To = "move", "other", "old.txt", "content", "a.txt"
		})},
		"unchanged": {func(o *Observer) {
			o.Changed(t.Context(), upload.Change{Action: upload.Unchanged, Alias: alias, Item: it, Actor: actor, Transfer: move})
		}, nil},
		"set": {func(o *Observer) {
			o.Changed(t.Context(), upload.Change{Action: upload.Deleted, Alias: alias, Item: it, Actor: actor, InSet: true})
			o.DeletionEnded(t.Context(), service.Deletion{
				Kind: item.File, Alias: "content", IsSet: true, Folder: "old", Number: 1, Actor: actor,
				Failure: &item.Failure{Message: "some items are left"},
			})
		}, as(func(c *Change) {
			c.Action, c.Filename, c.Size, c.IsSet, c.Folder, c.Number, c.Result = "delete", "", -1, true, "old", 1, "some items are left"
		})},
		"refused set": {func(o *Observer) {
			o.DeletionEnded(t.Context(), service.Deletion{Kind: item.File, Alias: "content", IsSet: true, Actor: actor, Failure: &item.Failure{}})
		}, nil},
		"refusal": {func(o *Observer) {
			o.Refused(t.Context(), upload.Operation{Kind: item.File, Actor: actor}, item.Failures{{Message: "no"}})
		}, nil},
		"terminate": {func(o *Observer) {
			o.Terminated(t.Context(), &resumable.Record{Kind: "file", Alias: "content", Filename: "a.txt", Length: 7, Owner: "http shop"}, actor, nil)
		}, as(func(c *Change) { c.Action = "terminate" })},
		"terminate in vain": {func(o *Observer) {
			o.Terminated(t.Context(), &resumable.Record{Kind: "file"}, actor, resumable.ErrUnknown)
		}, nil},
	} {
		o := &Observer{
			audit: zap.NewNop(), metrics: newMetrics(prometheus.NewPedanticRegistry()),
			changes: newChanges(func() time.Time { return time.Time{} }),
		}
		tt.report(o)
		last, _ := o.Changes().Last()
		switch {
		case tt.want == nil && len(last) > 0:
			t.Errorf("%s: %+v", name, last)
		case tt.want != nil && (len(last) != 1 || last[0] != *tt.want):
			t.Errorf("%s: %+v, want %+v", name, last, *tt.want)
		}
	}
}
