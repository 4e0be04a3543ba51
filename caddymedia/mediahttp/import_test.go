package mediahttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// importing returns a constructor of sites whose account has these rights, with $REMOTE as the
// address of a server that they may fetch from. Its addresses are /text.txt, /large.txt, /slow.txt,
// /image and some that fail.
func importing(may ...string) func(*testing.T) *site {
	return func(t *testing.T) *site {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/text.txt":
				io.WriteString(w, "text")
			case "/image":
				io.WriteString(w, samples["png"])
			case "/large.txt":
				io.WriteString(w, "more than ten bytes")
			case "/slow.txt":
				<-r.Context().Done()
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(server.Close)
		port := netip.MustParseAddrPort(server.Listener.Addr().String()).Port()
		s := newSiteWith(t, media.Limits{MaxFiles: 3, MaxFields: 1}, func(c *media.Config) {
			c.Accounts[someKey].May = may
			c.Downloads = media.Downloads{
				Allow: []string{"127.0.0.1"}, Ports: []string{strconv.Itoa(int(port)), "80"}, Timeout: options.Duration(300 * time.Millisecond),
			}
		})
		s.Vars = []string{"$REMOTE", server.URL}
		return s
	}
}

// importCase is an upload of a form with $REMOTE in it.
type importCase struct {
	name   string
	target string // default: the endpoint for files
	parts  []part
	status int
	keys   []string // of the stored items
	has    string   // a part of the response
}

func (c importCase) run(t *testing.T, newSite func(*testing.T) *site) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		target := c.target
		if target == "" {
			target = filePath
		}
		body := s.Replaced(t, form(c.parts...))
		r := s.Do(t, http.MethodPost, target, multipart+bearer, body)
		if r.Status != c.status {
			t.Fatalf("%d %s, want %d", r.Status, r.Body, c.status)
		}
		if c.status != 200 {
			r.Refused(t, c.status, s.Replaced(t, c.has))
			return
		}
		items := r.Items(t)
		if len(items) != len(c.keys) {
			t.Fatalf("%s", r.Body)
		}
		for i, item := range items {
			content, stored := s.Stored(t, c.keys[i])
			if !stored {
				t.Errorf("%s is not stored: %s", c.keys[i], r.Body)
			}
			item.At(t, s, c.keys[i], content)
		}
	})
}

// TestImportByUpload: an upload has files and addresses, in their order.
func TestImportByUpload(t *testing.T) {
	t.Parallel()
	text, missing := field("url", "$REMOTE/text.txt?key=1"), field("url", "$REMOTE/none.txt")
	a := file("a.txt", "file")
	for _, c := range []importCase{
		{name: "alone", parts: []part{text}, status: 200, keys: []string{"file/content/text.txt"}},
		{name: "in order", parts: []part{text, a, text}, status: 200, keys: []string{"file/content/text.txt", "file/content/a.txt", "file/content/text-" + noonSecond + ".txt"}},
		{name: "alias behind", parts: []part{text, field("alias", "one")}, status: 200, keys: []string{"file/one/text.txt"}},
		{name: "image", target: imagePath, parts: []part{field("url", "$REMOTE/image")}, status: 200, keys: []string{"img/content/image.png"}},
		{name: "empty", parts: []part{a, field("url", "")}, status: 200, keys: []string{"file/content/a.txt"}},
		{name: "refused address", parts: []part{a, field("url", "http://10.1.2.3/a.txt")}, status: 400, has: "may not be fetched"},
		{name: "no web address", parts: []part{field("url", "file:///a.txt")}, status: 400, has: "http://"},
		{name: "failed", parts: []part{a, missing}, status: 502, has: "answered 404"},
		{name: "slow", parts: []part{field("url", "$REMOTE/slow.txt"), missing, a}, status: 504, has: "too long"},
		{name: "too large", parts: []part{field("url", "$REMOTE/large.txt"), field("alias", "small")}, status: 413, has: "larger than 10 bytes"},
		{name: "content", target: imagePath, parts: []part{field("url", "$REMOTE/text.txt")}, status: 415, has: ".txt is not accepted"},
		{name: "too many", parts: []part{text, text, a, text}, status: 413, has: "more than 3 files"},
	} {
		c.run(t, importing("import", "upload"))
	}
	importCase{name: "right to import", parts: []part{text}, status: 200, keys: []string{"file/content/text.txt"}}.run(t, importing("import"))
	importCase{name: "files without the right", parts: []part{text, a}, status: 403, has: "the right upload"}.run(t, importing("import"))
	importCase{name: "no right to import", parts: []part{a, text}, status: 403, has: "the right import"}.run(t, importing("upload"))
	importCase{name: "neither", parts: []part{text}, status: 403, has: "the right upload"}.run(t, importing("list"))
}

// TestImportFilename: failures name the address as it was sent.
func TestImportFilename(t *testing.T) {
	t.Parallel()
	s := importing("import")(t)
	address := s.Replaced(t, "$REMOTE/none.txt?key=1")
	s.Do(t, http.MethodPost, filePath, multipart+bearer, form(field("url", address))).Refused(t, 502, "404", address)
}

// TestImportByTicket: a ticket and resumable uploads are for files only.
func TestImportByTicket(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) *site {
		t.Helper()
		s := importing("import", "upload")(t)
		s.Ticket(t, "kind=file")
		return s
	}, []httpCase{
		{Name: "address", Target: filePath, Header: multipart + ticketBearer, Body: form(field("url", "http://10.1.2.3/")), Status: 403, Has: "send a token"},
		{Name: "file", Target: filePath, Header: multipart + ticketBearer, Body: form(file("a.txt", "text")), Status: 200},
	})
	create := tusHeader + "Upload-Length: 4\n" + metadata("filename", "a.txt")
	run(t, importing("import"), []httpCase{
		{Name: "resumable", Method: http.MethodPost, Target: filePath + "/resumable", Header: create, Status: 403, Has: "the right upload"},
		{Name: "ticket", Target: ticketPath, Header: urlencoded + bearer, Body: "kind=file", Status: 403, Has: "the right upload"},
	})
}
