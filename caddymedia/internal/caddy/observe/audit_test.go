package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// TestAuditOfDeletions: the audit log has no words of the storage.
func TestAuditOfDeletions(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core)}
	alias := &item.Alias{Kind: item.File, Name: "content"}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{&fs.PathError{Op: "remove", Path: "secret", Err: fs.ErrNotExist}, "there is no such item"},
		{fmt.Errorf("deleting secret: %w", item.ErrOther), "the item is another one by now"},
		{errors.New("dial tcp 10.1.2.3: secret"), "the storage did not delete the item"},
	} {
		o.auditChange(upload.Change{Action: upload.Deleted, Alias: alias, Item: upload.Item{Filename: "a.txt"}, Err: tt.err})
		line := lines.TakeAll()[0]
		fields := line.ContextMap()
		if fields["result"] != tt.want || fields["action"] != "delete" || fields["filename"] != "a.txt" {
			t.Errorf("%v: %v, want %q", tt.err, fields, tt.want)
		}
		for _, value := range fields {
			if text, ok := value.(string); ok && strings.Contains(text, "secret") {
				t.Errorf("%v: the line holds %q", tt.err, text)
			}
		}
	}
}

// TestAuditOfAnyAlias: the alias of a request can be as long as an address, and is cut in the log.
func TestAuditOfAnyAlias(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core), metrics: newMetrics(prometheus.NewPedanticRegistry())}
	for _, alias := range []string{strings.Repeat("a", 64), strings.Repeat("\x01", 1<<20)} {
		o.Refused(t.Context(), upload.Operation{Kind: item.File, Alias: alias}, item.Failures{{Reason: item.Unauthorized}})
		if got := lines.TakeAll()[0].ContextMap()["alias"]; got != alias[:64] {
			t.Errorf("an alias of %d bytes is written as %.100q", len(alias), got)
		}
	}
}

// TestAuditOfTerminations: a line names the actor and the owner of the upload, without words of the
// storage.
func TestAuditOfTerminations(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core)}
	upload := &resumable.Record{Owner: "http site", Kind: "image", Alias: "content", Filename: "a.png", Length: 7}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{resumable.ErrUnknown, "there is no such upload"},
		{errors.New("dial tcp 10.1.2.3: secret"), "the storage did not remove the upload"},
	} {
		o.Terminated(t.Context(), upload, item.Actor{Origin: item.OriginPanel, Account: "alice"}, tt.err)
		fields := lines.TakeAll()[0].ContextMap()
		if fields["result"] != tt.want || fields["action"] != "terminate" || fields["kind"] != "img" || fields["owner"] != "http site" ||
			fields["account"] != "alice" || fields["filename"] != "a.png" || fields["size"] != int64(7) {
			t.Errorf("%v: %v", tt.err, fields)
		}
	}
}

// TestAuditFields: the lines have their fields in the documented order, also if a size is unknown.
func TestAuditFields(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core)}
	alias := &item.Alias{Kind: item.File, Name: "old"}
	actor := item.Actor{Origin: item.OriginHTTP, Account: "shop", User: "alice"}
	move := &upload.Transfer{From: alias, Filename: "a.txt", To: "b.txt"}
	for want, report := range map[string]func(){
		"action kind alias filename size via account user client result": func() {
			o.auditChange(upload.Change{Action: upload.Stored, Alias: alias, Actor: actor})
		},
		"action kind alias filename to_alias to size via account user client result": func() {
			o.auditChange(upload.Change{Action: upload.Stored, Alias: alias, Actor: actor, Transfer: move})
		},
		"action kind alias filename reason via account user client result": func() {
			o.auditRefusal(upload.Operation{Actor: actor}, &item.Failure{})
		},
		"action kind alias filename reason to_alias to via account user client result": func() {
			o.auditRefusal(upload.Operation{Actor: actor, Transfer: move}, &item.Failure{})
		},
		"action kind alias filename via account user client result": func() {
			o.auditDeletion(service.Deletion{Actor: actor, Failure: &item.Failure{}})
		},
		"action kind alias folder number via account user client result": func() {
			o.auditDeletion(service.Deletion{Actor: actor, IsSet: true})
		},
		"action kind alias filename size owner via account user client result": func() {
			o.auditTermination(&resumable.Record{Length: resumable.Unknown}, actor, nil)
		},
	} {
		report()
		got := ""
		for _, field := range lines.TakeAll()[0].Context {
			got += field.Key + " "
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("fields %s, want %s", got, want)
		}
	}
}

// TestAuditOfUsers: lines name the user of an account that has some, and no other line has the
// field.
func TestAuditOfUsers(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core)}
	for _, user := range []string{"alice", ""} {
		actor := item.Actor{Origin: item.OriginHTTP, Account: "members", User: user}
		o.auditChange(upload.Change{Action: upload.Stored, Alias: &item.Alias{}, Actor: actor})
		o.auditRefusal(upload.Operation{Actor: actor}, &item.Failure{})
		o.auditDeletion(service.Deletion{Actor: actor})
		o.auditTermination(&resumable.Record{Owner: actor.Owner()}, actor, nil)
		for _, line := range lines.TakeAll() {
			got, has := line.ContextMap()["user"]
			if has != (user != "") || has && got != user {
				t.Errorf("%v: want the user %q", line.ContextMap(), user)
			}
		}
	}
}

