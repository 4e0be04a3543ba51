package op_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// refusals counts the refused requests and the deletions that an observer learns of.
type refusals struct {
	testservice.Observer

	number atomic.Int64
}

func (r *refusals) Refused(context.Context, upload.Operation, item.Failures) { r.number.Add(1) }

func (r *refusals) DeletionEnded(_ context.Context, d service.Deletion) {
	if d.Failure != nil {
		r.number.Add(1)
	}
}

// bench is a service with items, and a permit of an account that may do everything with it.
type bench struct {
	*testservice.Site
	*op.Permit

	refused *refusals
	alias   *item.Alias // one, which has a.txt, sub/b.txt, and users/alice/c.txt
	kept    string      // the ID of an earlier users/alice/c.txt in its trash
	asked   int         // how often the caller was authenticated again
	now     access.Caller
	gone    *item.Failure // of that
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{refused: &refusals{}}
	b.Site = testservice.NewWith(t, media.Limits{}, func(c *media.Config) {
		c.Observer = b.refused
		c.FileAliases["one"].Private = &media.Private{}
		c.FileAliases["one"].Storage = "replacing"
		c.FileAliases["one"].Trash = "1h"
	})
	for _, name := range []string{"a.txt", "sub/b.txt", "users/alice/c.txt"} {
		b.Put(t, "file/one/"+name, name)
	}
	next := service.Of(b.Site.Service(t, media.Limits{})) // after a reload
	b.Permit = &op.Permit{
		Caller: access.Caller{Account: access.Account{APIKey: "site", Rights: access.Rights()}}, Actor: item.Actor{Account: "site"},
		Service: service.Of(b.First), Log: slog.New(slog.DiscardHandler),
		Next: func() (*service.Service, func()) { return next, func() {} },
	}
	b.now = b.Caller
	b.Authenticate = func(_ context.Context, running *service.Service) (access.Caller, *item.Failure) {
		b.asked++
		if running != next {
			t.Error("asked is the service that the request began with")
		}
		return b.now, b.gone
	}
	b.alias, b.gone = b.Alias(item.File, "one")
	if b.gone != nil {
		t.Fatal(b.gone)
	}
	kept := b.alias.NewKept(storagedrivers.Info{Key: b.alias.Key("users/alice/c.txt"), ModTime: testservice.Noon}, testservice.Noon)
	b.kept = kept.ID()
	b.Put(t, b.alias.TrashKey(kept), "earlier")
	return b
}

func whichever(storagedrivers.Info) bool { return true }

// operation is one of a permit with the item of a name. Each stores, changes or deletes it, but
// those that read.
type operation struct {
	name  string
	right access.Right
	asks  bool // authenticates the caller again
	reads bool
	do    func(ctx context.Context, b *bench, filename string) error
}

// failureOf returns the first of failures as an error.
func failureOf[T any](_ T, failures item.Failures) error {
	if failures == nil {
		return nil
	}
	return failures[0]
}

// setError returns the error of a set of one item.
func setError(outcomes []op.Outcome, failure *item.Failure) error {
	if failure != nil {
		return failure
	}
	return outcomes[0].Err
}

