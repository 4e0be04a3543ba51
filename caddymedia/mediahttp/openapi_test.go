package mediahttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// TestOpenAPI requests every response of the OpenAPI document. Each is compared with the document,
// like those of all other tests.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { testservice.CheckAllSeen(t) }) // after its subtests
	requestTokens(t)
	requestTickets(t)
	for target, name := range map[string]string{imagePath: "img/content/a.gif", filePath: "file/content/a.txt"} {
		requestUploads(t, target, path.Base(name))
		requestItems(t, name)
		requestBusyItems(t, name)
		requestLists(t, name)
		requestTrash(t, name)
		requestReplacements(t, name)
		requestTransfers(t, name)
		requestKeys(t, name)
	}
	requestResumable(t)
	requestHeld(t)
	requestBusyUploads(t)
	requestRenditions(t)
	requestExpired(t)
	requestSigned(t)
	requestOfUsers(t)
}

// requestExpired requests items whose time has ended.
func requestExpired(t *testing.T) {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.ImageAliases["content"].Expires, c.FileAliases["content"].Expires = "90d", "90d"
	})
	s.Put(t, "img/content/a.png", pngOf(40, 30))
	s.Put(t, "file/content/a.txt", "text")
	s.Passed.Store(int64(10 * 365 * 24 * time.Hour))
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		httpCase{Method: method, Target: "/static/img/content/a.png", Status: 410}.Check(t, s)
		httpCase{Method: method, Target: "/static/file/content/a.txt", Status: 410}.Check(t, s)
	}
}

// requestRenditions requests renditions that cannot be made or stored.
func requestRenditions(t *testing.T) {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: on("main"), Renditions: testservice.Sizes}
	})
	s.Put(t, "img/sized/bad.png", "no picture")
	s.Put(t, "img/sized/a.png", pngOf(40, 30))
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		httpCase{Method: method, Target: "/static/img/sized@thumb/bad.png", Status: 415}.Check(t, s)
	}
	s.Driver.Fail = func(op, _ string) error {
		if op == "put" {
			return storagedrivers.ErrNoSpace
		}
		return nil
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		httpCase{Method: method, Target: "/static/img/sized@thumb/a.png", Status: 507, Want: "ETag\nCache-Control: no-store"}.Check(t, s)
	}
}

func requestTokens(t *testing.T) {
	t.Helper()
	s := newSite(t, media.Limits{LoginFailures: 1})
	login(someKey, password).Check(t, s)
	post := func(header, body string, status int) {
		t.Helper()
		httpCase{Method: http.MethodPost, Target: tokenPath, Header: header, Body: body, Status: status}.Check(t, s)
	}
	post(multipart, form(field("api_key", someKey), field("password", password)), 200)
	post(urlencoded, "api_key=a", 400)
	post(urlencoded, "api_key="+strings.Repeat("a", 64<<10), 413)
	post("Content-Type: application/json", "{}", 415)
	httpCase{Method: http.MethodPut, Target: tokenPath, Status: 405}.Check(t, s)
	post(urlencoded, "api_key=a&password=b", 401)
	post(urlencoded, "api_key=a&password=b", 429)
	s = aSite(t)
	s.Store.Fails.Store(true)
	c := login(someKey, password)
	c.Status = 503
	c.Check(t, s)
}

func requestTickets(t *testing.T) {
	t.Helper()
	s := aSite(t)
	post := func(header, body string, status int) {
		t.Helper()
		httpCase{Method: http.MethodPost, Target: ticketPath, Header: header, Body: body, Status: status}.Check(t, s)
	}
	post(urlencoded+bearer, "kind=file", 200)
	post(urlencoded+bearer, "kind=x", 400)
	post(urlencoded, "kind=file", 401)
	post(urlencoded+"Authorization: Bearer $OTHER", "kind=file", 403)
	httpCase{Method: http.MethodPut, Target: ticketPath, Status: 405}.Check(t, s)
	post(urlencoded+bearer, "x="+strings.Repeat("a", 64<<10), 413)
	post("Content-Type: application/json\n"+bearer, "{}", 415)
	token := s.Token(t)
	s.Store.Fails.Store(true)
	post(urlencoded+"Authorization: Bearer "+token, "kind=file", 503)
	s = newSite(t, media.Limits{TicketsPerMinute: 1})
	post(urlencoded+bearer, "kind=file", 200)
	post(urlencoded+bearer, "kind=file", 429)
}

