package mediahttp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/caller"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/uploads"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
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

// answered is a response to an upload of either kind.
type answered struct {
	status int
	header http.Header

	Success bool `json:"success"`
	Result  []struct {
		FullPath string `json:"full_path"`
		Filename string `json:"filename"`
	} `json:"result"`
	Errors []struct {
		Message  string `json:"message"`
		Filename string `json:"filename"`
	} `json:"errors"`
}

// send sends a request, checks the header of the response and returns it.
func (k *known) send(t *testing.T, method, query, contentType, body string) answered {
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
	a := answered{status: response.StatusCode, header: response.Header}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("%d %q: %v", response.StatusCode, b, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Www-Authenticate": "",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if ok := response.StatusCode == http.StatusOK; ok != a.Success || ok == response.Close {
		t.Errorf("%d: success %t, connection closed %t", response.StatusCode, a.Success, response.Close)
	}
	return a
}

// TestUploadOfKnownCaller: no token is needed, and an alias that the account may not use is
// refused, whether the address or the form names it.
func TestUploadOfKnownCaller(t *testing.T) {
	t.Parallel()
	for _, account := range []access.Account{{APIKey: "few", Aliases: []string{"one"}}, {APIKey: "all"}} {
		k := serveKnown(t, account)
		for _, alias := range []string{"one", "two"} {
			for how, c := range map[string]struct{ query, body string }{
				"query": {"?alias=" + alias, form(file("query.txt", "text"))},
				"form":  {"", form(field("alias", alias), file("form.txt", "text"))},
			} {
				t.Run(account.APIKey+" "+alias+" by "+how, func(t *testing.T) {
					t.Parallel()
					a := k.send(t, http.MethodPost, c.query, multipartType, c.body)
					content, stored := k.site.Stored(t, "file/"+alias+"/"+how+".txt")
					if !account.Allows(alias) {
						if a.status != http.StatusForbidden || len(a.Errors) != 1 || !strings.Contains(a.Errors[0].Message, alias) {
							t.Errorf("%d %+v", a.status, a)
						}
						if stored {
							t.Error("it is stored")
						}
						return
					}
					if a.status != http.StatusOK || content != "text" {
						t.Fatalf("%d %+v, stored %q", a.status, a, content)
					}
					if want := k.URL + "/static/file/" + alias + "/" + how + ".txt"; a.Result[0].FullPath != want {
						t.Errorf("address %s, want %s", a.Result[0].FullPath, want)
					}
				})
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
		a := k.send(t, http.MethodPost, "?alias=one", multipartType, form(file("a.txt", "text")))
		if _, stored := k.site.Stored(t, "file/one/a.txt"); a.status != want || stored != (want == http.StatusOK) {
			t.Errorf("confirmed %d times: %d %+v, stored: %t", confirmed, a.status, a.Errors, stored)
		}
	}
}

// TestUploadRefuses: requests are refused and counted as by the endpoints. Only failures that are
// not the caller's fault are logged.
func TestUploadRefuses(t *testing.T) {
	t.Parallel()
	k := serveKnown(t, access.Account{APIKey: "all"})
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
		{"alias twice", http.MethodPost, "?alias=one&alias=two", multipartType, form(file("a.txt", "text")), 400, "alias is sent twice"},
		{"sub folder twice", http.MethodPost, "?alias=one&sub_folder=a&sub_folder=a", multipartType, form(file("a.txt", "text")), 400, "sub_folder is sent twice"},
		{"unknown alias", http.MethodPost, "?alias=one", multipartType, form(field("alias", "none"), file("a.txt", "text")), 400, "unknown alias"},
		{"malformed", http.MethodPost, "?alias=one", multipartType, "--x\r\n", 400, ""},
		{"extension", http.MethodPost, "?alias=one", multipartType, form(file("a.php", "text")), 415, "php"},
	} {
		counted := k.site.Refusals.Load()
		a := k.send(t, c.method, c.query, c.contentType, c.body)
		if a.status != c.status || len(a.Errors) != 1 || !strings.Contains(a.Errors[0].Message, c.message) {
			t.Errorf("%s: %d %+v, want %d %q", c.name, a.status, a.Errors, c.status, c.message)
		}
		if allow := a.header.Get("Allow"); (allow == http.MethodPost) != (c.status == 405) {
			t.Errorf("%s: Allow: %q", c.name, allow)
		}
		if n := k.site.Refusals.Load() - counted; n != 1 {
			t.Errorf("%s: counted %d times", c.name, n)
		}
	}
	if lines := k.site.Log.Take(); len(lines) > 0 {
		t.Errorf("logged: %q", lines)
	}
	a := k.send(t, http.MethodPost, "?alias=broken", multipartType, form(file("a.txt", "text")))
	if a.status < 500 || len(a.Errors) != 1 {
		t.Errorf("a storage that is unreachable: %d %+v", a.status, a)
	}
	lines := k.site.Log.Take()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "ERROR ") || !strings.HasSuffix(lines[0], " "+strconv.Itoa(a.status)) {
		t.Errorf("logged: %q", lines)
	}
	if page, err := k.site.Driver.List(t.Context(), storagedrivers.ListOptions{}); err != nil || len(page.Objects) > 0 {
		t.Errorf("stored %v: %v", page.Objects, err)
	}
}
