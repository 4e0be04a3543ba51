package uploads_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/uploads"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// known is a server for which every caller is the same account, without credentials.
type known struct {
	*httptest.Server
	site  *site
	known caller.Known
}

func serveKnown(t *testing.T, account access.Account) *known {
	t.Helper()
	k := &known{site: newSite(t, media.Limits{MaxBody: 2048}), known: caller.Known{Account: account, Origin: item.OriginPanel}}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := uploads.Serve(k.site.Gate, w, r, item.File, k.known); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(k.Close)
	return k
}

// send sends a request, checks the header of the response and returns it.
func (k *known) send(t *testing.T, method, query, contentType, body string) *reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.URL+"/anywhere"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	response, err := k.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := &reply{Status: response.StatusCode, Header: response.Header, Body: string(b)}
	got.Want(t, got.Status, "Content-Type: application/json\nCache-Control: no-store\nX-Content-Type-Options: nosniff\nWww-Authenticate")
	if ok := got.Status == http.StatusOK; ok == response.Close {
		t.Errorf("%d: connection closed %t", got.Status, response.Close)
	}
	return got
}

// TestUploadOfKnownCaller: no token is needed, and an alias that the account may not use is
// refused, whether the address or the form names it.
func TestUploadOfKnownCaller(t *testing.T) {
	t.Parallel()
	k := serveKnown(t, access.Account{APIKey: "few", Aliases: []string{"one"}})
	for _, alias := range []string{"one", "two"} {
		for how, c := range map[string]struct{ query, body string }{
			"query": {"?alias=" + alias, form(file("query.txt", "text"))},
			"form":  {"", form(field("alias", alias), file("form.txt", "text"))},
		} {
			got := k.send(t, http.MethodPost, c.query, multipartType, c.body)
			content, stored := k.site.Stored(t, "file/"+alias+"/"+how+".txt")
			if alias == "two" {
				if got.Refused(t, http.StatusForbidden, alias, ""); stored {
					t.Error("it is stored")
				}
				continue
			}
			if want := k.URL + "/static/file/" + alias + "/" + how + ".txt"; got.Items(t)[0].FullPath != want || content != "text" {
				t.Errorf("%s, want %s, stored %q", got.Body, want, content)
			}
		}
	}
}

// TestUploadConfirms: nothing is stored if the right to upload is withdrawn before a request or
// while its body is read.
func TestUploadConfirms(t *testing.T) {
	t.Parallel()
	k := serveKnown(t, access.Account{APIKey: "all"})
	for confirmed, want := range []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK} {
		calls := 0
		k.known.Confirm = func(running *service.Service) bool {
			if running != service.Of(k.site.First) {
				t.Error("asked for another service than the running one")
			}
			calls++
			return calls <= confirmed
		}
		got := k.send(t, http.MethodPost, "?alias=one", multipartType, form(file("a.txt", "text")))
		if _, stored := k.site.Stored(t, "file/one/a.txt"); got.Status != want || stored != (want == http.StatusOK) {
			t.Errorf("confirmed %d times: %+v, stored: %t", confirmed, got, stored)
		}
	}
}

// TestUploadRefuses: a problem of the whole request is one error without a name, and is counted
// once. Only failures that are not the caller's fault are logged.
func TestUploadRefuses(t *testing.T) {
	t.Parallel()
	k := serveKnown(t, access.Account{APIKey: "all"})
	text := file("a.txt", "text")
	for _, c := range []struct {
		name, method, query, contentType, body string
		status                                 int
		message                                string
	}{
		{"method", http.MethodPut, "", "text/plain", "x", 405, "use POST"},
		{"content type", http.MethodPost, "", "text/plain", "x", 415, "multipart/form-data"},
		{"no content type", http.MethodPost, "", "", "x", 415, "multipart/form-data"},
		{"no boundary", http.MethodPost, "", "multipart/form-data", "x", 400, "boundary"},
		{"long boundary", http.MethodPost, "", "multipart/form-data; boundary=" + strings.Repeat("x", 71), "x", 400, "boundary"},
		{"size", http.MethodPost, "", multipartType, strings.Repeat("x", 2049), 413, "2 KiB"},
		{"alias twice", http.MethodPost, "?alias=one&alias=two", multipartType, form(text), 400, "alias is sent twice"},
		{"sub folder twice", http.MethodPost, "?alias=one&sub_folder=a&sub_folder=a", multipartType, form(text), 400, "sub_folder is sent twice"},
		{"unknown alias", http.MethodPost, "?alias=one", multipartType, form(field("alias", "{env.HOME}"), text), 400, "unknown alias"},
		{"unknown alias in the query", http.MethodPost, "?alias=none", multipartType, form(text), 400, "unknown alias"},
		{"no file", http.MethodPost, "?alias=one", multipartType, form(field("files[]", "x")), 400, "no file"},
		{"malformed", http.MethodPost, "?alias=one", multipartType, "--x\r\n", 400, ""},
	} {
		counted := k.site.Refusals.Load()
		got := k.send(t, c.method, c.query, c.contentType, c.body)
		got.Refused(t, c.status, c.message, "")
		if allow := got.Header.Get("Allow"); (allow == http.MethodPost) != (c.status == 405) {
			t.Errorf("%s: Allow: %q", c.name, allow)
		}
		if n := k.site.Refusals.Load() - counted; n != 1 {
			t.Errorf("%s: counted %d times", c.name, n)
		}
	}
	if lines := k.site.Log.Take(); len(lines) > 0 {
		t.Errorf("logged: %q", lines)
	}
	k.send(t, http.MethodPost, "?alias=broken", multipartType, form(text)).Refused(t, http.StatusServiceUnavailable, "", "a.txt")
	lines := k.site.Log.Take()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "ERROR ") || !strings.HasSuffix(lines[0], " "+strconv.Itoa(http.StatusServiceUnavailable)) {
		t.Errorf("logged: %q", lines)
	}
	if stored := k.site.Objects(t); len(stored) > 0 {
		t.Errorf("stored %v", stored)
	}
}
