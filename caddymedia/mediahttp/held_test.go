package mediahttp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// heldUpload is an element of an answer with held uploads.
type heldUpload struct {
	Held        string
	Name        string
	Size        int64
	ContentType string `json:"content_type"`
	ExpiresAt   int64  `json:"expires_at"`
}

// heldIn returns the held uploads of an answer.
func heldIn(t *testing.T, answer *reply) []heldUpload {
	t.Helper()
	var decoded struct {
		Success bool
		Result  []heldUpload
	}
	answer.Decode(t, &decoded)
	return decoded.Result
}

// idsIn returns the IDs of the held uploads of an answer.
func idsIn(t *testing.T, answer *reply) (ids []string) {
	t.Helper()
	for _, u := range heldIn(t, answer) {
		ids = append(ids, u.Held)
	}
	return ids
}

// keep sends action=keep for an alias of files.
func keep(t *testing.T, s *site, alias, fields string, ids ...string) *reply {
	t.Helper()
	body := "action=keep" + fields
	for _, id := range ids {
		body += "&held=" + url.QueryEscape(id)
	}
	return s.Do(t, http.MethodPost, itemsPath+"file/"+alias, urlencoded+bearer, body)
}

const heldPath = filePath + "/held/"

// waysToHold are all ways to a held upload of a.txt with some text, as the ID.
var waysToHold = map[string]func(t *testing.T, s *site, text string) string{
	"form": func(t *testing.T, s *site, text string) string {
		t.Helper()
		body := form(file("a.txt", text), field("hold", "600"))
		return idsIn(t, s.Do(t, http.MethodPost, filePath, multipart+bearer, body).Want(t, 202, ""))[0]
	},
	"query": func(t *testing.T, s *site, text string) string {
		t.Helper()
		return idsIn(t, s.Do(t, http.MethodPost, filePath+"?hold=600", multipart+bearer, form(file("a.txt", text))).Want(t, 202, ""))[0]
	},
	"PUT": func(t *testing.T, s *site, text string) string {
		t.Helper()
		return idsIn(t, s.Do(t, http.MethodPut, filePath+"/content/a.txt?hold=600", bearer, text).Want(t, 202, "Location"))[0]
	},
	"ticket": func(t *testing.T, s *site, text string) string {
		t.Helper()
		header := multipart + "Authorization: Bearer " + s.Ticket(t, "kind=file&hold=600") + "\n"
		return idsIn(t, s.Do(t, http.MethodPost, filePath, header, form(file("a.txt", text))).Want(t, 202, ""))[0]
	},
	"resumable": func(t *testing.T, s *site, text string) string {
		t.Helper()
		header := "Upload-Length: " + strconv.Itoa(len(text)) + "\n" + metadata("filename", "a.txt", "hold", "600")
		address := s.TusSend(t, http.MethodPost, resumablePath, header, "").Want(t, 201, "Media-Held").Header.Get("Location")
		patched := s.TusPatch(t, address, 0, text).Want(t, 204, "Media-Full-Path")
		id := patched.Header.Get("Media-Held")
		s.TusSend(t, http.MethodHead, address, "", "").Want(t, 200, "Media-Held: "+id)
		if got := idsIn(t, s.Do(t, http.MethodGet, address, bearer, "").Want(t, 200, "Media-Held: "+id)); !slices.Equal(got, []string{id}) {
			t.Errorf("GET of the upload: %v", got)
		}
		return id
	},
	"concatenated": func(t *testing.T, s *site, text string) string {
		t.Helper()
		parts := make([]string, 0, 2)
		for _, half := range []string{text[:2], text[2:]} {
			header := "Upload-Concat: partial\nUpload-Length: " + strconv.Itoa(len(half)) + "\n" + tusBody
			parts = append(parts, s.TusSend(t, http.MethodPost, resumablePath, header, half).Want(t, 201, "Media-Held").Header.Get("Location"))
		}
		header := "Upload-Concat: final;" + strings.Join(parts, " ") + "\n" + metadata("filename", "a.txt", "hold", "600")
		return s.TusSend(t, http.MethodPost, resumablePath, header, "").Want(t, 201, "Media-Full-Path").Header.Get("Media-Held")
	},
}

