package caller_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// TestUserAuthentication: a request without a credential of ours acts for the user, if there is
// one.
func TestUserAuthentication(t *testing.T) {
	t.Parallel()
	const list = itemsPath + "file/one"
	jwt := "Authorization: Bearer eyJhbGciOiJub25lIn0.e30.\n"
	mine := `"filename":"users/alice/a.txt"`
	get := func(name, header string, status int, has string) httpCase {
		return httpCase{Name: name, Target: list, Header: header, Status: status, Has: has}
	}
	run(t, withUsers, []httpCase{
		get("user", asAlice, 200, mine),
		get("nobody", "", 401, "nobody is logged in"),
		get("empty", "Test-User:\n", 401, "nobody is logged in"),
		get("user with a JWT", asAlice+jwt, 200, mine),
		get("JWT alone", jwt, 401, "nobody is logged in"),
		get("user with basic_auth", asAlice+"Authorization: Basic YWxpY2U6eA==\n", 200, mine),
		get("token of an account", asAlice+"Authorization: Bearer $OTHER\n", 403, "list"),
		get("wrong token", asAlice+"Authorization: Bearer wrong\n", 401, "form of tokens"),
		get("API key alone", asAlice+"Service-Api-Key: x\n", 401, "without a token"),
		get("authorization twice", asAlice+jwt+jwt, 401, "twice"),
		{
			Name: "no password", Target: tokenPath, Header: urlencoded, Body: "api_key=members&password=", Status: 400,
		},
		{Name: "no login", Target: tokenPath, Header: urlencoded, Body: "api_key=members&password=x", Status: 401},
		{Name: "no ticket", Target: ticketPath, Header: asAlice + urlencoded, Body: "kind=file&alias=one", Status: 403, Has: "users get no tickets"},
		{Name: "upload of nobody", Target: filePath, Header: multipart, Body: form(field("alias", "one"), file("a.txt", "x")), Status: 401},
		{Name: "other alias", Target: itemsPath + "file/two", Header: asAlice, Status: 403},
	})
	run(t, aSite, []httpCase{get("no account of users", asAlice, 401, "no token")})
	header := func(t *testing.T) *site {
		t.Helper()
		return withUsersAnd(t, media.Limits{}, func(c *media.Config) {
			c.Accounts["members"].Trust, c.Accounts["members"].TrustHeader = "", "Remote-User"
		})
	}
	run(t, header, []httpCase{
		get("header", "Remote-User: alice\n", 200, mine),
		get("header twice", "Remote-User: bob\nRemote-User: alice\n", 401, ""),
		get("empty header", "Remote-User:\n", 401, ""),
		get("placeholder where a header is trusted", asAlice, 401, ""),
	})
}