func requestUploads(t *testing.T, target, name string) {
	t.Helper()
	s := aSite(t)
	s.Driver.Fail = failByName
	ext := path.Ext(name)
	good := func(base string) part { return file(base+ext, samples[ext[1:]]) }
	replacing := field("alias", "replacing")
	post := func(header string, status int, parts ...part) {
		t.Helper()
		httpCase{Target: target, Header: multipart + header, Body: form(parts...), Status: status}.Check(t, s)
	}
	post(bearer, 200, good("a"), named("files[0]", good("b")), field("sub_folder", "a/b"), field("more", "ignored"))
	post(bearer, 400, field("sub_folder", ".."), good("a"))
	post("", 401, good("a"))
	post("Authorization: Bearer $OTHER", 403, good("a"))
	httpCase{Target: target, Header: bearer, Status: 405}.Check(t, s)
	post(bearer, 409, replacing, good("a"), good("a"))
	httpCase{Method: http.MethodPut, Target: target + "/content/a" + ext, Header: bearer + "If-Match: *", Status: 412}.Check(t, s)
	post(bearer, 413, append(slices.Repeat([]part{field("x", "")}, 101), good("a"))...)
	post(bearer, 415, file("a.php", "x"))
	post(bearer, 502, good("forbidden"))
	post(bearer, 503, good("down"))
	post(bearer, 507, good("full"))
	s = importing("import")(t)
	post(bearer, 504, field("url", s.Replaced(t, "$REMOTE/slow.txt")))
}

// requestBusyUploads sends uploads while as many are running as the account may have.
func requestBusyUploads(t *testing.T) {
	t.Helper()
	s := newSite(t, media.Limits{MaxUploads: 1})
	addresses := make([]string, 0, len(tusKinds))
	for _, k := range tusKinds {
		addresses = append(addresses, k.create(t, s, "a"+k.ext))
	}
	body := form(file("a.txt", "text"))
	s.Upload(t, s.Token(t), meanwhile(body, func() {
		for _, target := range []string{imagePath, filePath} {
			httpCase{Target: target, Header: multipart + bearer, Body: body, Status: 429}.Check(t, s)
		}
		for _, address := range addresses {
			s.TusPatch(t, address, 0, "x").Want(t, 503, "Retry-After: 1")
		}
	})).Want(t, 200, "")
}

func requestItems(t *testing.T, key string) {
	t.Helper()
	s := aSite(t)
	ext := path.Ext(key)
	s.Vars = []string{"$TAG", s.Put(t, key, "content").ETag}
	s.Put(t, strings.Replace(key, "content", "elsewhere", 1), "content")
	s.Driver.Fail = failByName
	for _, c := range []httpCase{
		{Target: key, Status: 200},
		{Target: strings.Replace(key, "content", "elsewhere", 1), Status: 302},
		{Target: key, Header: "Range: bytes=2-4", Status: 206},
		{Target: key, Header: "If-None-Match: $TAG", Status: 304},
		{Target: key + "x", Status: 404},
		{Target: key, Header: "If-Match: \"x\"", Status: 412},
		{Target: key, Header: "Range: bytes=100-", Status: 416},
		{Target: path.Dir(key) + "/forbidden" + ext, Status: 502},
		{Target: path.Dir(key) + "/down" + ext, Status: 503},
	} {
		c.Target = "/static/" + c.Target
		c.Check(t, s)
		if c.Method = http.MethodHead; c.Status == 302 {
			c.Status = 200
		}
		c.Check(t, s)
	}
}