var operations = []operation{
	{"upload", access.Upload, true, false, func(ctx context.Context, b *bench, filename string) error {
		req := upload.Upload{Exact: filename, SubFolder: folderOf(filename), Request: b.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
		return failureOf(b.Permit.Service.Uploader().Upload(ctx, req, upload.Body(filename[strings.LastIndexByte(filename, '/')+1:], strings.NewReader("new"))))
	}},
	{"replace", access.Replace, true, false, func(ctx context.Context, b *bench, filename string) error {
		req := upload.Replacement{Filename: filename, Request: b.Permit.Request(item.File, "one", "", []access.Right{access.Replace})}
		return failureOf(b.Permit.Service.Uploader().Replace(ctx, req, upload.Body(filename, strings.NewReader("new"))))
	}},
	{"move", access.Move, true, false, func(ctx context.Context, b *bench, filename string) error {
		return failureOf(b.Transfer(ctx, op.Move{From: b.alias, Filename: filename, ToAlias: b.alias, To: "users/alice/new.txt", Matches: whichever}))
	}},
	{"copy", access.Copy, true, false, func(ctx context.Context, b *bench, filename string) error {
		return failureOf(b.Transfer(ctx, op.Move{From: b.alias, Filename: filename, ToAlias: b.alias, To: "users/alice/new.txt", Copy: true}))
	}},
	{"delete", access.Delete, false, false, func(ctx context.Context, b *bench, filename string) error {
		_, err := b.Delete(ctx, op.Deletion{Alias: b.alias, Filename: filename, Matches: whichever})
		return err
	}},
	{"delete set", access.Delete, true, false, func(ctx context.Context, b *bench, filename string) error {
		return setError(b.DeleteSet(ctx, op.Set{Alias: b.alias, Items: []op.InSet{{Filename: filename}}}))
	}},
	{"delete folder", access.Delete, true, false, func(ctx context.Context, b *bench, filename string) error {
		f := op.Folder{Alias: b.alias, Name: strings.Trim(folderOf(filename), "/"), Began: time.Now().Add(time.Hour), Watch: b.alias.Watch()}
		if _, _, failure := b.DeleteFolder(ctx, f); failure != nil {
			return failure
		}
		return nil
	}},
	{"restore", access.Restore, true, false, func(ctx context.Context, b *bench, _ string) error {
		outcomes, failure := b.Restore(ctx, op.Restoration{Alias: b.alias, IDs: []string{b.kept}, Replace: true})
		if failure == nil {
			failure = outcomes[0].Failure
		}
		if failure != nil {
			return failure
		}
		return nil
	}},
	{"purge", access.Purge, true, false, func(ctx context.Context, b *bench, _ string) error {
		failures, failure := b.Purge(ctx, b.alias, []string{b.kept})
		if failure == nil {
			failure = failures[0]
		}
		if failure != nil {
			return failure
		}
		return nil
	}},
	{"list trash", access.Restore, false, true, func(ctx context.Context, b *bench, filename string) error {
		page, err := b.ListTrash(ctx, service.TrashQuery{Alias: b.alias, Folder: strings.Trim(folderOf(filename), "/"), Limit: 10})
		if err == nil && (len(page.Entries) != 1 || page.Entries[0].ID() != b.kept) {
			err = errors.New("the list lacks the entry")
		}
		return err
	}},
	{"kept", access.Restore, false, true, func(_ context.Context, b *bench, _ string) error {
		if _, failure := b.Kept(b.alias, b.kept); failure != nil {
			return failure
		}
		return nil
	}},
	{"stat", access.List, false, true, func(ctx context.Context, b *bench, filename string) error {
		_, err := b.Stat(ctx, b.alias, filename, "")
		return err
	}},
	{"list", access.List, false, true, func(ctx context.Context, b *bench, filename string) error {
		query := service.ItemQuery{Alias: b.alias, Folder: strings.Trim(folderOf(filename), "/"), Order: service.ByName, Limit: 10}
		_, items, err := b.List(ctx, query, true, "")
		if err == nil && !slices.ContainsFunc(items, func(one op.Listed) bool { return b.alias.Filename(one.Key) == filename }) {
			err = errors.New("the list lacks the item")
		}
		return err
	}},
	{"sign", access.Sign, false, true, func(ctx context.Context, b *bench, filename string) error {
		_, err := b.Sign(ctx, service.SignRequest{Kind: item.File, Alias: "one", Filenames: []string{filename}, ExpiresIn: time.Hour})
		return err
	}},
	{"finish", access.Upload, true, true, func(ctx context.Context, b *bench, filename string) error {
		rights, failure := b.Rights(ctx, item.File, []access.Right{access.Upload}, &resumable.Upload{Record: resumable.Record{Alias: "one", SubFolder: strings.Trim(folderOf(filename), "/")}})
		if failure != nil {
			return failure
		}
		rights.Release()
		return nil
	}},
}

func folderOf(filename string) string {
	if at := strings.LastIndexByte(filename, '/'); at > 0 {
		return filename[:at]
	}
	return "/"
}

// lacking returns all rights but one.
func lacking(right access.Right) []access.Right {
	return slices.DeleteFunc(access.Rights(), func(each access.Right) bool { return each == right })
}

// check carries out the operation with an item, and compares its failure with a reason; -1 is none.
func (o operation) check(t *testing.T, b *bench, filename string, reason item.Reason) {
	t.Helper()
	before := b.Objects(t)
	err := o.do(t.Context(), b, filename)
	isEqual := maps.Equal(before, b.Objects(t))
	if reason < 0 {
		if err != nil || isEqual != o.reads || b.asked == 0 == o.asks {
			t.Errorf("%v, asked %d times, unchanged: %t", err, b.asked, isEqual)
		}
		return
	}
	if err == nil || item.OperationFailure("", err).Reason != reason || !isEqual {
		t.Errorf("%v, want %v; unchanged: %t", err, reason, isEqual)
	}
	if (b.refused.number.Load() == 1) == o.reads {
		t.Errorf("%d refusals are reported", b.refused.number.Load())
	}
}

// TestOperations: each operation does what it says for a caller who may, and nothing for one who
// has lost a right, the alias or the folder since the request began, or who names the item of
// another user. What is refused is reported once.
func TestOperations(t *testing.T) {
	t.Parallel()
	const own = "users/alice/c.txt"
	account := func(change func(*access.Account)) func(*bench) {
		return func(b *bench) { change(&b.now.Account) }
	}
	for _, o := range operations {
		for name, tt := range map[string]struct {
			change func(*bench)
			reason item.Reason
			needs  bool // the caller is authenticated again
		}{
			"may":         {func(*bench) {}, -1, false},
			"logged out":  {func(b *bench) { b.gone = item.Failf(item.Unauthorized, "logged out") }, item.Unauthorized, true},
			"right":       {account(func(a *access.Account) { a.Rights = lacking(o.right) }), item.Forbidden, true},
			"alias":       {account(func(a *access.Account) { a.Aliases = []string{"two"} }), item.Forbidden, true},
			"folder":      {account(func(a *access.Account) { a.Folder = "users/alice" }), item.Forbidden, true},
			"refused":     {func(b *bench) { b.Refused = item.Failf(item.Conflict, "refused") }, item.Conflict, false},
			"right never": {func(b *bench) { b.Account.Rights, b.now.Account.Rights = lacking(o.right), lacking(o.right) }, item.Forbidden, false},
			"own folder":  {func(b *bench) { b.Account.Folder, b.now.Account.Folder = "users/alice", "users/alice" }, -1, false},
			"of another user": {
				func(b *bench) { b.Account.Folder, b.now.Account.Folder = "users/bob", "users/bob" }, item.Missing, false,
			},
		} {
			t.Run(o.name+" "+name, func(t *testing.T) {
				t.Parallel()
				if tt.needs && !o.asks {
					return // its request has no body that could take long
				}
				b := newBench(t)
				tt.change(b)
				reason := tt.reason
				if o.name == "finish" && reason == item.Missing {
					reason = item.Forbidden
				}
				o.check(t, b, own, reason)
			})
		}
	}
}

// TestLostRightTellsNothing: a caller without the right any more does not learn which items exist.
func TestLostRightTellsNothing(t *testing.T) {
	t.Parallel()
	for _, o := range operations {
		if !slices.Contains([]string{"move", "copy", "delete set"}, o.name) {
			continue
		}
		b := newBench(t)
		b.now.Account.Rights = lacking(o.right)
		o.check(t, b, "users/alice/none.txt", item.Forbidden)
	}
}

// TestNeeds: an account learns which right it lacks, and nothing of aliases that are not its own.
func TestNeeds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Account.Rights, b.Account.Aliases = []access.Right{access.List, access.Copy}, []string{"one", "gone"}
	for _, tt := range []struct {
		rights []access.Right
		want   string
	}{
		{nil, ""},
		{[]access.Right{access.List}, ""},
		{[]access.Right{access.Move, access.Copy}, ""},
		{[]access.Right{access.Move, access.Delete}, "the account may not move items: it needs the right move"},
	} {
		got := ""
		if failure := b.NeedOne(tt.rights...); failure != nil {
			got = failure.Message
		}
		if got != tt.want {
			t.Errorf("%v: %q, want %q", tt.rights, got, tt.want)
		}
	}
	for name, want := range map[string]item.Reason{"two": item.Forbidden, "none": item.Forbidden, "gone": item.Missing} {
		if _, failure := b.Alias(item.File, name); failure == nil || failure.Reason != want || !strings.Contains(failure.Message, name) {
			t.Errorf("alias %s: %v", name, failure)
		}
	}
}

