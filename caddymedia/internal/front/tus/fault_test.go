package tus_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// fault fails one operation of a storage, or all from then on if the storage is unavailable.
type fault struct {
	mu    sync.Mutex
	err   error
	after int // operations that succeed before
	hit   string
	died  func() // if set, is called at the first failure
}

func (f *fault) arm(err error, after int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.after, f.hit = err, after, ""
}

// disarm returns the operation that has failed, if any.
func (f *fault) disarm() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = nil
	return f.hit
}

func (f *fault) fail(op, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || op == "check" || f.hit != "" && !errors.Is(f.err, storagedrivers.ErrUnavailable) {
		return nil
	}
	if f.after--; f.after >= 0 {
		return nil
	}
	if f.hit == "" && f.died != nil {
		f.died()
	}
	f.hit = cmp.Or(f.hit, op+" "+key)
	return f.err
}

func withFault(t *testing.T, b backend) (*site, *fault) {
	t.Helper()
	f := new(fault)
	return b.site(t, f.fail), f
}

// errSilent is the error of a backend that does not answer. It is not retried.
var errSilent = errors.Join(storagedrivers.ErrUnavailable, os.ErrDeadlineExceeded)

// TestFaults fails each operation of the storage in each step. The answer is never the client's
// fault, and a client that continues stores the item once, with all of its bytes. Of the uploads
// nothing remains. A creation with all bytes, the last step, is repeated if it has no address.
func TestFaults(t *testing.T) {
	t.Parallel()
	failures := map[int]error{502: fs.ErrPermission, 503: errSilent, 507: storagedrivers.ErrNoSpace}
	for step := range 6 {
		for _, status := range []int{503, []int{502, 507}[step%2]} { // the code does the same for these two
			err := failures[status]
			onEach(t, fmt.Sprintf("step %d, %d", step, status), func(t *testing.T, b backend) {
				for after := range 100 {
					s, f := withFault(t, b)
					c := &tusClient{site: s, fault: f, step: step, err: err, after: after, status: status}
					s.Passed.Store(int64(time.Since(noon))) // the times of the storage are real
					c.upload(t)
					if step == 3 || step == 4 {
						s.swept(t)
					}
					if c.hit == "" {
						return
					}
					if t.Failed() {
						t.Fatalf("operation %d: %s", after, c.hit)
					}
				}
				t.Error("endless operations")
			})
		}
	}
}

// swept starts the service, and waits until it has removed everything of unfinished uploads.
func (s *site) swept(t *testing.T) {
	t.Helper()
	s.Passed.Add(int64(time.Minute)) // they are idle
	s.First.Start()
	for end := time.Now().Add(patience); len(s.open(t)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left: %v", s.open(t))
		}
	}
}

// tusClient uploads in two parts and a third piece, and continues after failures. One of its steps
// meets a fault.
type tusClient struct {
	*site
	fault  *fault
	step   int
	err    error
	after  int
	status int
	hit    string
}

// do sends a request, with the fault if it belongs to the step. ok is false if it has failed by the
// fault.
func (c *tusClient) do(t *testing.T, step int, method, address, header, body string) (got *reply, ok bool) {
	t.Helper()
	r := c.Request(t, method, address, tusHeader+header, body)
	if step == c.step {
		c.fault.arm(c.err, c.after)
	}
	got = c.roundTrip(t, r)
	if step == c.step {
		c.hit, c.step = c.fault.disarm(), -1
		c.reachable(t)
		if got.Status == c.status && c.hit != "" {
			if c.status == 503 && got.Header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", c.hit)
			}
			return got, false
		}
	}
	if got.Status >= 300 {
		t.Fatalf("%s in step %d: %d %s", method, step, got.Status, got.Body)
	}
	return got, true
}