// requestLists lists and deletes items.
func requestLists(t *testing.T, key string) {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		for _, account := range c.Accounts {
			account.May = []string{"list", "delete", "replace", "move", "copy"}
		}
	})
	s.Put(t, key, "content")
	s.Put(t, path.Dir(key)+"/sub/x"+path.Ext(key), "content")
	alias := itemsPath + map[string]string{"img": "image", "file": "file"}[strings.Split(key, "/")[0]] + "/content"
	one := alias + "/" + path.Base(key)
	send := func(method, target, header, body string, status int) {
		t.Helper()
		httpCase{Method: method, Target: target, Header: header, Body: body, Status: status}.Check(t, s)
	}
	post := func(header, body string, status int) {
		t.Helper()
		send(http.MethodPost, alias, header, body, status)
	}
	const get, remove, other = http.MethodGet, http.MethodDelete, "Authorization: Bearer $OTHER"
	send(get, alias, bearer, "", 200)
	send(get, alias+"?folder=sub&search=x&recursive=1&order=-name&limit=1", bearer, "", 200)
	send(http.MethodHead, alias, bearer, "", 200)
	send(get, one, bearer, "", 200)
	send(get, alias+"?limit=0", bearer, "", 400)
	send(get, one+"%2F", bearer, "", 400)
	send(remove, one, bearer+"If-Match: x", "", 400)
	post(urlencoded+bearer, "action=x", 400)
	for _, target := range []string{alias, one} {
		send(get, target, "", "", 401)
		send(get, target, other, "", 403)
		send(get, strings.Replace(target, "content", "none", 1), bearer, "", 404)
	}
	for header, status := range map[string]int{"": 401, other: 403} {
		send(remove, one, header, "", status)
		post(urlencoded+header, "action=delete", status)
	}
	send(http.MethodPatch, alias, bearer, "", 405)
	send(http.MethodPatch, one, bearer, "", 405)
	send(remove, one, bearer+"If-Match: \"x\"", "", 412)
	post(urlencoded+bearer, "action="+strings.Repeat("a", 4<<20), 413)
	post("Content-Type: text/plain\n"+bearer, "action=delete", 415)
	send(http.MethodPost, strings.Replace(alias, "content", "none", 1), urlencoded+bearer, "action=delete", 404)
	deleted := alias + "/sub/x" + path.Ext(key)
	send(remove, deleted, bearer+retryKey, "", 200)
	leave := holdMemory(t, s)
	send(get, alias, bearer, "", 429)
	post(urlencoded+bearer, "action=delete", 429)
	send(remove, deleted, bearer+retryKey, "", 429) // whose answer is repeated
	leave()
	for name, status := range map[string]int{"forbidden": 502, "down": 503, "full": 507} {
		failing := strings.Replace(one, "/a.", "/"+name+".", 1)
		s.Driver.Fail = func(op, key string) error {
			if op == "list" && strings.HasSuffix(key, "/sub/") {
				key = name
			}
			return failByName(op, key)
		}
		if name != "full" { // reading needs no space
			send(get, failing, bearer, "", status)
			send(get, alias+"?folder=sub", bearer, "", status)
		}
		send(remove, failing, bearer, "", status)
		post(urlencoded+bearer, "action=delete&folder=sub", status)
	}
	s.Driver.Fail = func(op, changed string) error {
		if op == "delete" && changed == key {
			s.Put(t, key, "content") // as another node would
		}
		return nil
	}
	send(remove, one, bearer, "", 409)
	s.Driver.Fail = nil
	send(remove, one, bearer, "", 200)
	send(remove, one, bearer, "", 404)
	post(urlencoded+bearer, "action=delete&filename=x&filename=y", 200)
	post(multipart+bearer, form(field("action", "delete"), field("folder", "sub")), 200)
}