// items returns the keys of what is stored in the aliases, but for unfinished uploads.
func itemsOf(t *testing.T, s *site) (keys []string) {
	t.Helper()
	for key := range s.Objects(t) {
		if !strings.HasPrefix(key, "@") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// unfinished returns the keys of what is below the folder of unfinished uploads, but for outcomes.
func unfinished(t *testing.T, s *site) []string {
	t.Helper()
	return slices.DeleteFunc(s.Keys(t, "@uploads/"), func(key string) bool { return strings.HasPrefix(key, "@uploads/done/") })
}

// TestHeld: in each way of an upload, a held one has no item, and is a preview for its caller only.
// Kept, it is the item of an upload, once, however often that is repeated. Ended, it is gone.
func TestHeld(t *testing.T) {
	t.Parallel()
	for name, hold := range waysToHold {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, media.Limits{})
			id := hold(t, s, "held text")
			if keys := itemsOf(t, s); len(keys) > 0 {
				t.Errorf("held, stored are %v", keys)
			}
			got := heldIn(t, s.Do(t, http.MethodGet, heldPath+id, bearer, "").Want(t, 200, "Cache-Control: no-store"))
			want := heldUpload{id, "a.txt", 9, "text/plain; charset=utf-8", s.Now().Add(10*time.Minute + time.Second).Unix()}
			if len(got) != 1 || got[0] != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			header := "Cache-Control: no-store\nX-Content-Type-Options: nosniff\nContent-Disposition: attachment; filename=a.txt\nContent-Length: 9"
			if got := s.Do(t, http.MethodGet, heldPath+id+"?content=1", bearer, "").Want(t, 200, header); got.Body != "held text" {
				t.Errorf("content %q", got.Body)
			}
			s.Do(t, http.MethodHead, heldPath+id+"?content=1", bearer, "").Want(t, 200, header)
			other := "Authorization: Bearer " + s.Ticket(t, "kind=file&hold=600") + "\n"
			s.Do(t, http.MethodGet, heldPath+id, other, "").Want(t, 404, "")
			s.Do(t, http.MethodDelete, heldPath+id, other, "").Want(t, 404, "")
			s.Do(t, http.MethodGet, heldPath+id, "Authorization: Bearer "+s.TokenOf(t, otherKey)+"\n", "").Want(t, 404, "")
			s.Do(t, http.MethodGet, imagePath+"/held/"+id, bearer, "").Want(t, 404, "")
			s.Do(t, http.MethodGet, heldPath+id, "", "").Want(t, 401, "")

			kept := keep(t, s, "content", "", id).Want(t, 200, "")
			items := kept.Items(t)
			if len(items) != 1 {
				t.Fatalf("%+v", items)
			}
			if text, ok := s.Stored(t, "file/content/"+items[0].Filename); text != "held text" || !ok {
				t.Errorf("stored is %q, of %v", text, itemsOf(t, s))
			}
			s.Do(t, http.MethodGet, heldPath+id, bearer, "").Want(t, 404, "")
			s.TusSend(t, http.MethodDelete, resumablePath+"/"+id, "", "").Want(t, 204, "")
			for range 2 {
				if again := keep(t, s, "content", "", id).Want(t, 200, ""); again.Body != kept.Body {
					t.Errorf("again: %s, want %s", again.Body, kept.Body)
				}
			}
			if keys, left := itemsOf(t, s), unfinished(t, s); len(keys) != 1 || len(left) > 0 {
				t.Errorf("stored are %v, left %v", keys, left)
			}

			id = hold(t, s, "ended text")
			s.Do(t, http.MethodDelete, heldPath+id, bearer, "").Want(t, 204, "")
			s.Do(t, http.MethodGet, heldPath+id, bearer, "").Want(t, 404, "")
			keep(t, s, "content", "", id).Refused(t, 404, "no such held upload", id)
			if left := unfinished(t, s); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// TestKeep: held uploads are kept all or none, in the order of the request and with its folder, and
// in one set only.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{})
	put := func(name string) string {
		return idsIn(t, s.Do(t, http.MethodPut, filePath+"/content/"+name+"?hold=600", bearer, name).Want(t, 202, ""))[0]
	}
	a, b, c := put("a.txt"), put("b.txt"), put("c.txt")
	ended := put("d.txt")
	s.Do(t, http.MethodDelete, heldPath+ended, bearer, "").Want(t, 204, "")
	keep(t, s, "content", "", a, ended, "x", b).Refused(t, 404, "no such held upload", ended, "x")
	keep(t, s, "one", "", a).Refused(t, 404, "no such held upload", a)
	for fields, has := range map[string]string{
		"":                                "the fields held are missing",
		"&held=a&held=a":                  "named twice",
		"&held=a&held=b&filename=x.txt":   "the field filename is for one field held",
		"&held=a&sub_folder=a&sub_folder": "sub_folder is sent twice",
		"&held=" + strings.Join(strings.Split(strings.Repeat("x", 201), ""), "&held="): "more than 200",
	} {
		keep(t, s, "content", fields).Refused(t, 400, has, "")
	}
	if keys := itemsOf(t, s); len(keys) > 0 {
		t.Errorf("stored are %v", keys)
	}
	items := keep(t, s, "content", "&sub_folder=kept", c, a).Want(t, 200, "").Items(t)
	if len(items) != 2 || items[0].Filename != "kept/c.txt" || items[1].Filename != "kept/a.txt" {
		t.Errorf("kept are %+v", items)
	}
	keep(t, s, "content", "", a, b).Refused(t, 409, "send the same held uploads in the same order", a)
	if items := keep(t, s, "content", "&filename=Renamed.txt&sub_folder=/", b).Want(t, 200, "").Items(t); items[0].Filename != "renamed.txt" {
		t.Errorf("kept is %+v", items)
	}
	if keys := itemsOf(t, s); len(keys) != 3 {
		t.Errorf("stored are %v", keys)
	}
}

// TestHoldRefused: what is refused is refused at once, and nothing is held.
func TestHoldRefused(t *testing.T) {
	t.Parallel()
	ok := form(file("a.txt", "text"))
	run(t, withTicket("kind=file"), []httpCase{
		{Name: "too short", Target: filePath + "?hold=59", Header: multipart + bearer, Body: ok, Status: 400, Has: "hold is a whole number of seconds from 60 to 604800"},
		{Name: "too long", Target: filePath + "?hold=604801", Header: multipart + bearer, Body: ok, Status: 400},
		{Name: "no number", Target: filePath, Header: multipart + bearer, Body: form(field("hold", "1h"), file("a.txt", "text")), Status: 400},
		{Name: "twice", Target: filePath + "?hold=60&hold=60", Header: multipart + bearer, Body: ok, Status: 400, Has: "hold is sent twice"},
		{Name: "twice, in the form too", Target: filePath + "?hold=60", Header: multipart + bearer, Body: form(file("a.txt", "text"), field("hold", "60")), Status: 400, Has: "hold is sent twice"},
		{Name: "a ticket without", Target: filePath + "?hold=60", Header: multipart + ticketBearer, Body: ok, Status: 400, Has: "leave out hold"},
		{Name: "condition", Method: http.MethodPut, Target: filePath + "/content/a.txt?hold=60", Header: bearer + "If-None-Match: *\n", Body: "text", Status: 400, Has: "leave them out"},
		{Name: "content", Target: filePath + "?hold=60", Header: multipart + bearer, Body: form(file("a.pdf", "text")), Status: 415},
		{Name: "one of two", Target: filePath + "?hold=60", Header: multipart + bearer, Body: form(file("a.txt", "text"), file("a.pdf", "text")), Status: 415},
		{Name: "ticket", Target: ticketPath, Header: urlencoded + bearer, Body: "kind=file&hold=59", Status: 400, Has: "hold is a whole number"},
		{Name: "resumable", Method: http.MethodPost, Target: resumablePath, Header: tusHeader + "Upload-Length: 1\n" + metadata("filename", "a.txt", "hold", "1"), Status: 400, Has: "hold is a whole number"},
		{Name: "keep with a ticket", Target: itemsPath + "file/content", Header: urlencoded + ticketBearer, Body: "action=keep&held=x", Status: 403},
	})
}

// TestHeldTicket: a held upload counts on its ticket until it is ended.
func TestHeldTicket(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{})
	header := "Authorization: Bearer " + s.Ticket(t, "kind=file&hold=600&max_files=2") + "\n"
	ids := idsIn(t, s.Do(t, http.MethodPost, filePath, multipart+header, form(file("a.txt", "a"), file("b.txt", "b"))).Want(t, 202, ""))
	s.Do(t, http.MethodPost, filePath, multipart+header, form(file("c.txt", "c"))).Want(t, 403, "")
	s.Do(t, http.MethodDelete, heldPath+ids[0], header, "").Want(t, 204, "")
	id := idsIn(t, s.Do(t, http.MethodPost, filePath, multipart+header, form(file("c.txt", "c"))).Want(t, 202, ""))[0]
	keep(t, s, "content", "", ids[1], id).Want(t, 200, "")
	s.Do(t, http.MethodPost, filePath, multipart+header, form(file("d.txt", "d"))).Want(t, 403, "")
}

// TestHeldRepeated: a repeated request with an Idempotency-Key holds its files once.
func TestHeldRepeated(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{})
	send := func() *reply {
		return s.Do(t, http.MethodPost, filePath+"?hold=600", multipart+bearer+"Idempotency-Key: k\n", form(file("a.txt", "a"), file("b.txt", "b"))).Want(t, 202, "")
	}
	if first, again := send(), send(); first.Body != again.Body {
		t.Errorf("%s, again %s", first.Body, again.Body)
	}
	if records := s.Keys(t, "@uploads/open/"); len(records) != 2 {
		t.Errorf("records %v", records)
	}
}

