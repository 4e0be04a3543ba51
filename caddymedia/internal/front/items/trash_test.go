package items_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// withTrash returns a site whose aliases have trash, and the ID of a deleted item of the alias one,
// sub/b.txt.
func withTrash(t *testing.T) (s *site, id string) {
	t.Helper()
	s = newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Trash = "1h"
		c.Accounts[someKey].May = []string{"upload", "list", "delete", "replace", "move", "restore", "purge"}
	})
	s.Put(t, "file/one/sub/b.txt", "earlier")
	httpCase{Method: http.MethodDelete, Target: itemsPath + "file/one/sub/b.txt", Header: bearer, Status: 200, Has: `"trash":"`}.Check(t, s)
	entry := s.Keys(t, "file/one@trash/")[0]
	rest := strings.SplitN(strings.TrimPrefix(entry, "file/one@trash/"), "/", 2)
	return s, rest[1]
}

// TestRestoreRefusedByCheck: an item that a check refuses is no fault of the service. The request
// is not carried out again.
func TestRestoreRefusedByCheck(t *testing.T) {
	t.Parallel()
	s, id := withTrash(t)
	var asked atomic.Int32
	judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	t.Cleanup(judge.Close)
	change := s.Change
	s.Change = func(c *media.Config) {
		change(c)
		c.FileAliases["one"].Checks = map[string]*media.Check{"judge": {HTTP: judge.URL}}
	}
	s.Reload(s.Service(t, media.Limits{}, account()))
	s.Log.Take()
	for _, replayed := range []string{"", " true"} {
		httpCase{
			Method: http.MethodPost, Target: itemsPath + "file/one", Header: urlencoded + bearer + "Idempotency-Key: k\n", Body: "action=restore&id=" + id,
			Status: 200, Has: `"restored":false,"message":"the file was refused by a check"`, Want: "Idempotency-Replayed:" + replayed,
		}.Check(t, s)
	}
	if lines := s.Log.Take(); asked.Load() != 1 || !slices.Equal(lines, []string{"WARN the file was refused by a check"}) {
		t.Errorf("asked %d times, %q", asked.Load(), lines)
	}
}

// TestTrashRequests: bad requests about the trash are answered with what is wrong, and change
// nothing.
func TestTrashRequests(t *testing.T) {
	t.Parallel()
	s, id := withTrash(t)
	alias := itemsPath + "file/one"
	before := s.Objects(t)
	for query, has := range map[string]string{
		"trash=1&trash=1": "sent twice", "trash=1&order=name": "removed or -removed", "trash=1&limit=0": "limit", "trash=1&limit=201": "limit",
		"trash=1&cursor=x": "cursor", "trash=1&filename=a.txt&folder=x": "either", "trash=1&folder=/": "folder", "trash=x": "not one",
		"trash=1&filename=../a": "filename", "trash=1&search=" + strings.Repeat("x", 1025): "search", "trash=" + id + "&folder=x": "leave out",
	} {
		httpCase{Target: alias + "?" + query, Header: bearer, Status: 400, Has: has}.Check(t, s)
	}
	for form, has := range map[string]string{
		"action=restore": "fields id are missing", "action=purge": "fields id are missing", "action=x": "delete, restore, purge or keep",
		"action=restore&id=x": "not the ID", "action=purge&id=x": "not the ID", "action=restore&folder=sub&id=" + id: "without folder",
		"action=restore&filename=x&id=" + id: "without folder", "action=restore&rename=2&id=" + id: "are 1",
		"action=restore&rename=1&replace=1&id=" + id: "either", "action=restore&rename=1&rename=1&id=" + id: "twice",
		"action=restore&replace=1&id=" + id: "never replaced", "action=purge&everything=yes&id=" + id: "everything",
		"action=purge&everything=no": "everything", "action=restore" + strings.Repeat("&id="+id, 1001): "more than 1000",
		"action=delete&filename=a.txt&purge=no": "purge is yes",
	} {
		httpCase{Method: http.MethodPost, Target: alias, Header: urlencoded + bearer, Body: form, Status: 400, Has: has}.Check(t, s)
	}
	for _, target := range []string{alias + "?trash=1", alias + "?trash=" + id} {
		httpCase{Target: target, Header: "Authorization: Bearer $OTHER", Status: 403}.Check(t, s)
		httpCase{Target: target, Status: 401}.Check(t, s)
	}
	if after := s.Objects(t); len(after) != len(before) {
		t.Errorf("the objects have changed: %v", after)
	}
}