// requestTrash lists, reads, brings back and removes what is in the trash.
func requestTrash(t *testing.T, key string) {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Trash = "1h"
		c.Accounts[someKey].May = []string{"list", "delete", "replace", "restore", "purge"}
	})
	kind, ext := map[string]string{"img": "image", "file": "file"}[strings.Split(key, "/")[0]], path.Ext(key)
	alias, replacing := itemsPath+kind+"/content", itemsPath+kind+"/replacing"
	content := samples[ext[1:]]
	s.Put(t, key, content)
	s.Put(t, strings.Replace(key, "content", "replacing", 1), content)
	send := func(method, target, header, body string, status int, has string) {
		t.Helper()
		httpCase{Method: method, Target: target, Header: header, Body: body, Status: status, Has: has}.Check(t, s)
	}
	send(http.MethodPut, replacing+"/a"+ext, bearer+ifAny, content, 200, `"trash":"`)
	send(http.MethodPut, replacing+"/a"+ext+"?purge=yes", bearer+ifAny, content, 200, "")
	send(http.MethodDelete, replacing+"/a"+ext+"?purge=x", bearer, "", 400, "purge is yes")
	send(http.MethodPost, alias, urlencoded+bearer, "action=delete&filename=a"+ext, 200, `"trash":"`)
	entry := s.Keys(t, path.Dir(key)+"@trash/")[0]
	id := entry[strings.LastIndexByte(entry[:strings.LastIndexByte(entry, '/')], '/')+1:]
	list, one := alias+"?trash=1", alias+"?trash="+id
	send(http.MethodGet, list, bearer, "", 200, id)
	send(http.MethodGet, list+"&limit=1&order=removed", bearer, "", 200, id)
	send(http.MethodGet, list+"&filename=other"+ext, bearer, "", 200, `"result":[]`)
	send(http.MethodGet, one, bearer, "", 200, content[:3])
	s.Vars = []string{"$TAG", s.Do(t, http.MethodGet, one, bearer, "").Header.Get("ETag")}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		send(method, one, bearer+"Range: bytes=1-2", "", 206, "")
		send(method, one, bearer+"If-None-Match: $TAG", "", 304, "")
		send(method, one, bearer+"If-Match: \"x\"", "", 412, "")
		send(method, one, bearer+"Range: bytes=100000000-", "", 416, "")
	}
	send(http.MethodPost, alias, urlencoded+bearer, "action=restore&id="+id, 200, `"restored":true`)
	send(http.MethodPost, alias, urlencoded+bearer, "action=purge&id="+id, 200, `"purged":true`)
	send(http.MethodPost, alias, urlencoded+bearer, "action=purge&id="+id, 200, `"purged":false`)
	send(http.MethodPost, alias, urlencoded+bearer, "action=restore&id="+id, 200, `"restored":false`)
	send(http.MethodDelete, alias+"/a"+ext, bearer, "", 200, `"trash":"`)
	send(http.MethodPost, alias, urlencoded+bearer, "action=purge&everything=yes", 200, `"purged":1`)
	s = newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Accounts[someKey].May = []string{"restore"} })
	send(http.MethodGet, list, bearer, "", 409, "no trash")
	send(http.MethodPost, alias, urlencoded+bearer, "action=restore&id="+id, 409, "no trash")
}

