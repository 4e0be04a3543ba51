package adminapi

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/caller"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/plugin"
	"github.com/caddymedia/media/caddymedia/internal/uploads"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// twoUploads is a configuration with a storage that works and one that fails.
const twoUploads = `{"storages": {
		"broken": {"driver": {"name": "foreign", "fault": "denied", "word": "hunter22"}},
		"main": {"driver": {"name": "local", "root": "$ROOT"}}
	}, "file_aliases": {"docs": {"storage": "main"}, "other": {"storage": "broken"}}}`

// startUpload creates an upload with three of ten bytes on the storage "main", and returns its
// name.
func startUpload(t *testing.T, account string) string {
	t.Helper()
	app, release, err := plugin.AcquireActive()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	metadata := ""
	for key, value := range map[string]string{"filename": account + ".txt", "alias": "docs", "sub_folder": "a"} {
		metadata += "," + key + " " + base64.StdEncoding.EncodeToString([]byte(value))
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("abc"))
	for key, value := range map[string]string{
		"Tus-Resumable": "1.0.0", "Upload-Length": "10", "Upload-Metadata": metadata[1:], "Content-Type": "application/offset+octet-stream",
	} {
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	known := caller.Known{Account: tokens.Account{APIKey: account}, Origin: item.OriginPanel}
	if err := uploads.ServeResumable(caller.New(app, caller.Options{}), w, r, item.File, "/", "", known); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("%v, %d %s", err, w.Code, w.Body)
	}
	for _, u := range get[uploadsAnswer](t, "/uploads").Uploads {
		if u.Account == account {
			return u.Name
		}
	}
	t.Fatal("the upload is not in the list")
	return ""
}

// TestUploads: unfinished uploads are listed page by page, also if another storage fails.
func TestUploads(t *testing.T) {
	load(t, twoUploads)
	accounts := []string{"one", "three", "two"}
	for _, account := range accounts {
		startUpload(t, account)
	}
	var found []string
	for cursor, pages := "", 0; ; pages++ {
		page := get[uploadsAnswer](t, "/uploads?limit=2&cursor="+cursor)
		if !page.On || len(page.Uploads) > 2 || pages > 5 {
			t.Fatalf("page %d: %+v", pages, page)
		}
		if first := pages == 0; (len(page.Problems) == 1) != first {
			t.Errorf("page %d has the problems %+v", pages, page.Problems)
		} else if first && (page.Problems[0].Storage != "broken" || page.Problems[0].Message == "") {
			t.Errorf("%+v", page.Problems)
		}
		for _, u := range page.Uploads {
			found = append(found, u.Account)
			if u.Storage != "main" || u.Origin != "panel" || u.Kind != "file" || u.Alias != "docs" || u.SubFolder != "a" ||
				u.Filename != u.Account+".txt" || u.Offset != 3 || u.Length == nil || *u.Length != 10 || u.Client != "192.0.2.1" ||
				u.Created == "" || u.LastByte == "" || u.Expires <= u.Created {
				t.Errorf("%+v", u)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if slices.Sort(found); !slices.Equal(found, accounts) {
		t.Errorf("found %v, want %v", found, accounts)
	}
	wantError(t, ask(t, New(), http.MethodGet, "/uploads?limit=0", ""), http.StatusBadRequest, "limit")
	wantError(t, ask(t, New(), http.MethodGet, "/uploads?cursor=x", ""), http.StatusBadRequest, "cursor")
}

// TestEndUpload: an upload is ended once, and others stay.
func TestEndUpload(t *testing.T) {
	load(t, twoUploads)
	ended, stays := startUpload(t, "one"), startUpload(t, "two")
	address := "/uploads/main/" + ended
	if w := ask(t, New(), http.MethodDelete, address, ""); w.Code != http.StatusNoContent {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	for _, none := range []string{address, "/uploads/none/" + stays, "/uploads/main/x", "/uploads/main/..%2f"} {
		if w := ask(t, New(), http.MethodDelete, none, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", none, w.Code)
		}
	}
	if w := ask(t, New(), http.MethodDelete, "/uploads/broken/"+stays, ""); w.Code < 500 || strings.Contains(w.Body.String(), "hunter22") {
		t.Errorf("on a storage that fails: %d %s", w.Code, w.Body)
	}
	if page := get[uploadsAnswer](t, "/uploads"); len(page.Uploads) != 1 || page.Uploads[0].Account != "two" {
		t.Errorf("%+v", page.Uploads)
	}
}

// TestUploadsOff: without resumable uploads there are none.
func TestUploadsOff(t *testing.T) {
	load(t, `{"resumable": {"off": true}}`)
	if page := get[uploadsAnswer](t, "/uploads"); page.On || len(page.Uploads) > 0 || page.Next != "" {
		t.Errorf("%+v", page)
	}
	wantError(t, ask(t, New(), http.MethodDelete, "/uploads/default/x", ""), http.StatusNotFound, "no such upload")
}