// TestAuditOfSets: a set of items is one line with its number, and a refusal one with its reason. A
// stranger causes none.
func TestAuditOfSets(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core), metrics: newMetrics(prometheus.NewPedanticRegistry())}
	actor := item.Actor{Origin: item.OriginHTTP, Account: "shop"}
	alias := &item.Alias{Kind: item.File, Name: "content"}
	for _, name := range []string{"a.txt", "b.txt"} {
		o.Changed(t.Context(), upload.Change{Action: upload.Deleted, Alias: alias, Item: upload.Item{Filename: name}, Actor: actor, InSet: true})
	}
	set := service.Deletion{Kind: item.File, Alias: "content", IsSet: true, Folder: "old", Number: 2, Actor: actor}
	o.DeletionEnded(t.Context(), set)
	all := lines.TakeAll()
	if len(all) != 1 {
		t.Fatalf("%d lines", len(all))
	}
	if fields := all[0].ContextMap(); fields["action"] != "delete" || fields["number"] != int64(2) || fields["folder"] != "old" ||
		fields["account"] != "shop" || fields["alias"] != "content" || fields["result"] != "ok" {
		t.Errorf("%v", fields)
	}
	refused := service.Deletion{
		Kind: item.File, Alias: strings.Repeat("x", 65), Filename: "a.txt", Actor: actor,
		Failure: &item.Failure{Message: "not allowed"},
	}
	o.DeletionEnded(t.Context(), refused)
	if fields := lines.TakeAll()[0].ContextMap(); fields["result"] != "not allowed" || fields["filename"] != "a.txt" ||
		fields["alias"] != strings.Repeat("x", 64) || fields["number"] != nil {
		t.Errorf("%v", fields)
	}
	refused.Actor.Account = ""
	if o.DeletionEnded(t.Context(), refused); lines.Len() > 0 {
		t.Error("a stranger writes to the audit log")
	}
}

// TestAuditOfReplacements: a refused request to replace an item is a replacement.
func TestAuditOfReplacements(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core), metrics: newMetrics(prometheus.NewPedanticRegistry())}
	for filename, want := range map[string]string{"": "store", "a.txt": "replace"} {
		o.Refused(t.Context(), upload.Operation{Kind: item.File, Filename: filename}, item.Failures{{Message: "why", Filename: "a.txt"}})
		if fields := lines.TakeAll()[0].ContextMap(); fields["action"] != want || fields["filename"] != "a.txt" || fields["result"] != "why" {
			t.Errorf("%q: %v", filename, fields)
		}
	}
}

// TestAuditOfTransfers: a move or copy is one line with both names, also if it is refused.
func TestAuditOfTransfers(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core), metrics: newMetrics(prometheus.NewPedanticRegistry())}
	from, to := &item.Alias{Kind: item.File, Name: "old"}, &item.Alias{Kind: item.File, Name: "new"}
	for action, copies := range map[string]bool{"move": false, "copy": true} {
		transfer := &upload.Transfer{From: from, Filename: "a.txt", To: "b.txt", Copy: copies}
		check := func(result string, both bool) {
			t.Helper()
			all := lines.TakeAll()
			if len(all) != 1 {
				t.Fatalf("%d lines", len(all))
			}
			fields := all[0].ContextMap()
			if fields["action"] != action || fields["alias"] != "old" || fields["filename"] != "a.txt" || fields["result"] != result ||
				both != (fields["to_alias"] == "new" && fields["to"] == "b.txt") {
				t.Errorf("%v", fields)
			}
		}
		o.Changed(t.Context(), upload.Change{Action: upload.Stored, Alias: to, Item: upload.Item{Filename: "b.txt"}, Transfer: transfer})
		if !copies {
			o.Changed(t.Context(), upload.Change{Action: upload.Deleted, Alias: from, Item: upload.Item{Filename: "a.txt"}, Transfer: transfer})
		}
		check("ok", true)
		o.Refused(t.Context(), upload.Operation{Kind: item.File, Alias: "new", Transfer: transfer}, item.Failures{{Message: "why", Filename: "a.txt"}})
		check("why", true)
		o.Refused(t.Context(), upload.Operation{
			Kind: item.File, Alias: "old", Transfer: &upload.Transfer{Filename: "a.txt", Copy: copies},
		}, item.Failures{{Message: "why", Filename: "a.txt"}})
		check("why", false)
		transfer = &upload.Transfer{From: from, Filename: "a.txt", To: "a.txt", Copy: copies}
		o.Changed(t.Context(), upload.Change{Action: upload.Unchanged, Alias: from, Item: upload.Item{Filename: "a.txt"}, Transfer: transfer})
		check("ok", false)
	}
	if stored := testutil.ToFloat64(o.metrics.items); stored != 2 { // by a move and a copy
		t.Errorf("%v items are stored", stored)
	}
}