// TestUserFolder: a user can neither see nor change anything outside his folder, whatever the
// request is. All paths are those in the alias.
func TestUserFolder(t *testing.T) {
	t.Parallel()
	const one, replacing = itemsPath + "file/one", itemsPath + "file/replacing"
	missing, noFolder := "there is no such item", "there is no such folder"
	var cases []httpCase
	add := func(method, target, body string, status int, has string) {
		header := asAlice + urlencoded
		if method == http.MethodPut {
			header = asAlice + "If-Match: *\n"
		}
		cases = append(cases, httpCase{
			Name: method + " " + target + " " + body, Method: method, Target: target, Header: header, Body: body, Status: status, Has: has,
		})
	}
	for _, outside := range []string{"a.txt", "users/bob/a.txt", "users/alice2/a.txt", "users/bob", "users", "USERS/alice/a.txt", `users%5Cbob%5Ca.txt`} {
		add(http.MethodGet, one+"/"+outside, "", 404, missing)
		add(http.MethodDelete, one+"/"+outside, "", 404, missing)
		add(http.MethodPut, replacing+"/"+outside, "x", 404, missing)
		add(http.MethodPost, one+"/"+outside, "to=users/alice/x.txt", 404, missing)
		add(http.MethodPost, one+"/"+outside, "copy_to=users/alice/x.txt", 404, missing)
		add(http.MethodPost, one, "action=delete&filename="+outside, 200, `"deleted":false,"message":"`+missing)
	}
	for _, odd := range []string{"users/alice/../bob/a.txt", "users/alice/%2e%2e/bob/a.txt", "users/alice%2F..%2Fbob/a.txt", "users//alice/a.txt"} {
		add(http.MethodGet, one+"/"+odd, "", 400, "")
		add(http.MethodDelete, one+"/"+odd, "", 400, "")
	}
	for _, outside := range []string{"users", "users/bob", "users/alice2", "users/ALICE", "/", "other", "users/bob/../alice"} {
		status := 404
		if strings.Contains(outside, "..") || outside == "/" {
			status = 400
		}
		add(http.MethodGet, one+"?folder="+url.QueryEscape(outside), "", status, "folder")
		add(http.MethodPost, one, "action=delete&folder="+url.QueryEscape(outside), status, "folder")
	}
	for _, to := range []string{"x.txt", "users/x.txt", "users/bob/x.txt", "users/alice2/x.txt", "users/alice", "Users/alice/x.txt", "users/alice／x/a.txt"} {
		add(http.MethodPost, one+"/users/alice/a.txt", "to="+url.QueryEscape(to), 404, noFolder)
		add(http.MethodPost, one+"/users/alice/a.txt", "copy_to="+url.QueryEscape(to)+"&to_alias=exact", 404, noFolder)
	}
	for _, to := range []string{"users/alice/../bob/x.txt", "users/alice/．．/bob/x.txt", "users/alice//x.txt", "/users/alice/x.txt"} {
		add(http.MethodPost, one+"/users/alice/a.txt", "to="+url.QueryEscape(to), 400, "")
	}
	for _, folder := range []string{"/", "users", "users/bob", "users/alice2", "a", "users/alice／..／bob"} {
		body := form(file("x.txt", "x"))
		for target, body := range map[string]string{
			filePath + "?alias=one&sub_folder=" + url.QueryEscape(folder): body,
			filePath: form(field("alias", "one"), file("x.txt", "x"), field("sub_folder", folder)),
		} {
			cases = append(cases, httpCase{Name: "upload to " + folder + " " + target, Target: target, Header: asAlice + multipart, Body: body, Status: 404, Has: noFolder})
		}
	}
	for _, folder := range []string{"users/alice/../bob", "users/alice/．．/bob", "users/alice//b", `users/alice/a\b`} {
		cases = append(cases, httpCase{
			Name: "upload to " + folder, Target: filePath, Header: asAlice + multipart, Status: 400,
			Body: form(field("alias", "one"), field("sub_folder", folder), file("x.txt", "x")),
		})
	}
	const sign = "kind=file&alias=private"
	for _, outside := range []string{"&filename=a.txt", "&filename=users/alice/a.txt&filename=users/bob/a.txt", "&folder=/", "&folder=users", "&folder=users/bob"} {
		cases = append(cases, httpCase{Name: outside, Target: signPath, Header: asAlice + urlencoded, Body: sign + outside, Status: 404, Has: noFolder})
	}
	cases = append(cases,
		httpCase{Name: "odd name to sign", Target: signPath, Header: asAlice + urlencoded, Body: sign + "&filename=users/alice/../bob/a.txt", Status: 400},
		httpCase{Name: "sign", Target: signPath, Header: asAlice + urlencoded, Body: sign + "&filename=users/alice/a.txt", Status: 200},
		httpCase{Name: "sign the folder", Target: signPath, Header: asAlice + urlencoded, Body: sign, Status: 200, Has: `"folder":"users/alice"`},
	)
	run(t, withUsers, cases)
}

