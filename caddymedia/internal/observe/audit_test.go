package observe

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/upload"
)

// TestAuditOfDeletions: the audit log has no words of the storage.
func TestAuditOfDeletions(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	o := &Observer{audit: zap.New(core)}
	alias := &aliases.Alias{Kind: aliases.File, Name: "content"}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{&fs.PathError{Op: "remove", Path: "secret", Err: fs.ErrNotExist}, "there is no such item"},
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
		o.Refused(t.Context(), upload.Request{Kind: aliases.File, Alias: alias}, aliases.Failures{{Reason: aliases.Unauthorized}})
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
		o.Terminated(t.Context(), upload, aliases.Actor{Origin: aliases.OriginPanel, Account: "alice"}, tt.err)
		fields := lines.TakeAll()[0].ContextMap()
		if fields["result"] != tt.want || fields["action"] != "terminate" || fields["kind"] != "img" || fields["owner"] != "http site" ||
			fields["account"] != "alice" || fields["filename"] != "a.png" || fields["size"] != int64(7) {
			t.Errorf("%v: %v", tt.err, fields)
		}
	}
}