// requestReplacements replaces items.
func requestReplacements(t *testing.T, key string) {
	t.Helper()
	change := func(c *media.Config) {
		for _, account := range c.Accounts {
			account.May = []string{"upload", "replace", "move", "copy"}
		}
	}
	s := newSiteWith(t, media.Limits{}, change)
	kind, ext := map[string]string{"img": "image", "file": "file"}[strings.Split(key, "/")[0]], path.Ext(key)
	alias := itemsPath + kind + "/replacing/"
	good := samples[ext[1:]]
	for _, name := range []string{"a", "forbidden", "down", "full"} {
		s.Put(t, strings.Replace(path.Dir(key), "content", "replacing", 1)+"/"+name+ext, "old")
	}
	s.Put(t, key, "old")
	put := func(target, header, body string, status int) {
		t.Helper()
		httpCase{Method: http.MethodPut, Target: target, Header: header, Body: body, Status: status}.Check(t, s)
	}
	put(alias+"a"+ext, bearer+ifAny, good, 200)
	put(alias+"a"+ext, bearer+"If-Match: x", good, 400)
	put(alias+"a"+ext, ifAny, good, 401)
	put(alias+"a"+ext, "Authorization: Bearer $OTHER\n"+ifAny, good, 403)
	put(alias+"none"+ext, bearer+ifAny, good, 404)
	put(itemsPath+kind+"/content/a"+ext, bearer+ifAny, good, 409)
	put(alias+"a"+ext, bearer+`If-Match: "x"`, good, 412)
	put(alias+"a"+ext, bearer, good, 428)
	s.Driver.Fail = func(op, key string) error {
		if op == "stat" {
			return nil
		}
		return failByName(op, key)
	}
	for name, status := range map[string]int{"forbidden": 502, "down": 503, "full": 507} {
		put(alias+name+ext, bearer+ifAny, good, status)
	}
	s.Driver.Fail = nil
	put(alias+"a.exe", bearer+ifAny, good, 415)
	s = newSiteWith(t, media.Limits{MaxBody: 10, MaxUploads: 1}, change)
	put(alias+"a"+ext, bearer+ifAny, strings.Repeat("x", 11), 413)
	s.Put(t, strings.Replace(key, "content", "replacing", 1), "old")
	ended, ok := service.Of(s.First).BeginUpload(item.Actor{Origin: "http", Account: someKey}, nil, 0)
	if !ok {
		t.Fatal("no upload can begin")
	}
	put(alias+"a"+ext, bearer+ifAny, "x", 429)
	ended()
}

// requestTransfers moves and copies items.
func requestTransfers(t *testing.T, key string) {
	t.Helper()
	change := func(c *media.Config) {
		for _, account := range c.Accounts {
			account.May = []string{"move", "copy"}
		}
	}
	s := newSiteWith(t, media.Limits{MaxUploads: 1}, change)
	kind, ext := map[string]string{"img": "image", "file": "file"}[strings.Split(key, "/")[0]], path.Ext(key)
	one := itemsPath + kind + "/content/" + path.Base(key)
	s.Put(t, key, samples[ext[1:]])
	post := func(header, body string, status int) {
		t.Helper()
		httpCase{Target: one, Header: header, Body: body, Status: status}.Check(t, s)
	}
	post(urlencoded+bearer, "copy_to=b"+ext, 200)
	post(multipart+bearer, form(field("copy_to", "c"+ext), field("to_alias", "replacing")), 200)
	post(urlencoded+bearer, "to=../b"+ext, 400)
	post(urlencoded, "to=b"+ext, 401)
	post(urlencoded+"Authorization: Bearer $OTHER", "to=b"+ext, 403)
	post(urlencoded+bearer, "to=b"+ext+"&to_alias=none", 404)
	httpCase{Method: http.MethodPatch, Target: one, Header: bearer, Status: 405}.Check(t, s)
	post(urlencoded+bearer+`If-Match: "x"`+"\n", "to=b"+ext, 412)
	post(urlencoded+bearer, "to="+strings.Repeat("a", 64<<10), 413)
	post(urlencoded+bearer, "to=b.exe", 415)
	ended, ok := service.Of(s.First).BeginUpload(item.Actor{Origin: "http", Account: someKey}, nil, 0)
	if !ok {
		t.Fatal("no upload can begin")
	}
	post(urlencoded+bearer, "to=b"+ext, 429)
	ended()
	s.Driver.Fail = failByName
	for name, status := range map[string]int{"forbidden": 502, "down": 503, "full": 507} {
		post(urlencoded+bearer, "to="+name+ext, status)
	}
	s.Driver.Fail = func(op, _ string) error {
		if op == "open" {
			return storagedrivers.ErrChanged
		}
		return nil
	}
	s.Exchange(t, s.Request(t, http.MethodPost, one, urlencoded+bearer, "to=x"+ext)).Want(t, 409, "")
	s.Driver.Fail = nil
	post(urlencoded+bearer, "to=new"+ext, 200)
}

