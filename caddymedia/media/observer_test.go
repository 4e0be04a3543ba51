package media_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
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

// recorded returns a site of one storage, which replaces items, and what records its events.
func recorded(t *testing.T) (*testservice.Site, *recorder) {
	t.Helper()
	r := new(recorder)
	return testservice.NewWith(t, media.Limits{}, func(c *media.Config) {
		c.Storages, c.ImageAliases = c.Storages[2:3], nil
		c.FileAliases = map[string]*media.FileAlias{"content": {}}
		c.Accounts = map[string]*media.Account{testservice.SomeKey: {PasswordHash: testservice.Password}, "members": {TrustHeader: "Remote-User"}}
		c.Client, c.Observer, c.Now = func(context.Context) string { return "192.0.2.9" }, r, nil
	}), r
}

// TestObserver: an observer with nothing but public names has an event for each change of an item,
// for each refused file and each login. Events have who did it, if that is known.
func TestObserver(t *testing.T) {
	t.Parallel()
	s, recorder := recorded(t)
	login := func(password string) {
		const header = testservice.Urlencoded
		s.Handler.ServeHTTP(httptest.NewRecorder(), s.Request(t, http.MethodPost, testservice.TokenPath, header, "api_key="+testservice.SomeKey+"&password="+password))
	}
	upload := func(name, content string) *http.Request {
		const header = testservice.Multipart + "Remote-User: alice\n"
		return s.Request(t, http.MethodPost, testservice.FilePath, header, testservice.Form(testservice.File(name, content)))
	}
	broken := errors.New("broken")
	for _, step := range []struct {
		name string
		do   func()
		want media.Event // with broken for any error
	}{
		{
			"refused login", func() { login("wrong") },
			media.Event{Name: media.LoggedIn, Result: "refused"},
		},
		{
			"login", func() { login(testservice.Password) },
			media.Event{Name: media.LoggedIn, Account: testservice.SomeKey, Result: "ok"},
		},
		{
			"upload of a user", func() { s.Handler.ServeHTTP(httptest.NewRecorder(), upload("a.txt", "text")) },
			media.Event{
				Name: media.Stored, Kind: "file", Alias: "content", Filename: "a.txt", Size: 4,
				Account: "members", User: "alice", Client: "192.0.2.1", Origin: "http",
			},
		},
		{
			"replacement", func() { s.First.FormFile(upload("a.txt", "other"), "files[]", "", "") },
			media.Event{Name: media.Replaced, Kind: "file", Alias: "content", Filename: "a.txt", Size: 5, Client: "192.0.2.9", Origin: "go"},
		},
		{
			"refused file", func() { s.First.FormFile(upload("a.php", "text"), "files[]", "", "") },
			media.Event{
				Name: media.Refused, Kind: "file", Alias: "content", Filename: "a.php", Client: "192.0.2.9", Origin: "go",
				Message: "files with the extension .php are never accepted",
			},
		},
		{
			"failed deletion", func() {
				s.Driver.Fail = func(op, _ string) error {
					if op == "delete" {
						return broken
					}
					return nil
				}
				_ = s.First.DeleteFile(t.Context(), "", "a.txt")
				s.Driver.Fail = nil
			},
			media.Event{Name: media.Deleted, Kind: "file", Alias: "content", Filename: "a.txt", Size: 5, Client: "192.0.2.9", Origin: "go", Err: broken},
		},
		{
			"deletion", func() { _ = s.First.DeleteFile(t.Context(), "", "a.txt") },
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

// TestObserverOfStorages: an observer has an event when a storage becomes unreachable or reachable,
// not for each check.
func TestObserverOfStorages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, recorder := recorded(t)
		down := new(atomic.Bool)
		s.Driver.Fail = func(op, _ string) error {
			if down.Load() && op == "check" {
				return errors.New("down")
			}
			return nil
		}
		begin := time.Now()
		s.First.Start()
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
			if len(got) != 1 || got[0].Name != media.Checked || got[0].Storage != "replacing" || (got[0].Err != nil) != want.down ||
				!got[0].At.Equal(begin.Add(want.at)) {
				t.Errorf("change %d after %s: %+v, want one after %s", i, time.Since(begin), got, want.at)
			}
		}
	})
}