// TestTrashServed: an entry is an attachment that no cache keeps, and nothing serves it without the
// right.
func TestTrashServed(t *testing.T) {
	t.Parallel()
	s, id := withTrash(t)
	got := s.Do(t, http.MethodGet, itemsPath+"file/one?trash="+id, bearer, "")
	header := got.Header
	if got.Status != 200 || got.Body != "earlier" || header.Get("Content-Disposition") != "attachment; filename=b.txt" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %q, %v", got.Status, got.Body, header)
	}
	key := s.Keys(t, "file/one@trash/")[0]
	for _, target := range []string{
		"/static/" + key, "/static/file/one/@trash/" + id, "/static/file/one@trash/" + id, "/static/file/one/../one@trash/" + path.Base(id),
	} {
		httpCase{Target: target, Status: 404}.Check(t, s)
	}
}

// TestTrashLocked: of an alias whose trash is locked nothing goes for good, whatever the request.
func TestTrashLocked(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Trash = "1h locked"
		c.Accounts[someKey].May = []string{"upload", "list", "delete", "replace", "move", "restore", "purge"}
	})
	s.Put(t, "file/one/sub/a.txt", "a")
	s.Put(t, "file/one/sub/b.txt", "b")
	httpCase{Method: http.MethodDelete, Target: itemsPath + "file/one/sub/b.txt", Header: bearer, Status: 200, Has: `"trash":"`}.Check(t, s)
	entry := s.Keys(t, "file/one@trash/")[0]
	_, id, _ := strings.Cut(strings.TrimPrefix(entry, "file/one@trash/"), "/")
	before := s.Objects(t)
	item, alias := itemsPath+"file/one/sub/a.txt", itemsPath+"file/one"
	for name, tt := range map[string]httpCase{
		"item":       {Method: http.MethodDelete, Target: item + "?purge=yes", Status: 409},
		"move":       {Method: http.MethodPost, Target: item, Header: urlencoded, Body: "to=sub/c.txt&purge=yes", Status: 409},
		"set":        {Method: http.MethodPost, Target: alias, Header: urlencoded, Body: "action=delete&filename=sub/a.txt&purge=yes", Status: 200, Has: `"deleted":false`},
		"folder":     {Method: http.MethodPost, Target: alias, Header: urlencoded, Body: "action=delete&folder=sub&purge=yes", Status: 409},
		"entry":      {Method: http.MethodPost, Target: alias, Header: urlencoded, Body: "action=purge&id=" + id, Status: 200, Has: `"purged":false`},
		"everything": {Method: http.MethodPost, Target: alias, Header: urlencoded, Body: "action=purge&everything=yes", Status: 409},
	} {
		tt.Header += bearer
		if tt.Has == "" {
			tt.Has = "locked"
		}
		tt.Check(t, s)
		if after := s.Objects(t); !maps.Equal(after, before) {
			t.Errorf("%s: the objects have changed: %v", name, after)
		}
	}
	httpCase{Target: alias + "?trash=1", Header: bearer, Status: 200, Has: id}.Check(t, s)
	httpCase{Method: http.MethodPost, Target: alias, Header: urlencoded + bearer, Body: "action=restore&id=" + id, Status: 200, Has: `"restored":true`}.Check(t, s)
}

