package media_test

import (
	"bytes"
	"context"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// recorder is an observer as a program of another module has one.
type recorder struct {
	mu     sync.Mutex
	events []media.Event
}

// Observe implements [media.Observer].
func (r *recorder) Observe(_ context.Context, e media.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// take returns the events since the last call.
func (r *recorder) take() []media.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

// recorded returns a service whose storage replaces items, and what records its events.
func recorded(t *testing.T, driver *memory.Driver) (*media.Service, *recorder) {
	t.Helper()
	r := new(recorder)
	s, err := media.New(media.Config{
		Storages:    []media.Storage{{Name: "default", Driver: driver, SubFolderFormat: "/", OverwriteStrategy: "overwrite"}},
		FileAliases: map[string]*media.FileAlias{"content": {}},
		Accounts:    map[string]*media.Account{"site": {PasswordHash: "password"}, "members": {TrustHeader: "Remote-User"}},
		Comparer:    tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return bytes.Equal(hash, plain), nil }),
		FakeHash:    []byte("none"),
		Tokens:      tokenmemory.New(nil),
		Client:      func(context.Context) string { return "192.0.2.9" },
		Observer:    r,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, r
}

// uploadOf returns an upload of a file in the input "files[]".
func uploadOf(t *testing.T, name, content string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("files[]", name)
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err := errors.Join(err, form.Close()); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/upload/file", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// loginWith returns a request for a token.
func loginWith(t *testing.T, password string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/auth/generateToken", strings.NewReader("api_key=site&password="+password))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// TestObserver: an observer with nothing but public names has an event for each change of an item, for
// each refused file and each login. Events have who did it, if that is known.
func TestObserver(t *testing.T) {
	t.Parallel()
	driver := memory.New()
	s, recorder := recorded(t, driver)
	site := mediahttp.New(s, mediahttp.Options{})
	serve := func(r *http.Request) { site.ServeHTTP(httptest.NewRecorder(), r) }
	byUser := uploadOf(t, "a.txt", "text")
	byUser.Header.Set("Remote-User", "alice")
	broken := errors.New("broken")
	for _, step := range []struct {
		name string
		do   func()
		want media.Event // with broken for any error
	}{
		{
			"refused login", func() { serve(loginWith(t, "wrong")) },
			media.Event{Name: media.LoggedIn, Result: "refused"},
		},
		{
			"login", func() { serve(loginWith(t, "password")) },
			media.Event{Name: media.LoggedIn, Account: "site", Result: "ok"},
		},
		{
			"upload of a user", func() { serve(byUser) },
			media.Event{
				Name: media.Stored, Kind: "file", Alias: "content", Filename: "a.txt", Size: 4,
				Account: "members", User: "alice", Client: "192.0.2.1", Origin: "http",
			},
		},
		{
			"replacement", func() { s.FormFile(uploadOf(t, "a.txt", "other"), "files[]", "", "") },
			media.Event{Name: media.Replaced, Kind: "file", Alias: "content", Filename: "a.txt", Size: 5, Client: "192.0.2.9", Origin: "go"},
		},
		{
			"refused file", func() { s.FormFile(uploadOf(t, "a.php", "text"), "files[]", "", "") },
			media.Event{
				Name: media.Refused, Kind: "file", Alias: "content", Filename: "a.php", Client: "192.0.2.9", Origin: "go",
				Message: "files with the extension .php are never accepted",
			},
		},
		{
			"failed deletion", func() {
				driver.Fail = func(op, _ string) error {
					if op == "delete" {
						return broken
					}
					return nil
				}
				_ = s.DeleteFile(t.Context(), "", "a.txt")
				driver.Fail = nil
			},
			media.Event{Name: media.Deleted, Kind: "file", Alias: "content", Filename: "a.txt", Size: 5, Client: "192.0.2.9", Origin: "go", Err: broken},
		},
		{
			"deletion", func() { _ = s.DeleteFile(t.Context(), "", "a.txt") },
			media.Event{Name: media.Deleted, Kind: "file", Alias: "content", Filename: "a.txt", Size: 5, Client: "192.0.2.9", Origin: "go"},
		},
	} {
		step.do()
		got := recorder.take()
		if len(got) == 1 && errors.Is(got[0].Err, broken) {
			got[0].Err = broken
		}
		if !slices.Equal(got, []media.Event{step.want}) {
			t.Errorf("%s:\n%+v, want\n%+v", step.name, got, step.want)
		}
	}
}

// TestObserverOfStorages: an observer has an event when a storage becomes unreachable or reachable, not
// for each check.
func TestObserverOfStorages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver, down := memory.New(), new(atomic.Bool)
		driver.Fail = func(op, _ string) error {
			if down.Load() && op == "check" {
				return errors.New("down")
			}
			return nil
		}
		s, recorder := recorded(t, driver)
		begin := time.Now()
		s.Start()
		for i, want := range []struct {
			down bool
			at   time.Duration // of the event
		}{{false, 0}, {true, 2 * time.Minute}, {false, 3*time.Minute + 10*time.Second}} {
			down.Store(want.down)
			time.Sleep(93 * time.Second)
			synctest.Wait()
			got := recorder.take()
			if want.at == 0 {
				if len(got) > 0 {
					t.Errorf("while nothing has changed: %+v", got)
				}
				continue
			}
			if len(got) != 1 || got[0].Name != media.Checked || got[0].Storage != "default" || (got[0].Err != nil) != want.down ||
				!got[0].At.Equal(begin.Add(want.at)) {
				t.Errorf("change %d after %s: %+v, want one after %s", i, time.Since(begin), got, want.at)
			}
		}
	})
}
