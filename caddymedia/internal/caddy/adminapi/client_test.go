package adminapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
)

// TestClientAddresses: the client and its command for a shell reach the same endpoint.
func TestClientAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct{ origin, command string }{
		"":                         {"http://localhost:2019", "localhost:2019/config/apps/media"},
		"localhost:2019":           {"http://localhost:2019", "localhost:2019/config/apps/media"},
		"127.0.0.1:2119":           {"http://127.0.0.1:2119", "127.0.0.1:2119/config/apps/media"},
		"127.9.9.9:1":              {"http://127.9.9.9:1", "127.9.9.9:1/config/apps/media"},
		"[::1]:1":                  {"http://[::1]:1", "'[::1]:1/config/apps/media'"},
		"tcp/localhost:1":          {"http://localhost:1", "localhost:1/config/apps/media"},
		":1":                       {"http://:1", "localhost:1/config/apps/media"},
		"0.0.0.0:1":                {"http://0.0.0.0:1", "127.0.0.1:1/config/apps/media"},
		"unix//run/x.sock|0220":    {"http://127.0.0.1", "--unix-socket /run/x.sock http://127.0.0.1/config/apps/media"},
		"unix//run/it's mine.sock": {"http://127.0.0.1", `--unix-socket '/run/it'\''s mine.sock' http://127.0.0.1/config/apps/media`},
		"example.com:2019":         {},
		"192.0.2.1:2019":           {},
		"10.0.0.1:2019":            {},
		"localhost.example:1":      {},
		"localhost:1-3":            {},
		"udp/localhost:1":          {},
		"://":                      {},
	} {
		client, err := newClient(address)
		if (err == nil) != (want.origin != "") || err == nil && (client.origin != want.origin || client.curl != "curl -sS "+want.command) {
			t.Errorf("%q: %+v, %v, want %q", address, client, err, want)
		}
	}
}

// admin imitates Caddy's admin endpoint; before makes it fail.
type admin struct {
	mu      sync.Mutex
	body    string
	version int
	changes int
	before  func(a *admin, w http.ResponseWriter, r *http.Request) (answered bool)
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.URL.Path != appPath {
		http.Error(w, `{"error":"another path"}`, http.StatusForbidden)
		return
	}
	if a.before != nil && a.before(a, w, r) {
		return
	}
	tag := fmt.Sprintf(`"%s %d"`, appPath, a.version)
	if r.Method == http.MethodGet {
		w.Header().Set("Etag", tag)
		io.WriteString(w, a.body)
		return
	}
	if r.Header.Get("If-Match") != tag {
		http.Error(w, `{"error":"stale"}`, http.StatusPreconditionFailed)
		return
	}
	a.take(r)
}

func (a *admin) take(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.body = string(body)
	a.version++
	a.changes++
}

func editorOf(t *testing.T, a *admin) *editor {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	client, err := newClient(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return &editor{client, zap.NewNop(), syncFile}
}

// once fails the first request of a method.
func once(method string, fail func(a *admin, w http.ResponseWriter, r *http.Request)) func(*admin, http.ResponseWriter, *http.Request) bool {
	done := false
	return func(a *admin, w http.ResponseWriter, r *http.Request) bool {
		if done || r.Method != method {
			return false
		}
		done = true
		fail(a, w, r)
		return true
	}
}

func hangUp(*admin, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// TestChangesArriveOnce: a change is made once and reported as made, even if a connection breaks.
func TestChangesArriveOnce(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*admin, http.ResponseWriter, *http.Request) bool{
		"all goes well":      nil,
		"a read is cut":      once(http.MethodGet, hangUp),
		"a change is cut":    once(http.MethodPost, hangUp),
		"its answer is lost": once(http.MethodPost, func(a *admin, _ http.ResponseWriter, r *http.Request) { a.take(r); panic(http.ErrAbortHandler) }),
		"its answer is lost and somebody else changes something": once(http.MethodPost, func(a *admin, _ http.ResponseWriter, r *http.Request) {
			a.take(r)
			a.body, a.version = `{"cdn_base":"https://other",`+a.body[1:], a.version+1
			panic(http.ErrAbortHandler)
		}),
		"somebody else changes something": once(http.MethodPost, func(a *admin, w http.ResponseWriter, _ *http.Request) {
			a.body, a.version = `{"cdn_base":"https://other","image_aliases":{"b":{}},"storages":{`+archive+`}}`, a.version+1
			w.WriteHeader(http.StatusPreconditionFailed)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &admin{body: `{"image_aliases":{"b":{}},"storages":{` + archive + `}}`, before: before}
			saved, err := editorOf(t, a).put(t.Context(), change{
				section: fileAliases, name: "a", condition: condition{isNew: true}, Value: object{"prefix": "p"},
			})
			if err != nil {
				t.Fatal(err)
			}
			want := `{"file_aliases":{"a":{"prefix":"p"}},"image_aliases":{"b":{}},"storages":{` + archive + `}}`
			if strings.HasSuffix(name, "somebody else changes something") {
				want = `{"cdn_base":"https://other",` + want[1:]
			}
			if a.body != want || a.changes != 1 || !saved.created {
				t.Errorf("%s after %d changes, created %t, want %s", a.body, a.changes, saved.created, want)
			}
		})
	}
}

// TestManyAtOnce: simultaneous additions of several administrators are all kept.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	a := &admin{body: `{"image_aliases":{"b":{}},"storages":{` + archive + `}}`}
	editor := editorOf(t, a)
	var all sync.WaitGroup
	want := object{}
	for i := range 40 {
		name := fmt.Sprint("alias-", i)
		want[name] = object{}
		all.Go(func() {
			_, err := editor.put(t.Context(), change{section: fileAliases, name: name, condition: condition{isNew: true}})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	mustEqual(t, group(parsed(t, a.body), string(fileAliases)), string(canonical(want)))
}

func TestUnusableEndpoint(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*admin, http.ResponseWriter, *http.Request) bool{
		"it hangs up": func(a *admin, w http.ResponseWriter, r *http.Request) bool { hangUp(a, w, r); return true },
		"it refuses": func(_ *admin, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, `{"error":"host not allowed"}`, http.StatusForbidden)
			return true
		},
		"it sends elsewhere": func(_ *admin, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := editorOf(t, &admin{body: "{}", before: before}).read(t.Context(), true)
			if status, _ := statusOf(err); status != http.StatusBadGateway {
				t.Errorf("status %d: %v", status, err)
			}
		})
	}
}

func TestRefusedByCaddy(t *testing.T) {
	t.Parallel()
	a := &admin{body: "null", before: once(http.MethodPost, func(_ *admin, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":"loading new config: loading media app module: provision media: storage \"a\": local storage: root p4ssword is missing"}`, http.StatusInternalServerError)
	})}
	handler := New()
	handler.editor = editorOf(t, a)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/config/storages/a",
		strings.NewReader(`{"value": {"driver": {"name": "sftp"}}, "secrets": {"driver.password": "p4ssword"}}`))
	r.Header.Set("If-None-Match", "*")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	got := decoded[failure](t, w, http.StatusBadRequest)
	if want := `storage "a": local storage: root *** is missing`; got.Message != want {
		t.Errorf("got %s, want %s", got.Message, want)
	}
}
