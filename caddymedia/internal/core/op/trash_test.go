package op_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/storagedrivers"
)

// TestDeletionsKept: deletions and moves say where an item is kept, and purging it takes a right of
// its own.
func TestDeletionsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	trash, err := b.Delete(t.Context(), op.Deletion{Alias: b.alias, Filename: "a.txt"})
	if kept, ok := item.KeptOf(trash); err != nil || !ok || kept.Filename != "a.txt" {
		t.Errorf("%q, %v", trash, err)
	}
	outcomes, failure := b.DeleteSet(t.Context(), op.Set{Alias: b.alias, Items: []op.InSet{{Filename: "sub/b.txt"}, {Filename: "none.txt"}}})
	if failure != nil || !strings.HasSuffix(outcomes[0].Trash, "/sub/b.txt") || outcomes[1].Trash != "" {
		t.Errorf("%+v, %v", outcomes, failure)
	}
	b.Account.Rights, b.now.Account.Rights = lacking(access.Purge), lacking(access.Purge)
	before := len(b.Objects(t))
	if _, err := b.Delete(t.Context(), op.Deletion{Alias: b.alias, Filename: "users/alice/c.txt", Purge: true}); item.OperationFailure("", err).Reason != item.Forbidden {
		t.Errorf("purge: %v", err)
	}
	if _, failure := b.DeleteSet(t.Context(), op.Set{Alias: b.alias, Items: []op.InSet{{Filename: "users/alice/c.txt"}}, Purge: true}); failure == nil {
		t.Error("a set is purged without the right")
	}
	if _, _, failure := b.DeleteFolder(t.Context(), op.Folder{Alias: b.alias, Name: "users", Purge: true}); failure == nil {
		t.Error("a folder is purged without the right")
	}
	move := op.Move{From: b.alias, Filename: "users/alice/c.txt", ToAlias: b.alias, To: "users/alice/d.txt", Purge: true}
	if _, failures := b.Transfer(t.Context(), move); failures == nil || failures[0].Reason != item.Forbidden {
		t.Errorf("a move: %v", failures)
	}
	if len(b.Objects(t)) != before {
		t.Error("the objects have changed")
	}
}

// TestTrashRefused: nothing of the trash can be had by a ticket, without a trash, after its time,
// and by an ID that is none, is gone, or is of a name that no item may have.
func TestTrashRefused(t *testing.T) {
	t.Parallel()
	long := item.Kept{Filename: strings.Repeat("x/", 500) + "x", Generation: "00000000"}
	reserved := strings.Replace(newBench(t).kept, "/users/alice/c.txt", "/@uploads/c.txt", 1)
	for name, tt := range map[string]struct {
		change func(*bench)
		reason item.Reason
		whole  bool // the whole request is refused
	}{
		"ticket":   {func(b *bench) { b.Caller.Ticket = &access.Ticket{} }, item.Forbidden, true},
		"no trash": {func(b *bench) { without := *b.alias; without.Trash, b.alias = 0, &without }, item.Conflict, true},
		"ended":    {func(b *bench) { b.Passed.Add(int64(b.alias.Trash)) }, item.Missing, false},
		"no ID":    {func(b *bench) { b.kept = "x" }, item.BadRequest, false},
		"long ID":  {func(b *bench) { b.kept = long.ID() }, item.BadRequest, false},
		"reserved": {func(b *bench) { b.kept = reserved }, item.Missing, false},
		"gone": {func(b *bench) {
			kept, _ := item.KeptOf(b.kept)
			if err := b.alias.Storage.Delete(t.Context(), b.alias.TrashKey(kept)); err != nil {
				t.Error(err)
			}
		}, item.Missing, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			tt.change(b)
			outcomes, failure := b.Restore(t.Context(), op.Restoration{Alias: b.alias, IDs: []string{b.kept}, Replace: true})
			if failure == nil && !tt.whole {
				failure = outcomes[0].Failure
			}
			if failure == nil || failure.Reason != tt.reason {
				t.Errorf("restore: %v", failure)
			}
			failures, failure := b.Purge(t.Context(), b.alias, []string{b.kept})
			if failure == nil && !tt.whole {
				failure = failures[0]
			}
			if failure == nil || failure.Reason != tt.reason {
				t.Errorf("purge: %v", failure)
			}
			if _, failure := b.Kept(b.alias, b.kept); name != "gone" && (failure == nil || failure.Reason != tt.reason) {
				t.Errorf("kept: %v", failure)
			}
			page, err := b.ListTrash(t.Context(), service.TrashQuery{Alias: b.alias, Limit: 10})
			if tt.whole != (err != nil) || (name == "ended" || name == "gone") && len(page.Entries) > 0 {
				t.Errorf("list: %+v, %v", page, err)
			}
		})
	}
}

// TestPurgeAll: everything below the folder of the caller is removed, and nothing else.
func TestPurgeAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Passed.Add(1)
	for _, filename := range []string{"a.txt", "users/bob/x.txt"} {
		info := storagedrivers.Info{Key: b.alias.Key(filename), ModTime: testservice.Noon}
		b.Put(t, b.alias.TrashKey(b.alias.NewKept(info, testservice.Noon)), filename)
	}
	b.Account.Folder, b.now.Account.Folder = "users/alice", "users/alice"
	if number, more, failure := b.PurgeAll(t.Context(), b.alias); number != 1 || more || failure != nil {
		t.Errorf("%d, %t, %v", number, more, failure)
	}
	b.Account.Folder, b.now.Account.Folder = "", ""
	page, err := b.ListTrash(t.Context(), service.TrashQuery{Alias: b.alias, Limit: 10})
	if err != nil || slices.ContainsFunc(page.Entries, func(e service.InTrash) bool { return e.Filename == "users/alice/c.txt" }) || len(page.Entries) != 2 {
		t.Errorf("%+v, %v", page, err)
	}
	if number, _, failure := b.PurgeAll(t.Context(), b.alias); number != 2 || failure != nil {
		t.Errorf("%d, %v", number, failure)
	}
}

// TestRestoreVersions: of several versions of one item the last of the request remains.
func TestRestoreVersions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids := make([]string, 20)
	for i := range ids {
		kept := b.alias.NewKept(storagedrivers.Info{Key: b.alias.Key("a.txt"), ModTime: testservice.Noon}, testservice.Noon)
		b.Put(t, b.alias.TrashKey(kept), fmt.Sprint("version ", i))
		ids[i] = kept.ID()
	}
	outcomes, failure := b.Restore(t.Context(), op.Restoration{Alias: b.alias, IDs: ids, Replace: true})
	if failure != nil || slices.ContainsFunc(outcomes, func(outcome op.Restored) bool { return outcome.Failure != nil }) {
		t.Fatal(failure, outcomes)
	}
	if got := b.Objects(t)[b.alias.Key("a.txt")]; got != "version 19" {
		t.Errorf("stored is %q", got)
	}
}
