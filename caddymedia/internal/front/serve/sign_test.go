package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
)

// signAnswer is the response to a request for signed addresses.
type signAnswer struct {
	Success bool
	Result  []struct {
		Filename, URL, Folder, Query string
		ExpiresAt                    int64 `json:"expires_at"`
	}
}

// signed requests signed addresses.
func signed(t *testing.T, s *site, body string) signAnswer {
	t.Helper()
	got := httpCase{
		Method: http.MethodPost, Target: signPath, Header: bearer + urlencoded, Body: body, Status: 200, Want: "Cache-Control: no-store",
	}.Check(t, s)
	var answer signAnswer
	if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || !answer.Success || len(answer.Result) == 0 {
		t.Fatalf("%s: %v in %s", body, err, got.Body)
	}
	return answer
}

// TestSign: the addresses are those that the handler serves, in the order of the request.
func TestSign(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	const file = "kind=file&alias=private"
	answer := signed(t, s, file+"&filename=26-11/a.txt&filename=none.txt&filename="+url.QueryEscape("ěš č.txt"))
	for i, want := range []struct {
		filename, start string
		status          int
	}{
		{"26-11/a.txt", origin + privateFiles + "/26-11/a.txt?expires=" + noonPlus(3600) + "&signature=", 200},
		{"none.txt", origin + privateFiles + "/none.txt?expires=", 404},
		{"ěš č.txt", origin + privateFiles + "/%C4%9B%C5%A1%20%C4%8D.txt?expires=", 200},
	} {
		got := answer.Result[i]
		if got.Filename != want.filename || !strings.HasPrefix(got.URL, want.start) || got.ExpiresAt != inAnHour {
			t.Errorf("got %+v, want %+v", got, want)
		}
		httpCase{Target: got.URL, Status: want.status}.Check(t, s)
	}
	if want := origin + privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt"); answer.Result[0].URL != want {
		t.Errorf("got %s, want %s", answer.Result[0].URL, want)
	}
	for body, want := range map[string]string{
		file + "&filename=26-11/a.txt&expires_in=604800":               hourPrivate,
		file + "&filename=26-11/a.txt&expires_in=1":                    "Cache-Control: private, max-age=1",
		file + "&filename=26-11/a.txt&download=" + "a%26b.txt":         "Content-Disposition: attachment; filename=a&b.txt",
		"kind=image&alias=private&filename=a.svg&rendition=thumb":      "Content-Type: image/svg+xml",
		"kind=image&alias=private&filename=26-11/a.png&rendition=wide": "Content-Type: image/png",
		"kind=image&alias=shared&filename=a.png&expires_in=7200":       "Cache-Control: public, max-age=7200",
	} {
		httpCase{Target: signed(t, s, body).Result[0].URL, Status: 200, Want: want}.Check(t, s)
	}
	folder := signed(t, s, file+"&folder=26-11&download=x.txt").Result[0]
	if folder.Folder != "26-11" || folder.URL != "" || folder.Filename != "" || folder.ExpiresAt != inAnHour || strings.HasPrefix(folder.Query, "?") {
		t.Errorf("got %+v", folder)
	}
	httpCase{Target: privateFiles + "/26-11/a.txt?" + folder.Query, Status: 200}.Check(t, s)
	root := signed(t, s, file+"&folder=/").Result[0]
	httpCase{Target: privateFiles + "/ěš%20č.txt?" + root.Query, Status: 200}.Check(t, s)
}

func noonPlus(seconds int64) string { return strconv.FormatInt(noon.Unix()+seconds, 10) }

// TestSignRefused: the request is refused as other requests with a small form.
func TestSignRefused(t *testing.T) {
	t.Parallel()
	const good = "kind=file&alias=private&filename=a.txt"
	many := strings.Repeat("&filename=a.txt", 1000)
	bad := func(name, body, message string) httpCase {
		return httpCase{Name: name, Target: signPath, Header: bearer + urlencoded, Body: body, Status: 400, Text: `{"success":false,"message":` + strconv.Quote(message) + "}\n", Want: "Cache-Control: no-store"}
	}
	run(t, withPrivate, []httpCase{
		bad("no kind", "alias=private&filename=a", "the field kind is missing"),
		bad("kind", "kind=img&alias=private&filename=a", "the field kind must be image or file"),
		bad("unknown alias", "kind=file&alias=none&filename=a", `unknown alias "none"`),
		bad("public alias", "kind=file&alias=one&filename=a", `the alias "one" is not private: its addresses need no signature`),
		bad("default alias", "kind=file&filename=a", `the alias "content" is not private: its addresses need no signature`),
		bad("too long", good+"&expires_in=604801", "the field expires_in must be a whole number from 1 to 604800"),
		bad("no time", good+"&expires_in=0", "the field expires_in must be a whole number from 1 to 604800"),
		bad("no name", "kind=file&alias=private", "name either items by their filename or one folder"),
		bad("both", good+"&folder=x", "name either items by their filename or one folder"),
		bad("empty name", "kind=file&alias=private&filename=", `"" is no filename`),
		bad("name that no item has", "kind=file&alias=private&filename=a/../b", `"a/../b" is no filename`),
		bad("folder with a slash", "kind=file&alias=private&folder=a/", "the folder is invalid: it has no slash at its start and its end, and / is the root"),
		bad("unknown rendition", "kind=image&alias=private&filename=a.png&rendition=x", `unknown rendition "x" of the alias "private"`),
		bad("download with a slash", good+"&download=a/b", "the name of the download is invalid"),
		bad("download with a line", good+"&download=a%0Db", "the name of the download is invalid"),
		bad("twice", good+"&expires_in=1&expires_in=2", "the field expires_in is sent twice"),
		bad("too many", good+many, "there are more than 1000 fields filename"),
		{Name: "as many as allowed", Target: signPath, Header: bearer + urlencoded, Body: "kind=file&alias=private" + many, Status: 200},
		{Name: "GET", Target: signPath, Status: 405, Want: "Allow: POST\nCache-Control: no-store"},
		{Name: "no token", Target: signPath, Header: urlencoded, Body: good, Status: 401},
		{Name: "no right", Target: signPath, Header: "Authorization: Bearer $OTHER\n" + urlencoded, Body: good, Status: 403, Has: "needs the right sign"},
		{Name: "near miss", Target: "/api/Signs/", Header: bearer + urlencoded, Body: good, Status: 404, Text: `{"success":false,"message":"there is no such address: use /api/sign"}` + "\n"},
		{Name: "malformed", Target: signPath, Header: bearer + urlencoded, Body: "kind=%zz", Status: 400},
	})
	s := withPrivate(t)
	s.Change = func(c *media.Config) {
		setPrivateAliases(c)
		c.Accounts[someKey].Aliases = []string{"one"}
	}
	s.Current.Store(s.Service(t, media.Limits{}, account("one")))
	s.First = s.Current.Load()
	for _, alias := range []string{"private", "none"} {
		httpCase{Target: signPath, Header: bearer + urlencoded, Body: "kind=file&alias=" + alias + "&filename=a", Status: 403, Has: "the account may not use the alias"}.Check(t, s)
	}
}

