package items_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// busyCalls returns a site with requests for items: lists, sets, signatures and repeated answers.
func busyCalls(t *testing.T) (*site, map[string]func(*testing.T) *http.Request) {
	t.Helper()
	renditions := map[string]*media.Rendition{}
	for n := range 16 {
		renditions[fmt.Sprint("r", n)] = &media.Rendition{Width: 10, Height: 10}
	}
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Accounts[someKey].May = []string{"upload", "list", "delete", "sign"}
		c.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: on("exact"), Renditions: renditions}
		c.FileAliases["private"] = &media.FileAlias{AliasOptions: media.AliasOptions{Storage: "exact", Private: &media.Private{}}}
		c.SigningKey = []string{strings.Repeat("k", 32)}
	})
	for n := range 200 {
		s.Put(t, fmt.Sprintf("img/sized/%s%03d.png", strings.Repeat("č", 90), n), "x")
	}
	names := url.Values{"action": {"delete"}, "kind": {"file"}, "alias": {"private"}}
	for n := range 1000 {
		names.Add("filename", fmt.Sprintf("%s%03d.txt", strings.Repeat("č", 90), n))
	}
	var key atomic.Int64
	header, form := strings.ReplaceAll(bearer, "$TOKEN", s.Token(t)), names.Encode()
	keyed := func(t *testing.T) *http.Request {
		t.Helper()
		return s.Request(t, http.MethodPut, filePath+"/one/keyed.txt", header+"Idempotency-Key: k\n", "text")
	}
	if r := s.Send(t, keyed(t)); r.Status != 201 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	return s, map[string]func(*testing.T) *http.Request{
		"list": func(t *testing.T) *http.Request {
			t.Helper()
			return s.Request(t, http.MethodGet, itemsPath+"image/sized?limit=200", header, "")
		},
		"ordered list": func(t *testing.T) *http.Request {
			t.Helper()
			return s.Request(t, http.MethodGet, itemsPath+"image/sized?limit=200&order=-modified", header, "")
		},
		"set": func(t *testing.T) *http.Request {
			t.Helper()
			return s.Request(t, http.MethodPost, itemsPath+"file/one", urlencoded+header, form)
		},
		"set with a key": func(t *testing.T) *http.Request {
			t.Helper()
			return s.Request(t, http.MethodPost, itemsPath+"file/one", urlencoded+header+fmt.Sprintf("Idempotency-Key: %d\n", key.Add(1)), form)
		},
		"signatures": func(t *testing.T) *http.Request {
			t.Helper()
			return s.Request(t, http.MethodPost, signPath, urlencoded+header, form)
		},
		"repetition": keyed,
	}
}

// unreadAnswer is the connection of a client that does not read.
type unreadAnswer struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (w unreadAnswer) Write(p []byte) (int, error) {
	<-w.read
	return w.ResponseRecorder.Write(p)
}

// TestUnreadAnswers: 300 clients of an account that do not read their answers hold little memory.
// It is measured, so the test is not parallel.
func TestUnreadAnswers(t *testing.T) { //nolint:paralleltest // see above
	s, calls := busyCalls(t)
	for name, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			before := liveHeap()
			var all sync.WaitGroup
			read, answers := make(chan struct{}), make(chan int, 300)
			for range cap(answers) {
				r := call(t)
				all.Go(func() {
					w := unreadAnswer{httptest.NewRecorder(), read}
					s.Handler.ServeHTTP(w, r)
					answers <- w.Code
				})
			}
			synctest.Wait()
			if held := liveHeap() - before; held > 100<<20 {
				t.Errorf("%s: %d MiB", name, held>>20)
			}
			time.Sleep(time.Minute) // others have stopped waiting
			close(read)
			all.Wait()
			close(answers)
			for status := range answers {
				if status >= 400 && status != http.StatusTooManyRequests {
					t.Errorf("%s: %d", name, status)
				}
			}
		})
	}
}