// reachable checks the storages, as the service does in intervals.
func (s *site) reachable(t *testing.T) {
	t.Helper()
	for _, alias := range service.Of(s.First).Aliases() {
		if err := alias.Storage.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// retry repeats a request that fails by the fault.
func (c *tusClient) retry(t *testing.T, step int, method, address, header, body string) *reply {
	t.Helper()
	for {
		if got, ok := c.do(t, step, method, address, header, body); ok {
			return got
		}
	}
}

// append sends the bytes from the offset of the upload on, until all are stored.
func (c *tusClient) append(t *testing.T, step int, address, bytes string) {
	t.Helper()
	for {
		head := c.retry(t, -2, http.MethodHead, address, "", "")
		offset, err := strconv.Atoi(head.Header.Get("Upload-Offset"))
		if err != nil {
			t.Fatal(err)
		}
		if offset == len(bytes) {
			return
		}
		c.do(t, step, http.MethodPatch, address, fmt.Sprintf("%sUpload-Offset: %d\n", tusBody, offset), bytes[offset:])
	}
}

func (c *tusClient) upload(t *testing.T) {
	t.Helper()
	first := c.retry(t, 0, http.MethodPost, resumablePath, "Upload-Concat: partial\nUpload-Length: 6\n", "").Header.Get(location)
	c.append(t, 1, first, "hello ")
	second := c.retry(t, 2, http.MethodPost, resumablePath, tusBody+"Upload-Concat: partial\nUpload-Length: 5\n", "world").Header.Get(location)
	c.append(t, -2, second, "world")
	final := c.retry(t, 3, http.MethodPost, resumablePath, aText+"Upload-Concat: final;"+first+" "+second+"\n", "").Header.Get(location)
	c.retry(t, -2, http.MethodGet, final, "", "").Items(t)
	whole := c.retry(t, -2, http.MethodPost, resumablePath, metadata("filename", "b.txt")+"Upload-Length: 3\n", "").Header.Get(location)
	c.append(t, 4, whole, "abc")
	c.retry(t, -2, http.MethodGet, whole, "", "").Items(t)
	header := tusBody + metadata("filename", "c.txt") + "Upload-Length: 5\n"
	if created, ok := c.do(t, 5, http.MethodPost, resumablePath, header, "hello"); !ok && created.Header.Get(location) == "" {
		c.retry(t, -2, http.MethodPost, resumablePath, header, "hello")
	} else {
		c.append(t, -2, created.Header.Get(location), "hello")
	}
	want := map[string]string{"file/content/a.txt": "hello world", "file/content/b.txt": "abc", "file/content/c.txt": "hello"}
	if items := c.items(t); !maps.Equal(items, want) {
		t.Errorf("items %v", items)
	}
}

// TestCrash ends a process after each operation of the storage or the token store in the last
// request of an upload: from then on it reaches neither. Then each way to finish the upload, by
// another process, stores the item once, with its variant, counts it once on its tickets, and
// leaves nothing else.
func TestCrash(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(t *testing.T, s *site, address string){
		"HEAD": func(t *testing.T, s *site, address string) {
			got := s.withTicketOf(t, http.MethodHead, address, "", "").Want(t, http.StatusOK, "")
			s.rest(t, address, got.Header.Get("Upload-Offset"))
		},
		"GET": func(t *testing.T, s *site, address string) {
			var state struct{ Offset int }
			got := s.withTicketOf(t, http.MethodGet, address, "", "").Want(t, http.StatusOK, "")
			if err := json.Unmarshal([]byte(got.Body), &state); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.Body, "result") {
				s.rest(t, address, strconv.Itoa(state.Offset))
			}
		},
		"start": func(t *testing.T, s *site, address string) {
			u := s.found(t, address)
			if !u.Complete() {
				s.rest(t, address, strconv.FormatInt(u.Offset(), 10))
				return
			}
			s.Passed.Add(int64(time.Minute)) // it is idle
			s.Current.Load().Start()
			awaitOutcome(t, u)
		},
	} {
		for _, alias := range []string{"content", "replacing"} {
			onEach(t, name+", "+alias, func(t *testing.T, b backend) {
				_, want := crash(t, b, alias, math.MaxInt, finish)
				seen := map[string]bool{}
				for after := 0; !seen["stored done"]; after++ {
					window, items := crash(t, b, alias, after, finish)
					if seen[window] = true; !slices.Equal(items, want) {
						t.Errorf("after %d operations (%s): %d items %.200q, want %d", after, window, len(items), items, len(want))
					}
				}
				for _, window := range []string{"open", "open complete", "open complete kept stored", "open complete kept stored done", "kept stored done"} {
					if !seen[window] {
						t.Errorf("no crash has left %q of %v", window, seen)
					}
				}
			})
		}
	}
}

// crashPicture is the item, and crashOther an earlier one of the same name.
var crashPicture, crashOther = pngOf(16, 12), pngOf(8, 8)

// crash ends a process after operations of the last request of an upload, which finish finishes in
// another process. It returns what the crash has left, and the final items.
func crash(t *testing.T, b backend, alias string, after int, finish func(*testing.T, *site, string)) (window string, items []string) {
	t.Helper()
	f := new(fault)
	s := newSiteOn(t, b(t, f.fail), media.Limits{}, func(c *media.Config) {
		c.ImageAliases["content"].WebP, c.ImageAliases["replacing"].WebP = &media.WebP{}, &media.WebP{}
	})
	s.Passed.Store(int64(time.Since(noon))) // the objects have the real time
	earlier := upload.Upload{Request: upload.Request{Kind: item.Image, Alias: alias, Actor: item.Actor{Origin: item.OriginHTTP}}}
	if _, failures := service.Of(s.First).Uploader().Upload(t.Context(), earlier, upload.Single("a.png", strings.NewReader(crashOther))); failures != nil {
		t.Fatal(failures)
	}
	first := s.Ticket(t, "kind=image&max_files=9&alias="+alias)
	header := fmt.Sprintf("Upload-Length: %d\n%s", len(crashPicture), metadata("filename", "a.png"))
	address := s.withTicketOf(t, http.MethodPost, imagesPath, header, "").Want(t, http.StatusCreated, "").Header.Get(location)
	s.Store.Step = func() error { return f.fail("token store", "") }
	f.died = func() { s.Store.Fails.Store(true) }
	f.arm(errSilent, after)
	s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", crashPicture)
	f.disarm()
	s.Store.Fails.Store(false)
	s.Current.Store(s.Service(t, media.Limits{}, account()))
	s.Passed.Add(int64(2 * time.Minute)) // the lease of the dead process has ended
	window = s.window(t, address)
	second := s.Ticket(t, "kind=image&max_files=9&alias="+alias)
	finish(t, s, address)
	s.withTicketOf(t, http.MethodHead, address, "", "").Want(t, http.StatusOK, fmt.Sprintf("Upload-Offset: %d", len(crashPicture)))
	if counted := s.used(t, first) + s.used(t, second); counted != 1 {
		t.Errorf("after %d operations (%s): %d are counted", after, window, counted)
	}
	uploads := service.Of(s.Current.Load()).Uploads()
	if _, err := uploads.Sweep(t.Context(), uploads.Storages[0], resumable.SweepOptions{}); err != nil {
		t.Fatal(err)
	}
	for key, content := range s.Objects(t) {
		if !strings.HasPrefix(key, resumable.Folder+"/done/") {
			items = append(items, content)
		}
	}
	slices.Sort(items)
	return window, items
}

// rest sends the bytes of the upload that are missing.
func (s *site) rest(t *testing.T, address, offset string) {
	t.Helper()
	if from, err := strconv.Atoi(offset); err != nil {
		t.Fatal(err)
	} else if from < len(crashPicture) {
		s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: "+offset+"\n", crashPicture[from:]).Want(t, http.StatusNoContent, "")
	}
}

// window returns what a crash has left.
func (s *site) window(t *testing.T, address string) string {
	t.Helper()
	attempt, err := service.Of(s.First).Issuer().Attempt(t.Context(), s.found(t, address).Request(), func() {})
	if err == nil {
		err = attempt.End(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{"kept": attempt.IsRepeated}
	for key, content := range s.Objects(t) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(key, resumable.Folder+"/"), "/")
		switch {
		case folder == "open", folder == "done":
			found[folder] = true
		case content == crashPicture && folder == "data":
			found["complete"] = true
		case content == crashPicture:
			found["stored"] = true
		}
	}
	var state []string
	for _, one := range []string{"open", "complete", "kept", "stored", "done"} {
		if found[one] {
			state = append(state, one)
		}
	}
	return strings.Join(state, " ")
}

// used returns how many items are counted on a ticket.
func (s *site) used(t *testing.T, ticket string) int {
	t.Helper()
	_, loaded, err := service.Of(s.First).Issuer().VerifyTicket(t.Context(), access.IDOf(ticket))
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Used()
}

// found returns the upload of an address.
func (s *site) found(t *testing.T, address string) *resumable.Upload {
	t.Helper()
	u, err := service.Of(s.Current.Load()).Uploads().Find(t.Context(), "http "+someKey, address[strings.LastIndex(address, "/")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// unavailable returns the status of a request that may succeed later.
func unavailable(method string) int {
	if method == http.MethodHead {
		return http.StatusLocked // tus-js-client drops an upload after a HEAD with another error
	}
	return http.StatusServiceUnavailable
}

// headLocked asks for an upload that another request finishes, and does not wait for its end.
func headLocked(t *testing.T, s *site, address, _ string) {
	t.Helper()
	r := s.Request(t, http.MethodHead, address, tusHeader, "")
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	s.roundTrip(t, r.WithContext(ctx)).Want(t, http.StatusLocked, "Retry-After: 5\nUpload-Offset")
}

// TestUnavailable: while the storage is unavailable, HEAD is answered with 423, all other
// requests with 503.
// Then the upload continues.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	onEach(t, "503", func(t *testing.T, b backend) {
		s, f := withFault(t, b)
		address, part := s.create(t, len(digits), aText), s.part(t, "part")
		s.patch(t, address, 0, digits[:5], "").Want(t, 204, "")
		f.arm(errSilent, 0)
		const want = "Retry-After: 1\nUpload-Offset\nLocation"
		for range 3 {
			for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete} {
				s.send(t, method, address, tusBody+"Upload-Offset: 5\n", digits[5:]).Want(t, unavailable(method), want)
			}
			s.send(t, http.MethodPost, resumablePath, "Upload-Length: 1\n"+aText, "").Want(t, 503, want)
			s.send(t, http.MethodPost, resumablePath, "Upload-Length: 1\n"+tusBody+aText, "x").Want(t, 503, want)
			s.final(t, aText, part).Want(t, 503, want)
		}
		f.disarm()
		s.reachable(t)
		s.offset(t, address, 5)
		s.patch(t, address, 5, digits[5:], "").Want(t, 204, "Media-Filename: a.txt")
		s.itemIs(t, digits)
		s.final(t, metadata("filename", "b.txt"), part).Want(t, 201, "Media-Filename: b.txt")
		s.nothingOpen(t)
	})
}