// TestHeldTooMany: a request that can hold some of its files only holds none.
func TestHeldTooMany(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Resumable.MaxOpen = 1 })
	files := make([]part, 10) // more than are held at the same time
	for i := range files {
		files[i] = file("a.txt", "a")
	}
	header := "Authorization: Bearer " + s.Ticket(t, "kind=file&hold=600&max_files=20") + "\n"
	for _, credential := range []string{bearer, header} {
		s.Do(t, http.MethodPost, filePath+"?hold=600", multipart+credential+"Idempotency-Key: k\n", form(files...)).Want(t, 429, "Retry-After: 60")
		if left := unfinished(t, s); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
	s.Do(t, http.MethodPost, filePath, multipart+header, form(files[0])).Want(t, 202, "")
}

// TestHeldUsers: the account of users of another login may hold what they upload. Each user keeps
// his own.
func TestHeldUsers(t *testing.T) {
	t.Parallel()
	s := testservice.WithUsersAnd(t, media.Limits{}, func(c *media.Config) {
		for _, account := range c.Accounts {
			if account.Trusts() {
				account.Hold = options.Duration(10 * time.Minute)
			}
		}
	})
	bob := strings.ReplaceAll(asAlice, "alice", "bob")
	ids := idsIn(t, s.Do(t, http.MethodPost, filePath+"?alias=one", multipart+asAlice, form(file("new.txt", "a"))).Want(t, 202, ""))
	body := fmt.Sprint("action=keep&held=", ids[0])
	s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+bob, body).Want(t, 404, "")
	s.Do(t, http.MethodGet, heldPath+ids[0], bob, "").Want(t, 404, "")
	s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+asAlice, body+"&sub_folder=/").Want(t, 404, "")
	items := s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+asAlice, body).Want(t, 200, "").Items(t)
	if len(items) != 1 || items[0].Filename != "users/alice/new.txt" {
		t.Errorf("kept are %+v", items)
	}

	s.Do(t, http.MethodPost, filePath+"?alias=one", multipart+asAlice, form(file("other.txt", "a"))).Want(t, 202, "")
	record := s.Keys(t, "@uploads/open/")[0]
	text, _ := s.Stored(t, record)
	s.Put(t, record, strings.Replace(text, "users/alice", "people/alice", 1)) // of an earlier configuration
	body = "action=keep&held=" + record[strings.LastIndexByte(record, '.')+1:]
	s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+asAlice, body).Refused(t, 403, "another folder", "")
	s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+asAlice, body+"&sub_folder=users/alice").Want(t, 200, "")
}

// TestHeldTicketFiles: all files of a ticket can be held at the same time, by forms and by tus.
func TestHeldTicketFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{})
	const files = 20
	ticket := "Authorization: Bearer " + s.Ticket(t, fmt.Sprintf("kind=file&hold=600&max_files=%d", files)) + "\n"
	for n := range files {
		if n%2 == 0 {
			s.Do(t, http.MethodPost, filePath, multipart+ticket, form(file("a.txt", "text"))).Want(t, 202, "")
			continue
		}
		header := ticket + "Tus-Resumable: 1.0.0\nUpload-Length: 4\n" + metadata("filename", "a.txt") + tusBody
		s.Do(t, http.MethodPost, resumablePath, header, "text").Want(t, 201, "Media-Full-Path")
	}
	s.Do(t, http.MethodPost, filePath, multipart+ticket, form(file("a.txt", "text"))).Want(t, 403, "")
}