// liveHeap returns the bytes of the heap that are in use.
func liveHeap() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestCallsWait: requests for items wait until others of their account have ended, and are refused
// after a while. Another account is not concerned.
func TestCallsWait(t *testing.T) {
	t.Parallel()
	s, calls := busyCalls(t)
	synctest.Test(t, func(t *testing.T) {
		for name, call := range calls {
			actor, kind, most := item.Actor{Origin: "http", Account: someKey}, service.OtherCall, 8
			switch {
			case strings.HasPrefix(name, "set"):
				kind, most = service.DeletedSet, 2
			case name == "ordered list":
				kind, most = service.OrderedList, 2
			}
			leave := make([]func(), most)
			for i := range leave {
				leave[i], _ = service.Of(s.First).Enter(t.Context(), actor, kind, 1)
			}
			send := func() (*httptest.ResponseRecorder, time.Duration) {
				w, begin := httptest.NewRecorder(), time.Now()
				s.Handler.ServeHTTP(w, call(t))
				return w, time.Since(begin)
			}
			if w, took := send(); w.Code != 429 || w.Header().Get("Retry-After") == "" || took != 30*time.Second {
				t.Errorf("%s: %d after %v", name, w.Code, took)
			}
			go func() {
				time.Sleep(time.Second)
				leave[0]()
			}()
			if w, took := send(); w.Code >= 400 || took != time.Second {
				t.Errorf("%s: %d %.100s after %v", name, w.Code, w.Body, took)
			}
			actor.Account = otherKey
			other, ok := service.Of(s.First).Enter(t.Context(), actor, kind, 1)
			if !ok {
				t.Fatalf("%s: another account waits", name)
			}
			for _, left := range append(leave[1:], other) {
				left()
			}
		}
	})
}

// TestListEnds: a page of a list ends at about a MiB, in each order, and the next one goes on.
func TestListEnds(t *testing.T) {
	t.Parallel()
	s, _ := busyCalls(t)
	for _, order := range []string{"name", "-name", "modified"} {
		seen, pages, cursor := map[string]bool{}, 0, ""
		for ok := true; ok; ok = cursor != "" {
			r := s.Do(t, http.MethodGet, itemsPath+"image/sized?limit=200&order="+order+"&cursor="+cursor, bearer, "")
			var page struct {
				Result []struct{ Filename string }
				Next   string
			}
			if err := json.Unmarshal([]byte(r.Body), &page); err != nil {
				t.Fatal(err)
			}
			if len(r.Body) > 1<<20 || len(page.Result) == 0 {
				t.Errorf("order %s: %d items, %d bytes", order, len(page.Result), len(r.Body))
			}
			for _, item := range page.Result {
				seen[item.Filename] = true
			}
			pages++
			cursor = page.Next
		}
		if len(seen) != 200 || pages < 2 || pages > 4 {
			t.Errorf("order %s: %d items on %d pages", order, len(seen), pages)
		}
	}
}

// timedAnswer records the deadline of its writes.
type timedAnswer struct {
	*httptest.ResponseRecorder
	deadline, written atomic.Pointer[time.Time] // now, and of the first write
}

func (w *timedAnswer) SetWriteDeadline(at time.Time) error {
	w.deadline.Store(&at)
	return nil
}

func (w *timedAnswer) Write(p []byte) (int, error) {
	w.written.CompareAndSwap(nil, w.deadline.Load())
	return w.ResponseRecorder.Write(p)
}

// TestAnswerDeadline: a client has a bounded time to read an answer, which begins with the answer.
// HTTP/2 aborts a request whose deadline passes, and a large set takes longer to delete.
func TestAnswerDeadline(t *testing.T) {
	t.Parallel()
	s, calls := busyCalls(t)
	calls["folder"] = func(t *testing.T) *http.Request {
		t.Helper()
		return s.Request(t, http.MethodPost, itemsPath+"image/sized", urlencoded+bearer, "action=delete&folder=&everything=yes")
	}
	var answer atomic.Pointer[timedAnswer]
	var early atomic.Bool
	s.Driver.Fail = func(operation, _ string) error {
		if w := answer.Load(); w != nil && operation == "delete" && w.deadline.Load() != nil {
			early.Store(true)
		}
		return nil
	}
	for name, call := range calls {
		r, w := call(t), &timedAnswer{ResponseRecorder: httptest.NewRecorder()}
		answer.Store(w)
		s.Handler.ServeHTTP(w, r)
		if at := w.written.Load(); w.Code >= 400 || at == nil || at.IsZero() || !w.deadline.Load().IsZero() {
			t.Errorf("%s: %d, written by %v", name, w.Code, at)
		}
		if early.Swap(false) {
			t.Errorf("%s: the time for the answer began before the deletion", name)
		}
	}
}
