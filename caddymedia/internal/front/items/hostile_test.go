package items_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// requestsByRight returns requests for the item a.txt of the aliases one and replacing, by their
// right.
func requestsByRight() map[string][]httpCase {
	const one, replacing = itemsPath + "file/one", itemsPath + "file/replacing/a.txt"
	return map[string][]httpCase{
		"upload": {{Method: http.MethodPost, Target: filePath, Header: multipart, Body: form(file("new.txt", "text"))}},
		"import": {{Method: http.MethodPost, Target: filePath, Header: multipart, Body: form(field("url", "http://10.1.2.3/a.txt"))}},
		"list": {
			{Method: http.MethodGet, Target: one},
			{Method: http.MethodHead, Target: one},
			{Method: http.MethodGet, Target: one + "/a.txt"},
			{Method: http.MethodHead, Target: one + "/a.txt"},
		},
		"delete": {
			{Method: http.MethodDelete, Target: one + "/a.txt"},
			{Method: http.MethodPost, Target: one, Header: urlencoded, Body: "action=delete&filename=a.txt"},
			{Method: http.MethodPost, Target: one, Header: urlencoded, Body: "action=delete&folder=&everything=yes"},
		},
		"move": {
			{Method: http.MethodPost, Target: one + "/a.txt", Header: urlencoded, Body: "to=new.txt"},
			{Method: http.MethodPost, Target: one + "/a.txt", Header: urlencoded, Body: "to=a.txt"},
		},
		"copy":    {{Method: http.MethodPost, Target: one + "/a.txt", Header: urlencoded, Body: "copy_to=new.txt"}},
		"replace": {{Method: http.MethodPut, Target: replacing, Header: ifAny, Body: "new"}},
	}
}

// TestEachRight: a request needs its own right and no other one. Without it nothing is changed.
func TestEachRight(t *testing.T) {
	t.Parallel()
	requests := requestsByRight()
	all := slices.Sorted(maps.Keys(requests))
	allowed := map[string]int{"import": 400} // the address may not be fetched
	check := func(name string, rights []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for right, cases := range requests {
				for i, c := range cases {
					t.Run(fmt.Sprint(right, i), func(t *testing.T) {
						t.Parallel()
						s := may(rights...)(t)
						for _, key := range []string{"file/one/a.txt", "file/replacing/a.txt"} {
							s.Put(t, key, "old")
						}
						before := s.Objects(t)
						if c.Header += bearer; !slices.Contains(rights, right) {
							if c.Status = 403; c.Method != http.MethodHead {
								c.Has = "the account may not"
							}
						} else if c.Status = allowed[right]; c.Status == 0 {
							c.Status = 200
						}
						c.Check(t, s)
						if after := s.Objects(t); c.Status == 403 && !maps.Equal(after, before) {
							t.Errorf("stored are %q", after)
						}
					})
				}
			}
		})
	}
	for i, right := range all {
		check("only "+right, []string{right})
		check("not "+right, slices.Concat(all[:i], all[i+1:]))
	}
}

// TestCredentials: a request for items needs a token of an account that may use the alias.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	s.Ticket(t, "kind=file&alias=one")
	before := s.Objects(t)
	for header, want := range map[string]struct {
		status int
		has    string
	}{
		"": {401, "no token"}, "Authorization: Bearer x\n": {401, "token"}, "Authorization: Bearer $OTHER\n": {403, "may not use the alias"}, ticketBearer: {403, "send a token"},
	} {
		for right, cases := range requestsByRight() {
			if right == "upload" || right == "import" {
				continue
			}
			for _, c := range cases {
				c.Header, c.Status = c.Header+header, want.status
				if c.Method != http.MethodHead {
					c.Has = want.has
				}
				c.Check(t, s)
			}
		}
	}
	if !maps.Equal(s.Objects(t), before) {
		t.Error("items are changed")
	}
}

// TestHostileNames: whatever a filename is, a request changes items of its own alias only, under
// names that a list shows, and an item of another name is never replaced or deleted.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	s.Put(t, "file/exact/a.txt", "exact")
	token := s.Token(t)
	before := s.Objects(t)
	send := func(method, target, header, body string) *reply {
		t.Helper()
		return s.Do(t, method, target, header+"Authorization: Bearer "+token+"\n", body)
	}
	check := func(t *testing.T, name, alias string, r *reply) {
		t.Helper()
		if r.Status >= 500 || r.Status < 200 {
			t.Errorf("%q: %d %s", name, r.Status, r.Body)
		}
		for key, content := range s.Objects(t) {
			if old, known := before[key]; known && old != content {
				t.Errorf("%q has replaced %s", name, key)
			} else if known {
				continue
			}
			filename, ok := strings.CutPrefix(key, "file/"+alias+"/")
			if !ok || r.Status != http.StatusOK {
				t.Errorf("%q is answered with %d and stored under %q", name, r.Status, key)
			}
			segments := strings.Split(filename, "/")
			for i, segment := range segments {
				segments[i] = url.PathEscape(segment)
			}
			if r := send(http.MethodDelete, itemsPath+"file/"+alias+"/"+strings.Join(segments, "/"), "", ""); r.Status != http.StatusOK {
				t.Errorf("%q is stored as %q, and its deletion is answered with %d %s", name, key, r.Status, r.Body)
			}
		}
		if now := s.Objects(t); !maps.Equal(now, before) {
			t.Fatalf("%q: left are %q", name, slices.Sorted(maps.Keys(now)))
		}
	}
	for _, name := range hostileNames {
		escaped := url.QueryEscape(name)
		for _, alias := range []string{"one", "exact"} {
			check(t, "to "+name, alias, send(http.MethodPost, itemsPath+"file/one/b.txt", urlencoded, "to_alias="+alias+"&copy_to="+escaped))
		}
		check(t, "to alias "+name, "one", send(http.MethodPost, itemsPath+"file/one/b.txt", urlencoded, "copy_to=new.txt&to_alias="+escaped))
		if name == "@uploads/x.txt" || !strings.EqualFold(name, "a.txt") { // no item
			check(t, "set "+name, "", send(http.MethodPost, itemsPath+"file/one", urlencoded, "action=delete&filename="+escaped))
			check(t, "set of images "+name, "", send(http.MethodPost, itemsPath+"image/sized", urlencoded, "action=delete&filename="+escaped))
		}
		check(t, "folder "+name, "", send(http.MethodPost, itemsPath+"file/one", urlencoded, "action=delete&folder="+escaped))
		for _, path := range []string{url.PathEscape(name), strings.ReplaceAll(url.PathEscape(name), "%2F", "/")} {
			for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
				for _, alias := range []string{"file/one", "file/exact", "file/replacing", "image/sized"} {
					header := ""
					if method == http.MethodPut {
						header = ifAny
					}
					check(t, method+" "+alias+"/"+path, "", send(method, itemsPath+alias+"/"+path, header, "new"))
				}
			}
		}
	}
}
