package items_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/storagedrivers"
)

// noon is a moment in a form.
var noon = testservice.Noon.UTC().Format(time.RFC3339)

// TestRestorePastForms: a form that is no request for a moment is refused, and changes nothing.
func TestRestorePastForms(t *testing.T) {
	t.Parallel()
	s, _ := withTrash(t)
	for form, has := range map[string]string{
		"&folder=/&at=x":                    "RFC 3339",
		"&folder=/&at=":                     "RFC 3339",
		"&at=" + noon:                       "/ is all",
		"&folder=/x/&at=" + noon:            "folder is invalid",
		"&folder=/&id=x&at=" + noon:         "without the field id",
		"&folder=/&replace=1&at=" + noon:    "without the field replace",
		"&folder=/&dry_run=yes&at=" + noon:  "dry_run is 1",
		"&folder=/&at=" + noon + "&at=x":    "sent twice",
		"&folder=/&cursor=x&at=" + noon:     "cursor",
		"&folder=/&at=2099-01-01T00:00:00Z": "future",
		"&folder=/&at=2020-01-01T00:00:00Z": "reaches back to " + testservice.Noon.Add(time.Second-time.Hour).UTC().Format(time.RFC3339),
	} {
		httpCase{
			Method: http.MethodPost, Target: itemsPath + "file/one", Header: urlencoded + bearer, Body: "action=restore" + form, Status: 400, Has: has,
		}.Check(t, s)
	}
}

// TestRestorePast: a dry run says what the request then does.
func TestRestorePast(t *testing.T) {
	t.Parallel()
	s, _ := withTrash(t)
	alias, _ := service.Of(s.First).Alias(item.File, "one")
	for filename, removed := range map[string]time.Duration{"gone.txt": 10 * time.Second, "earlier.txt": -10 * time.Second} {
		old := storagedrivers.Info{Key: alias.Key(filename), ModTime: testservice.Noon.Add(time.Millisecond - time.Hour)}
		s.Put(t, alias.TrashKey(alias.NewKept(old, testservice.Noon.Add(removed))), filename)
	}
	s.Passed.Store(int64(time.Minute))
	for _, form := range []string{"&dry_run=1", "", "&folder=x"} {
		want := `"restored":{"items":1,"bytes":8,"filenames":["gone.txt"]},"removed":{"items":0,`
		if form == "&folder=x" {
			want = `"restored":{"items":0,`
		} else {
			form += "&folder=/"
		}
		httpCase{
			Method: http.MethodPost, Target: itemsPath + "file/one", Header: urlencoded + bearer, Body: "action=restore&at=" + noon + form, Status: 200, Has: want,
		}.Check(t, s)
		got, isStored := s.Stored(t, "file/one/gone.txt")
		if isStored == strings.Contains(form, "dry_run") || isStored && got != "gone.txt" {
			t.Errorf("%s: stored is %q, %t", form, got, isStored)
		}
	}
	for _, name := range []string{"earlier.txt", "sub/b.txt"} {
		if _, isStored := s.Stored(t, "file/one/"+name); isStored {
			t.Errorf("%s was not there", name)
		}
	}
}