// TestSet: the outcomes are in the order of the set, a marker goes without its items, and only a
// failure is carried out again when the request is repeated.
func TestSet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Put(t, b.alias.MarkerKey("sub"), "")
	other := func(storagedrivers.Info) bool { return false }
	set := op.Set{Alias: b.alias, Items: []op.InSet{
		{Filename: "none.txt"},
		{Filename: "a.txt", Matches: other},
		{Filename: "sub", IsMarker: true, Matches: other},
		{Filename: "sub", IsMarker: true},
		{Filename: "sub", IsMarker: true},
		{Filename: "a.txt", Matches: whichever},
		{Filename: "", IsMarker: true},
	}}
	want := []error{fs.ErrNotExist, item.ErrOther, item.ErrOther, nil, fs.ErrNotExist, nil, fs.ErrNotExist}
	for _, set.MayMiss = range []bool{false, true} {
		for i := range set.Items { // one after the other, as their order matters here
			outcomes, failure := b.DeleteSet(t.Context(), op.Set{Alias: b.alias, Items: set.Items[i : i+1], MayMiss: set.MayMiss})
			wanted := want[i]
			if set.MayMiss && errors.Is(wanted, fs.ErrNotExist) {
				wanted = nil
			}
			if failure != nil || !errors.Is(outcomes[0].Err, wanted) {
				t.Errorf("%d, %t: %v, %v, want %v", i, set.MayMiss, outcomes, failure, wanted)
			}
		}
		b.Put(t, "file/one/a.txt", "a.txt")
		b.Put(t, b.alias.MarkerKey("sub"), "")
	}
	b.Account.Rights = lacking(access.Delete)
	if failure, ok := errors.AsType[*item.Failure](b.DeleteMarker(t.Context(), b.alias, "sub", nil)); !ok || failure.Reason != item.Forbidden {
		t.Errorf("without the right: %v", failure)
	}
	if _, there := b.Site.Stored(t, "file/one/sub/b.txt"); !there {
		t.Error("an item went with the marker of its folder")
	}
}