// TestSignWithTicket: a ticket is for uploads only.
func TestSignWithTicket(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	s.Ticket(t, "kind=file&alias=private")
	httpCase{Target: signPath, Header: ticketBearer + urlencoded, Body: "kind=file&alias=private&filename=a", Status: 403}.Check(t, s)
}

// TestStep: within a step all addresses are the same, at all nodes, and valid for at least the
// requested time.
func TestStep(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	const body = "kind=file&alias=stepped&filename=a.txt&expires_in=1800"
	first := signed(t, s, body).Result[0]
	if first.ExpiresAt != inAnHour {
		t.Errorf("expires at %d, want %d", first.ExpiresAt, inAnHour)
	}
	for passed, same := range map[time.Duration]bool{
		time.Second: true, 29 * time.Minute: true, 30 * time.Minute: true, 30*time.Minute + time.Second: false,
	} {
		s.Passed.Store(int64(passed))
		if again := signed(t, s, body).Result[0]; (again.URL == first.URL) != same {
			t.Errorf("after %v: %s, first %s", passed, again.URL, first.URL)
		}
		httpCase{Target: first.URL, Status: 200, Want: fmt.Sprintf("Cache-Control: private, max-age=%d", 3600-int(passed.Seconds()))}.Check(t, s)
	}
	s.Passed.Store(int64(time.Second))
	week := signed(t, s, "kind=file&alias=stepped&filename=a.txt&expires_in=604800").Result[0]
	if week.ExpiresAt != noon.Unix()+604800 {
		t.Errorf("a week expires at %d", week.ExpiresAt)
	}
	httpCase{Target: week.URL, Status: 200}.Check(t, s)
}

// TestSignInGo: Go code has the bounds of the endpoint.
func TestSignInGo(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	for name, c := range map[string]struct {
		kind, alias, filename string
		lifetime              time.Duration
		want                  string
	}{
		"file":          {"file", "private", "26-11/a.txt", time.Hour, privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt")},
		"default":       {"file", "private", "26-11/a.txt", 0, privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt")},
		"image":         {"image", "private", "b.png", time.Hour, privateImages + "/b.png?" + imageOf("b.png", "")},
		"rendition":     {"image", "private@wide", "b.png", time.Hour, privateImages + "@wide/b.png?" + imageOf("b.png", "wide")},
		"unknown alias": {"file", "none", "a", 0, `unknown alias "none"`},
		"public alias":  {"image", "content", "a", 0, `the alias "content" is not private: its addresses need no signature`},
		"too long":      {"file", "private", "a", 8 * 24 * time.Hour, "an address is valid for 1 to 604800 seconds"},
		"too short":     {"file", "private", "a", time.Millisecond, "an address is valid for 1 to 604800 seconds"},
		"negative":      {"file", "private", "a", -time.Hour, "an address is valid for 1 to 604800 seconds"},
	} {
		sign := s.First.FileURL
		if c.kind == "image" {
			sign = s.First.ImageURL
		}
		got, err := sign(t.Context(), c.alias, c.filename, c.lifetime)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestSignedAreCounted: the observer learns how many addresses were signed, and for whom.
func TestSignedAreCounted(t *testing.T) {
	t.Parallel()
	counted := &signatures{}
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		setPrivateAliases(c)
		c.Observer = counted
	})
	signed(t, s, "kind=file&alias=private&filename=a&filename=b")
	signed(t, s, "kind=file&alias=private&folder=a")
	if got := strings.Join(counted.all, ", "); got != someKey+" 2, "+someKey+" 1" {
		t.Errorf("got %s", got)
	}
}

type signatures struct {
	testservice.Observer
	all []string
}

func (o *signatures) Signed(_ context.Context, apiKey string, addresses int) {
	o.all = append(o.all, fmt.Sprint(apiKey, " ", addresses))
}