// TestFolderInTrash: the entries of a deleted folder are those that are not older than the
// beginning of its deletion, which a repeated request has too.
func TestFolderInTrash(t *testing.T) {
	t.Parallel()
	s, earlier := withTrash(t)
	s.Put(t, "file/one/sub/a.txt", "")
	s.Put(t, "file/one/sub/b.txt", "")
	time.Sleep(time.Millisecond) // what is stored by now is older than the next request
	s.Passed.Add(int64(time.Second))
	var deleted, again setReply
	for _, reply := range []*setReply{&deleted, &again} {
		s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+bearer+"Idempotency-Key: folder\n", "action=delete&folder=sub").Decode(t, reply)
	}
	var list struct {
		Result []struct {
			ID      string    `json:"id"`
			Removed time.Time `json:"removed"`
		} `json:"result"`
	}
	shown := s.Do(t, http.MethodGet, itemsPath+"file/one?trash=1&folder=sub", bearer, "").Body
	if err := json.Unmarshal([]byte(shown), &list); err != nil || *deleted.Deleted != 2 || !again.Began.Equal(deleted.Began) || len(list.Result) != 3 {
		t.Fatalf("%v: %+v, then %+v: %s", err, deleted, again, shown)
	}
	for _, entry := range list.Result {
		if isEarlier := entry.Removed.Before(deleted.Began); isEarlier != (entry.ID == earlier) {
			t.Errorf("%s was removed before the deletion began at %v: %t", entry.ID, deleted.Began, isEarlier)
		}
	}
}

// TestRestoreBesideDeletion: the item that has the name is deleted while it is compared with the
// entry. Then the entry is restored.
func TestRestoreBesideDeletion(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"one", "replacing"} {
		s, _ := withTrash(t)
		key := "file/" + alias + "/b.txt"
		s.Put(t, key, "earlier")
		httpCase{Method: http.MethodDelete, Target: itemsPath + key, Header: bearer, Status: 200}.Check(t, s)
		_, id, _ := strings.Cut(strings.TrimPrefix(s.Keys(t, "file/"+alias+"@trash/")[0], "file/"+alias+"@trash/"), "/")
		for _, entry := range s.Keys(t, "file/"+alias+"@trash/") {
			if strings.HasSuffix(entry, "/b.txt") && !strings.Contains(entry, "/sub/") {
				_, id, _ = strings.Cut(strings.TrimPrefix(entry, "file/"+alias+"@trash/"), "/")
			}
		}
		s.Put(t, key, "earlier")
		asked := false // the test itself reads all objects before
		s.Driver.Fail = func(op, name string) error {
			asked = asked || op == "stat"
			if op != "open" || name != key || !asked {
				return nil
			}
			s.Driver.Fail = nil
			return s.Driver.Delete(t.Context(), key, storagedrivers.DeleteOptions{})
		}
		httpCase{
			Method: http.MethodPost, Target: itemsPath + "file/" + alias, Header: urlencoded + bearer, Body: "action=restore&id=" + id,
			Status: 200, Has: `"restored":true`,
		}.Check(t, s)
		if got, _ := s.Stored(t, key); got != "earlier" {
			t.Errorf("%s: stored is %q", alias, got)
		}
	}
}

// TestRestored: a restored item has its address again, beside one that has taken its name only if
// that is asked for.
func TestRestored(t *testing.T) {
	t.Parallel()
	s, id := withTrash(t)
	restore := func(more, has string) {
		t.Helper()
		httpCase{
			Method: http.MethodPost, Target: itemsPath + "file/one", Header: urlencoded + bearer, Body: "action=restore&id=" + id + more, Status: 200, Has: has,
		}.Check(t, s)
	}
	restore("&id="+id, `"full_path":"http://example.com/static/file/one/sub/b.txt"`)
	httpCase{Target: "/static/file/one/sub/b.txt", Status: 200, Has: "earlier"}.Check(t, s)
	restore("", `"filename":"sub/b.txt","restored":true`)
	s.Put(t, "file/one/sub/b.txt", "another")
	restore("", `"restored":false`)
	restore("&rename=1", `"filename":"sub/b-`)
	if keys := s.Keys(t, "file/one/sub/"); len(keys) != 2 {
		t.Errorf("stored are %q", keys)
	}
}