// requestBusyItems sends three more requests for an item while as many are being sent as the client
// may have open. Two of them wait.
func requestBusyItems(t *testing.T, key string) {
	t.Helper()
	s := newSite(t, media.Limits{MaxOpenItems: 1})
	s.Put(t, key, strings.Repeat("x", 1<<20))
	get := func() *http.Request {
		r := s.Request(t, http.MethodGet, "/static/"+key, "", "")
		r.RemoteAddr = "[2001:db8::1]:1" // of no other test
		return r
	}
	var all sync.WaitGroup
	refused := make(chan struct{}, 3)
	s.Handler.ServeHTTP(&busyClient{httptest.NewRecorder(), sync.OnceFunc(func() {
		for range cap(refused) {
			all.Go(func() {
				if s.Send(t, get()).Status == http.StatusTooManyRequests {
					refused <- struct{}{}
				}
			})
		}
		<-refused
	})}, get())
	all.Wait()
}

// busyClient receives a response slowly: meanwhile is called before the first byte.
type busyClient struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (c *busyClient) Write(p []byte) (int, error) {
	c.meanwhile()
	return c.ResponseRecorder.Write(p)
}

// requestSigned requests signed addresses, and private items with and without one.
func requestSigned(t *testing.T) {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		private := media.AliasOptions{Storage: "main", Private: new(media.Private)}
		c.Accounts[someKey].May = []string{"sign"}
		c.ImageAliases["private"], c.FileAliases["private"] = &media.ImageAlias{AliasOptions: private}, &media.FileAlias{AliasOptions: private}
	})
	post := func(header, body string, status int) {
		t.Helper()
		httpCase{Method: http.MethodPost, Target: signPath, Header: header, Body: body, Status: status}.Check(t, s)
	}
	const good = "kind=file&alias=private&filename=a.txt"
	post(urlencoded+bearer, good, 200)
	post(urlencoded+bearer, "kind=file&alias=private&folder=/", 200)
	post(multipart+bearer, form(field("kind", "image"), field("alias", "private"), field("filename", "a.png"), field("filename", "b.png")), 200)
	post(urlencoded+bearer, "kind=x", 400)
	post(urlencoded, good, 401)
	post(urlencoded+"Authorization: Bearer $OTHER", good, 403)
	httpCase{Method: http.MethodPut, Target: signPath, Status: 405}.Check(t, s)
	post(urlencoded+bearer, "x="+strings.Repeat("a", 4<<20), 413)
	post("Content-Type: application/json\n"+bearer, "{}", 415)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		httpCase{Method: method, Target: "/static/file/private/a.txt", Status: 403}.Check(t, s)
		httpCase{Method: method, Target: "/static/img/private/b.png", Status: 403}.Check(t, s)
	}
	leave := holdMemory(t, s)
	post(urlencoded+bearer, good, 429)
	leave()
	token := s.Token(t)
	s.Store.Fails.Store(true)
	post(urlencoded+"Authorization: Bearer "+token, good, 503)
}

// holdMemory holds all the memory that an account may have for forms and answers.
func holdMemory(t *testing.T, s *site) (leave func()) {
	t.Helper()
	leave, ok := service.Of(s.First).Enter(t.Context(), item.Actor{Origin: "http", Account: someKey}, service.OtherCall, 32<<20)
	if !ok {
		t.Fatal("the memory is in use")
	}
	return leave
}

// hold holds the lease of a request until the end of the test.
func hold(t *testing.T, s *site, method, target string) {
	t.Helper()
	address, query, _ := strings.Cut(target, "?")
	attempt, err := service.Of(s.First).Issuer().Attempt(t.Context(), access.Request{
		ID: access.RequestID("http", someKey, "", "k1", method, address, query), Account: someKey, Fingerprint: "4 ",
	}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = attempt.End(context.Background(), nil) })
}