// TestUserItems: within his folder a user can do everything, and it is the default of every
// request.
func TestUserItems(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	stored := func(key, want string) {
		t.Helper()
		if got, ok := s.Stored(t, "file/"+key); got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	upload := func(parts ...part) string {
		t.Helper()
		got := httpCase{Target: filePath, Header: asAlice + multipart, Body: form(append([]part{field("alias", "one")}, parts...)...), Status: 200}.Check(t, s)
		_, rest, _ := strings.Cut(got.Body, `"filename":"`)
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	if got := upload(file("New.txt", "x")); got != "users/alice/new.txt" {
		t.Errorf("stored as %s", got)
	}
	if got := upload(field("sub_folder", "users/alice/Dir/"), file("a.txt", "x")); got != "users/alice/dir/a.txt" {
		t.Errorf("stored as %s", got)
	}
	for query, want := range map[string][]string{
		"":                         {"users/alice/a.txt", "users/alice/new.txt"},
		"?folder=users/alice/sub":  {"users/alice/sub/b.txt"},
		"?recursive=1&order=-name": {"users/alice/sub/b.txt", "users/alice/new.txt", "users/alice/dir/a.txt", "users/alice/a.txt"},
		"?search=a.txt":            {"users/alice/a.txt", "users/alice/dir/a.txt"},
	} {
		list, names := s.Do(t, http.MethodGet, itemsPath+"file/one"+query, asAlice, "").Listed(t)
		if !slices.Equal(names, want) || query == "" && !slices.Equal(list.Folders, []string{"users/alice/dir", "users/alice/sub"}) {
			t.Errorf("%s: %q, folders %q, want %q", query, names, list.Folders, want)
		}
	}
	post := func(target, body string, has string) {
		t.Helper()
		httpCase{Target: target, Header: asAlice + urlencoded, Body: body, Status: 200, Has: has}.Check(t, s)
	}
	post(itemsPath+"file/one/users/alice/a.txt", "to=users/alice/Moved.txt", `"filename":"users/alice/moved.txt"`)
	post(itemsPath+"file/one/users/alice/moved.txt", "copy_to=users/alice/c/d.txt&to_alias=exact", `"filename":"users/alice/c/d.txt"`)
	httpCase{
		Method: http.MethodPut, Target: itemsPath + "file/replacing/users/alice/a.txt", Header: asAlice + "If-Match: *\n", Body: "replaced", Status: 200,
	}.Check(t, s)
	stored("replacing/users/alice/a.txt", "replaced")
	stored("exact/users/alice/c/d.txt", "users/alice/a.txt")
	httpCase{Method: http.MethodDelete, Target: itemsPath + "file/one/users/alice/new.txt", Header: asAlice, Status: 200}.Check(t, s)
	post(itemsPath+"file/one", "action=delete&filename=users/alice/moved.txt&filename=users/bob/a.txt", `{"filename":"users/bob/a.txt","deleted":false`)
	s.Passed.Store(int64(2e9)) // the items are older than the request
	post(itemsPath+"file/replacing", "action=delete&folder=users/alice/sub", `"deleted":1`)
	post(itemsPath+"file/replacing", "action=delete&folder=&everything=yes", `"deleted":1`)
	for _, alias := range []string{"one", "replacing"} {
		for _, name := range []string{"users/bob/a.txt", "users/alice2/a.txt", "a.txt"} {
			stored(alias+"/"+name, name)
		}
		stored(alias+"/users/alice/a.txt", "")
	}
}

// TestUserIDs: a user of any ID has a folder of his own, and so do uploads of his. Package naming
// tests which folder that is.
func TestUserIDs(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	folders := map[string]bool{}
	for _, id := range []string{"alice", "Alice", "ali/ce", "../bob", "@uploads"} {
		header := "Test-User: " + id + "\n"
		r := httpCase{Target: filePath, Header: header + multipart, Body: form(field("alias", "one"), file("id.txt", id)), Status: 200}.Check(t, s)
		filename := r.Items(t)[0].Filename
		if folder := path.Dir(filename); folders[folder] || path.Dir(folder) != "users" {
			t.Errorf("%q has the folder %q", id, folder)
		} else {
			folders[folder] = true
		}
		if _, names := s.Do(t, http.MethodGet, itemsPath+"file/one", header, "").Listed(t); !slices.Contains(names, filename) || len(names) > 2 {
			t.Errorf("%q has %q", id, names)
		}
	}
}

// TestUserResumable: an upload belongs to its user.
func TestUserResumable(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	const protocol = "Tus-Resumable: 1.0.0\n"
	send := func(as, method, address, header, body string) *reply {
		t.Helper()
		return s.Exchange(t, s.Request(t, method, address, as+protocol+header, body))
	}
	named := metadata("filename", "a.txt", "alias", "one")
	address := send(asAlice, http.MethodPost, resumablePath, "Upload-Length: 4\n"+named, "").Want(t, 201, "").Header.Get("Location")
	const data = tusBody + "Upload-Offset: 0\n"
	for _, as := range []string{asBob, "Test-User: Alice\n"} {
		send(as, http.MethodHead, address, "", "").Want(t, 404, "")
		send(as, http.MethodGet, address, "", "").Want(t, 404, "")
		send(as, http.MethodPatch, address, data, "text").Want(t, 404, "")
		send(as, http.MethodDelete, address, "", "").Want(t, 404, "")
	}
	send("", http.MethodHead, address, "", "").Want(t, 401, "")
	send(asAlice, http.MethodPatch, address, data, "text").Want(t, 204, "Media-Filename: users/alice/a-"+noonSecond+".txt")
	send(asBob, http.MethodDelete, address, "", "").Want(t, 404, "")
	for folder, status := range map[string]int{"users/bob": 404, "/": 404, "users": 404, "users/alice/../bob": 400, "users/alice/x": 201} {
		send(asAlice, http.MethodPost, resumablePath, "Upload-Length: 4\n"+metadata("filename", "b.txt", "alias", "one", "sub_folder", folder), "").Want(t, status, "")
	}
	part := send(asAlice, http.MethodPost, resumablePath, "Upload-Length: 4\nUpload-Concat: partial\n"+tusBody, "part").Want(t, 201, "").Header.Get("Location")
	final := "Upload-Concat: final;" + part + "\n" + named
	send(asBob, http.MethodPost, resumablePath, final, "").Want(t, 400, "")
	send(asAlice, http.MethodPost, resumablePath, final, "").Want(t, 201, "Media-Filename: users/alice/a-1795176001.txt")
	for key := range s.Objects(t) {
		if strings.HasPrefix(key, "file/one/users/bob/") && key != "file/one/users/bob/a.txt" {
			t.Errorf("%s is stored", key)
		}
	}
}

// TestUserResumableConfirmed: an upload is not stored in a folder that is not that of the user any
// more.
func TestUserResumableConfirmed(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	const header = asAlice + "Tus-Resumable: 1.0.0\n"
	create := header + "Upload-Length: 4\n" + metadata("filename", "late.txt", "alias", "one")
	address := s.Exchange(t, s.Request(t, http.MethodPost, resumablePath, create, "")).Want(t, 201, "").Header.Get("Location")
	earlier := s.Change
	s.Change = func(c *media.Config) {
		earlier(c)
		c.Accounts["members"].SubFolder = "people/{http.auth.user.id}"
	}
	s.Current.Store(s.Service(t, media.Limits{}, account()))
	patch := s.Request(t, http.MethodPatch, address, header+tusBody+"Upload-Offset: 0\n", "text")
	s.Exchange(t, patch).Want(t, 403, "")
	for key := range s.Objects(t) {
		if strings.HasSuffix(key, "/late.txt") {
			t.Errorf("%s is stored", key)
		}
	}
}

// TestUserBounds: one user does not use up what another one may.
func TestUserBounds(t *testing.T) {
	t.Parallel()
	s := withUsersAnd(t, media.Limits{MaxUploads: 1}, func(c *media.Config) { c.Resumable.MaxOpen = 1 })
	create := func(as string, status int) {
		t.Helper()
		header := as + "Tus-Resumable: 1.0.0\nUpload-Length: 4\n" + metadata("filename", "a.txt", "alias", "one")
		s.Exchange(t, s.Request(t, http.MethodPost, resumablePath, header, "")).Want(t, status, "")
	}
	create(asAlice, 201)
	create(asAlice, 429)
	create(asBob, 201)
	body := form(field("alias", "one"), file("held.txt", "x"))
	r := s.Request(t, http.MethodPost, filePath, asAlice+multipart, body)
	r.Body = meanwhile(body, func() {
		for as, status := range map[string]int{asAlice: 429, asBob: 200} {
			s.Exchange(t, s.Request(t, http.MethodPost, filePath, as+multipart, form(field("alias", "one"), file("b.txt", "x")))).Want(t, status, "")
		}
	})
	s.Unread(t, r, http.StatusOK)
}

// TestUserConfirmed: the rights of a user are checked again before the commit.
func TestUserConfirmed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*media.Config){
		"no users any more": func(c *media.Config) { delete(c.Accounts, "members") },
		"other folder":      func(c *media.Config) { c.Accounts["members"].SubFolder = "people/{http.auth.user.id}" },
		"fewer rights":      func(c *media.Config) { c.Accounts["members"].May = []string{"list"} },
		"imports only":      func(c *media.Config) { c.Accounts["members"].May = []string{"list", "import"} },
		"other aliases":     func(c *media.Config) { c.Accounts["members"].Aliases = []string{"two"} },
		"other login": func(c *media.Config) {
			c.Accounts["members"].Trust, c.Accounts["members"].TrustHeader = "", "Remote-User"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []httpCase{
				{Method: http.MethodPost, Target: filePath, Header: multipart, Body: form(field("alias", "one"), file("held.txt", "x"))},
				{Method: http.MethodPut, Target: itemsPath + "file/replacing/users/alice/a.txt", Header: ifAny, Body: "replaced"},
			} {
				s := withUsers(t)
				r := s.Request(t, c.Method, c.Target, asAlice+c.Header, c.Body)
				r.Body = meanwhile(c.Body, func() {
					earlier := s.Change
					s.Change = func(c *media.Config) { earlier(c); change(c) }
					s.Current.Store(s.Service(t, media.Limits{}, account()))
				})
				w := httptest.NewRecorder()
				if s.Handler.ServeHTTP(w, r); w.Code != 403 && w.Code != 401 {
					t.Errorf("%s: %d %s", c.Method, w.Code, w.Body)
				}
				if _, stored := s.Stored(t, "file/one/users/alice/held.txt"); stored {
					t.Error("it is stored")
				}
				if got, _ := s.Stored(t, "file/replacing/users/alice/a.txt"); got != "users/alice/a.txt" {
					t.Errorf("it is replaced by %s", got)
				}
			}
		})
	}
}

