package uploads_test

import (
	"net/http"
	"testing"
)

// TestImport: an upload has files and addresses, in their order. Packages upload and fetch test the
// rules of imports.
func TestImport(t *testing.T) {
	t.Parallel()
	url := func(address string) part { return field("url", address) }
	text, a := url("$REMOTE/text.txt?key=1"), file("a.txt", "file")
	both := []string{"import", "upload"}
	for _, c := range []struct {
		name   string
		may    []string
		target string
		parts  []part
		status int
		keys   []string // of the stored items
		has    string   // a part of the first message
	}{
		{"in order", both, filePath, []part{text, a, text}, 200, []string{"file/content/text.txt", "file/content/a.txt", "file/content/text-" + noonSecond + ".txt"}, ""},
		{"image", both, imagePath, []part{url("$REMOTE/image")}, 200, []string{"img/content/image.png"}, ""},
		{"empty", both, filePath, []part{a, url("")}, 200, []string{"file/content/a.txt"}, ""},
		{"address inside", both, filePath, []part{a, url("http://10.1.2.3/a.txt")}, 400, nil, "may not be fetched"},
		{"failed", both, filePath, []part{a, url("$REMOTE/none.txt")}, 502, nil, "answered 404"},
		{"slow", both, filePath, []part{url("$REMOTE/slow.txt"), a}, 504, nil, "too long"},
		{"right to import", []string{"import"}, filePath, []part{text}, 200, []string{"file/content/text.txt"}, ""},
		{"files without the right", []string{"import"}, filePath, []part{text, a}, 403, nil, "the right upload"},
		{"no right to import", []string{"upload"}, filePath, []part{a, text}, 403, nil, "the right import"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := importing(c.may...)(t)
			r := s.Do(t, http.MethodPost, c.target, multipart+bearer, s.Replaced(t, form(c.parts...)))
			if c.status != 200 {
				r.Refused(t, c.status, c.has)
				return
			}
			items := r.Items(t)
			if len(items) != len(c.keys) {
				t.Fatalf("%s", r.Body)
			}
			for i, item := range items {
				content, _ := s.Stored(t, c.keys[i])
				item.At(t, s, c.keys[i], content)
			}
		})
	}
	s := importing("import")(t)
	address := s.Replaced(t, "$REMOTE/none.txt?key=1")
	s.Do(t, http.MethodPost, filePath, multipart+bearer, form(url(address))).Refused(t, 502, "404", address) // as it was sent
}

// TestImportByTicket: a ticket is for files only.
func TestImportByTicket(t *testing.T) {
	t.Parallel()
	s := importing("import", "upload")(t)
	s.Ticket(t, "kind=file")
	post := httpCase{Target: filePath, Header: multipart + ticketBearer, Body: form(field("url", "http://10.1.2.3/")), Status: 403, Has: "send a token"}
	post.Check(t, s)
	post.Body, post.Status, post.Has = form(file("a.txt", "text")), 200, ""
	post.Check(t, s)
}