// requestKeys requests the answers of the document that keys and uploads of one file have.
func requestKeys(t *testing.T, key string) {
	t.Helper()
	kind, ext := map[string]string{"img": "image", "file": "file"}[strings.Split(key, "/")[0]], path.Ext(key)
	s := newSiteWith(t, media.Limits{MaxUploads: 1}, func(c *media.Config) {
		for _, account := range c.Accounts {
			account.May = []string{"upload", "delete", "replace", "move"}
		}
	})
	put := "/api/upload/" + kind + "/content/"
	one := itemsPath + kind + "/content/a" + ext
	for _, c := range []httpCase{
		{Method: "POST", Target: "/api/upload/" + kind, Header: multipart},
		{Method: "PUT", Target: put + "a" + ext},
		{Method: "PUT", Target: one, Header: ifAny},
		{Method: "POST", Target: one, Header: urlencoded},
		{Method: "DELETE", Target: one},
		{Method: "POST", Target: itemsPath + kind + "/content", Header: urlencoded},
	} {
		hold(t, s, c.Method, c.Target)
		c.Header, c.Body, c.Status, c.Has = c.Header+bearer+retryKey, "12345", 422, "another length"
		c.Check(t, s)
	}
	for _, target := range []string{one, put + "a" + ext} {
		method := map[bool]string{true: "DELETE", false: "PUT"}[target == one]
		httpCase{Method: method, Target: target, Header: bearer + retryKey, Body: "1234", Status: 409, Want: "Retry-After: 1", Has: "under way"}.Check(t, s)
	}
	hold(t, s, "POST", itemsPath+kind+"/content?x")
	httpCase{Method: "POST", Target: itemsPath + kind + "/content?x", Header: bearer + retryKey, Body: "1234", Status: 409, Want: "Retry-After: 1"}.Check(t, s)

	s.Driver.Fail = failByName
	good := samples[ext[1:]]
	for _, c := range []httpCase{
		{Target: put + "x/a" + ext, Header: bearer, Status: 201},
		{Target: put + "a%2F", Header: bearer, Status: 400},
		{Target: put + "a" + ext, Status: 401},
		{Target: put + "a" + ext, Header: "Authorization: Bearer $OTHER", Status: 403},
		{Target: put + "a" + ext, Header: bearer, Method: "POST", Status: 405},
		{Target: put + "a.php", Header: bearer, Status: 415},
		{Target: put + "forbidden" + ext, Header: bearer, Status: 502},
		{Target: put + "down" + ext, Header: bearer, Status: 503},
		{Target: put + "full" + ext, Header: bearer, Status: 507},
	} {
		if c.Body = good; c.Method == "" {
			c.Method = "PUT"
		}
		c.Check(t, s)
	}
	ended, ok := service.Of(s.First).BeginUpload(item.Actor{Origin: "http", Account: someKey}, nil, 0)
	if !ok {
		t.Fatal("no upload can begin")
	}
	httpCase{Method: "PUT", Target: put + "b" + ext, Header: bearer, Body: good, Status: 429}.Check(t, s)
	ended()
	s = newSite(t, media.Limits{MaxBody: 10})
	httpCase{Method: "PUT", Target: put + "a" + ext, Header: bearer, Body: strings.Repeat("x", 11), Status: 413}.Check(t, s)
}

// requestOfUsers requests the responses of the OpenAPI document that only users get.
func requestOfUsers(t *testing.T) {
	t.Helper()
	s := withUsers(t)
	for _, target := range []string{imagePath, filePath} {
		httpCase{Target: target + "?alias=exact&sub_folder=a", Header: asAlice + multipart, Body: form(file("a.txt", "x")), Status: 404}.Check(t, s)
		httpCase{Method: http.MethodPut, Target: target + "/exact/a/a.txt", Header: asAlice, Body: "x", Status: 404}.Check(t, s)
	}
	httpCase{Target: signPath, Header: asAlice + urlencoded, Body: "kind=file&alias=private&folder=a", Status: 404}.Check(t, s)
}

const retryKey = "Idempotency-Key: k1\n"