// TestUserReplay: a kept answer is not sent again to a user with another folder.
func TestUserReplay(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	move := httpCase{
		Method: http.MethodPost, Target: itemsPath + "file/one/users/alice/a.txt",
		Header: asAlice + "Idempotency-Key: 1\n" + urlencoded, Body: "to=users/alice/moved.txt",
	}
	send := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, s.Request(t, move.Method, move.Target, move.Header, move.Body))
		return w
	}
	for range 2 {
		if w := send(); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	earlier := s.Change
	s.Change = func(c *media.Config) { earlier(c); c.Accounts["members"].SubFolder = "people/{http.auth.user.id}" }
	s.Current.Store(s.Service(t, media.Limits{}, account()))
	if w := send(); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "moved.txt") {
		t.Errorf("with another folder: %d %s", w.Code, w.Body)
	}
}

// TestUserOtherSites: a page of another site cannot act with the login of its visitor.
func TestUserOtherSites(t *testing.T) {
	t.Parallel()
	const cookie, fetch, from = "Cookie: s=1\n", "Sec-Fetch-Site: ", "Origin: "
	proxy := "Test-Proxy: 1\nX-Forwarded-Proto: https\nX-Forwarded-Host: shop.example:8443\n"
	origins := func(origins ...string) func(*testing.T) *site {
		return func(t *testing.T) *site {
			t.Helper()
			return withUsersAnd(t, media.Limits{}, func(c *media.Config) { c.CORS = origins })
		}
	}
	for name, c := range map[string]struct {
		header  string
		origins []string
		allowed bool
	}{
		"program":                     {"", nil, true},
		"program with a cookie":       {cookie, nil, false},
		"own page":                    {fetch + "same-origin\n" + cookie, nil, true},
		"by hand":                     {fetch + "none\n" + cookie, nil, true},
		"other site":                  {fetch + "cross-site\n" + cookie, nil, false},
		"other site without cookie":   {fetch + "cross-site\n", nil, false},
		"sister site":                 {fetch + "same-site\n" + cookie, nil, false},
		"unknown word":                {fetch + "x\n", nil, false},
		"two words":                   {fetch + "same-origin\n" + fetch + "cross-site\n", nil, false},
		"empty word":                  {"Sec-Fetch-Site:\n", nil, false},
		"own origin":                  {from + origin + "\n" + cookie, nil, true},
		"own origin with its port":    {from + origin + ":80\n", nil, false}, // no browser sends it
		"own origin by TLS":           {from + "https://example.com\n", nil, false},
		"own origin, other port":      {from + origin + ":8080\n", nil, false},
		"own origin as part":          {from + origin + ".evil.example\n", nil, false},
		"own origin twice":            {from + origin + "\n" + from + "https://evil.example\n", nil, false},
		"other origin":                {from + "https://evil.example\n", nil, false},
		"other origin without cookie": {from + "https://evil.example\n", nil, false},
		"null":                        {from + "null\n" + cookie, nil, false},
		"empty origin":                {"Origin:\n", nil, false},
		"behind a proxy":              {proxy + from + "https://shop.example:8443\n" + cookie, nil, true},
		"behind a proxy, other":       {proxy + from + origin + "\n" + cookie, nil, false},
		"not trusted":                 {strings.Replace(proxy, "Test-Proxy: 1\n", "", 1) + from + "https://shop.example:8443\n", nil, false},
		"named":                       {fetch + "cross-site\n" + from + "https://www.example\n" + cookie, []string{"https://www.example"}, true},
		"not named":                   {fetch + "cross-site\n" + from + "https://other.example\n" + cookie, []string{"https://www.example"}, false},
		"any":                         {fetch + "cross-site\n" + from + "https://www.example\n" + cookie, []string{"*"}, false},
		"null with any":               {from + "null\n", []string{"*"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := origins(c.origins...)(t)
			status := map[bool]int{true: 200, false: 403}[c.allowed]
			header := asAlice + c.header
			check := func(method, target, more, body string, status int) {
				t.Helper()
				httpCase{Method: method, Target: target, Header: header + more, Body: body, Status: status}.Check(t, s)
			}
			check(http.MethodPost, filePath+"?alias=one", multipart, form(file("new.txt", "x")), status)
			check(http.MethodPut, itemsPath+"file/replacing/users/alice/a.txt", "If-Match: *\n", "x", status)
			check(http.MethodPost, itemsPath+"file/one/users/alice/a.txt", urlencoded, "to=users/alice/b.txt", status)
			check(http.MethodPost, itemsPath+"file/exact", urlencoded, "action=delete&filename=users/alice/a.txt", status)
			check(http.MethodDelete, itemsPath+"file/one/users/alice/sub/b.txt", "", "", status)
			check(http.MethodPost, signPath, urlencoded, "kind=file&alias=private", status)
			check(http.MethodGet, itemsPath+"file/one", "", "", 200)
			check(http.MethodHead, itemsPath+"file/one", "", "", 200)
			created := map[bool]int{true: 201, false: 403}[c.allowed]
			tus := header + "Tus-Resumable: 1.0.0\nUpload-Length: 4\n" + metadata("filename", "t.txt", "alias", "one")
			s.Exchange(t, s.Request(t, http.MethodPost, resumablePath, tus, "")).Want(t, created, "")
			if !c.allowed { // a header may name another method
				s.Exchange(t, s.Request(t, http.MethodGet, resumablePath, tus+"X-HTTP-Method-Override: POST\n", "")).Want(t, 403, "")
			}
			httpCase{ // tokens are sent by pages themselves
				Target: filePath + "?alias=one", Header: bearer + c.header + multipart, Body: form(file("token.txt", "x")), Status: 200,
			}.Check(t, s)
		})
	}
}

// TestUserPut: a user uploads one file into the own folder, under keys that no other user shares.
func TestUserPut(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	put := func(user, path, body string, status int, has, want string) {
		t.Helper()
		httpCase{
			Method: http.MethodPut, Target: putPath + "one/" + path, Header: user + retryKey, Body: body, Status: status, Has: has, Want: want,
		}.Check(t, s)
	}
	put(asAlice, "n.txt", "text", 201, `"filename":"users/alice/n.txt"`, "Idempotency-Replayed:")
	put(asAlice, "n.txt", "text", 201, `"filename":"users/alice/n.txt"`, replayed)
	put(asBob, "n.txt", "text", 201, `"filename":"users/bob/n.txt"`, "Idempotency-Replayed:")
	put(asAlice, "users/alice/deep/n.txt", "text", 201, `"filename":"users/alice/deep/n.txt"`, "")
	put(asBob, "users/alice/n.txt", "text", 404, "folder", "")
	put("", "n.txt", "text", 401, "nobody is logged in", "")
	put(asAlice+"Origin: https://other.example\n", "o.txt", "text", 403, "", "")
}
