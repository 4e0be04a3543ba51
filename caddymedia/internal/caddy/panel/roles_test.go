package panel

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
)

func TestUploadersChecks(t *testing.T) {
	t.Parallel()
	users := map[string]string{"alice": "$a", "carla": "$a"}
	for want, p := range map[string]Panel{
		"":                                      {Uploaders: []Uploaders{{Users: []string{"carla"}, Aliases: []string{"one"}, May: []string{"upload", "sign"}}}},
		"a name is empty or missing":            {Uploaders: []Uploaders{{}}},
		"a name is empty":                       {Uploaders: []Uploaders{{Users: []string{""}}}},
		`the user "carla" is given twice`:       {Uploaders: []Uploaders{{Users: []string{"carla"}}, {Users: []string{"carla"}}}},
		`the user "carla" is an editor too`:     {Editors: []string{"carla"}, Uploaders: []Uploaders{{Users: []string{"carla"}}}},
		`may: "list" is none of upload`:         {Uploaders: []Uploaders{{Users: []string{"carla"}, May: []string{"list"}}}},
		`there is no user "dan" in login`:       {Login: users, login: new(login), Uploaders: []Uploaders{{Users: []string{"carla", "dan"}}}},
		`editors: there is no user "dan" in lo`: {Login: users, login: new(login), Editors: []string{"dan"}},
	} {
		p.Path, p.User = defaultPath, map[bool]string{true: defaultUser}[p.login == nil]
		if err := p.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	s := testservice.Default(t)
	for alias, ok := range map[string]bool{"one": true, "few": true, "none": false} { // files, images, neither
		p := Panel{Uploaders: []Uploaders{{Users: []string{"carla"}, Aliases: []string{alias}}}}
		if err := p.checkAliases(service.Of(s.First)); (err == nil) != ok {
			t.Errorf("alias %s: %v", alias, err)
		}
	}
}

// TestRoles: the role of each user, and which changes outlast a change of the role.
func TestRoles(t *testing.T) {
	t.Parallel()
	p := &Panel{Editors: []string{"alice"}, Uploaders: []Uploaders{
		{Users: []string{"carla"}}, {Users: []string{"dan", "eva"}, Aliases: []string{"one"}, May: []string{"upload"}},
	}}
	for user, want := range map[string]string{
		"alice": "editor", "bob": "reader [list sign] []", "carla": "uploader [delete list move replace restore sign upload] []",
		"dan": "uploader [list upload] [one]", "eva": "uploader [list upload] [one]",
	} {
		v := p.visitorOf(user)
		got := "editor"
		if !v.editor {
			got = fmt.Sprint(map[bool]string{true: "uploader ", false: "reader "}[v.itemsOnly], v.account.AllRights(), " ", v.account.Aliases)
		}
		if got != want || v.name != user || v.account.APIKey != user {
			t.Errorf("%s is %s, want %s", user, got, want)
		}
	}
	if !new(Panel).visitorOf("anybody").editor || (&Panel{Uploaders: p.Uploaders}).visitorOf("dan").editor {
		t.Error("without editors all but the uploaders are editors")
	}
	dan, alice := p.visitorOf("dan"), p.visitorOf("alice")
	for name, c := range map[string]struct {
		next Panel
		v    visitor
		want bool
	}{
		"nothing":          {*p, dan, true},
		"an editor now":    {Panel{Editors: []string{"dan"}}, dan, true},
		"a reader now":     {Panel{Editors: []string{"alice"}}, dan, false},
		"another alias":    {Panel{Uploaders: []Uploaders{{Users: []string{"dan"}, Aliases: []string{"two"}, May: []string{"upload"}}}}, dan, false},
		"another right":    {Panel{Uploaders: []Uploaders{{Users: []string{"dan"}, Aliases: []string{"one"}, May: []string{"move"}}}}, dan, false},
		"an uploader only": {Panel{Uploaders: []Uploaders{{Users: []string{"alice"}}}}, alice, false},
	} {
		if got := c.next.mayStill(c.v); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestUploaderItems: an uploader changes the items of the aliases of the line, by its rights, and
// learns nothing of others.
func TestUploaderItems(t *testing.T) {
	t.Parallel()
	file := func(name string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"" + name + "\"\r\n\r\nx\r\n--x--\r\n"
	}
	form := []string{"Content-Type", "multipart/form-data; boundary=x"}
	list, all := []string{"upload", "move"}, []string(nil)
	for _, c := range []struct {
		method, path, body string
		header             []string
		may                []string
		status             int
	}{
		{"GET", "items/file/one", "", nil, list, 200},
		{"HEAD", "items/file/one/a.txt", "", nil, list, 200},
		{"GET", "items/file/two", "", nil, list, 403},
		{"GET", "items/file/two/a.txt", "", nil, all, 403},
		{"POST", "upload/file?alias=one", file("n.txt"), form, list, 200},
		{"POST", "upload/file?alias=two", file("n.txt"), form, all, 403},
		{"POST", "upload/file?alias=one", file("n.txt"), form, []string{"move"}, 403},
		{"POST", "upload/file", file("n.txt"), form, all, 403}, // to content
		{"POST", "upload/file/resumable", "", []string{"Tus-Resumable", "1.0.0", "Upload-Length", "1"}, []string{"move"}, 403},
		{"GET", "upload/file/resumable/x", "", []string{"Tus-Resumable", "1.0.0"}, []string{"move"}, 403},
		{"DELETE", "items/file/one/a.txt", "", nil, all, 200},
		{"DELETE", "items/file/one/a.txt", "", nil, list, 403},
		{"DELETE", "items/file/two/a.txt", "", nil, all, 403},
		{"POST", "items/file/one", "action=delete&filename=a.txt", nil, list, 403},
		{"POST", "items/file/one", "action=delete&filename=a.txt", nil, all, 200},
		{"POST", "items/file/two", "action=delete&folder=sub", nil, all, 403},
		{"POST", "items/file/one/a.txt", "to=b.txt", nil, list, 200},
		{"POST", "items/file/one/a.txt", "to=b.txt", nil, []string{"upload"}, 403},
		{"POST", "items/file/one/a.txt", "to=b.txt&to_alias=two", nil, all, 403},
		{"POST", "items/file/one/a.txt", "copy_to=b.txt", nil, all, 403},
		{"PUT", "items/file/replacing/a.txt", "new", []string{"If-Match", "*"}, all, 200},
		{"PUT", "items/file/replacing/a.txt", "new", []string{"If-Match", "*"}, list, 403},
		{"PUT", "items/file/two/a.txt", "new", []string{"If-Match", "*"}, all, 403},
		{"GET", "session", "", nil, list, 200},
		{"PUT", "session", "", nil, list, 405},
		{"GET", "openapi.json", "", nil, all, 418}, // of the other routes, which refuse by themselves
		{"PUT", "config/accounts/x", "{}", nil, all, 418},
	} {
		t.Run(fmt.Sprint(c.method, " ", c.path, " ", c.body, c.may), func(t *testing.T) {
			t.Parallel()
			s := newItemsSite(t, changed...)
			s.panel.Uploaders = []Uploaders{{Users: []string{"bob"}, Aliases: []string{"one", "replacing"}, May: c.may}}
			s.panel.routes = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
			b, before := s.browser(t, "bob"), s.site.Objects(t)
			answer := s.do(t, b, c.method, "/api/"+c.path, c.body, c.header...)
			if answer.StatusCode != c.status {
				t.Errorf("%d %s, want %d", answer.StatusCode, answer.text, c.status)
			}
			isChange := c.status == http.StatusOK && !slices.Contains([]string{"GET", "HEAD"}, c.method)
			if maps.Equal(s.site.Objects(t), before) == isChange {
				t.Errorf("changed: %t", !isChange)
			}
		})
	}
}

// TestUploaderSession: the pages of an uploader get the rights, and nothing of the configuration.
func TestUploaderSession(t *testing.T) {
	t.Parallel()
	s := newItemsSite(t)
	s.panel.args = []string{"caddy", "run", "--config", "/etc/caddy/Caddyfile"}
	s.panel.Uploaders = []Uploaders{{Users: []string{"bob"}, May: []string{"upload"}}}
	answer := s.do(t, s.browser(t, "bob"), http.MethodGet, "/api/session", "")
	var got session
	if err := json.Unmarshal([]byte(answer.text), &got); err != nil {
		t.Fatal(err)
	}
	want := session{User: "bob", ItemsOnly: true, May: []access.Right{access.List, access.Upload}, LogOut: true, Lasting: true}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
