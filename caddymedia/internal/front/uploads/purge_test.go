package uploads_test

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// TestPurgeReplaced: what an upload replaces is kept in the trash, unless a caller with the right
// asks for purge. Nothing is stored for a caller without it.
func TestPurgeReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, query string
		may         []string
		ticket      bool
		status      int
		kept        int
	}{
		{"kept", "", []string{"upload", "purge"}, false, 200, 1},
		{"purged", "?purge=yes", []string{"upload", "purge"}, false, 200, 0},
		{"no right", "?purge=yes", []string{"upload", "restore"}, false, 403, 0},
		{"ticket", "?purge=yes", []string{"upload", "purge"}, true, 403, 0},
		{"other word", "?purge=no", []string{"upload", "purge"}, false, 400, 0},
		{"twice", "?purge=yes&purge=yes", []string{"upload", "purge"}, false, 400, 0},
	} {
		for _, put := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s := newSiteWith(t, media.Limits{}, func(config *media.Config) {
					config.Trash = "1h"
					config.Accounts[someKey].May = c.may
				})
				s.Put(t, "file/replacing/a.txt", "old")
				header := bearer
				if c.ticket {
					s.Ticket(t, "kind=file&alias=replacing")
					header = ticketBearer
				}
				upload := httpCase{Target: filePath + c.query + "&alias=replacing", Header: multipart + header, Body: form(file("a.txt", "new")), Status: c.status}
				if c.query == "" {
					upload.Target = filePath + "?alias=replacing"
				}
				if put {
					upload = httpCase{Method: http.MethodPut, Target: putPath + "replacing/a.txt" + c.query, Header: header, Body: "new", Status: c.status}
					if c.status == 200 {
						upload.Status = 201
					}
				}
				upload.Check(t, s)
				if kept := len(s.Keys(t, "file/replacing@trash/")); kept != c.kept {
					t.Errorf("%d are kept, want %d", kept, c.kept)
				}
				want := "old"
				if c.status == 200 {
					want = "new"
				}
				if got, _ := s.Stored(t, "file/replacing/a.txt"); got != want {
					t.Errorf("stored is %q, want %q", got, want)
				}
			})
		}
	}
}
