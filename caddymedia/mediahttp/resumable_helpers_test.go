package mediahttp_test

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/resumable"
)

const (
	tusBody  = "Content-Type: application/offset+octet-stream\n"
	aText    = "Upload-Metadata: filename YS50eHQ=\n" // a.txt
	location = "Location"
)

// tusSend sends a request of the protocol and checks what every response promises. Unlike do it
// permits changes of the storage with every status.
func (s *site) tusSend(t *testing.T, method, address, header, body string) *reply {
	t.Helper()
	return s.tusRequest(t, s.request(t, method, address, tusHeader+header, body))
}

// tusRequest is tusSend of a whole request.
func (s *site) tusRequest(t *testing.T, r *http.Request) *reply {
	t.Helper()
	sent := replay(t, r)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	got := &reply{w.Code, w.Result().Header, w.Body.String()}
	s.observe(t, r, sent, got)
	for name, want := range map[string]string{
		"Tus-Resumable": "1.0.0", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if h := got.header.Get(name); h != want {
			t.Errorf("%s %s: %d: header %s: %q, want %q", r.Method, r.URL.Path, got.status, name, h, want)
		}
	}
	if got.body != "" && got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s: %d: a body of type %q", r.Method, r.URL.Path, got.status, got.header.Get("Content-Type"))
	}
	for name, values := range got.header {
		if strings.ContainsFunc(strings.Join(values, ""), func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Errorf("control characters in %s: %q", name, values)
		}
	}
	return got
}

// want checks the status and lines "Name: value" of the header; one without a value must be missing.
func (r *reply) want(t *testing.T, status int, header string) *reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %.300q", r.status, status, r.body)
	}
	for line := range strings.Lines(header) {
		name, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if got := strings.Join(r.header.Values(name), ", "); got != strings.TrimSpace(want) {
			t.Errorf("header %s: %.200q, want %q", name, got, strings.TrimSpace(want))
		}
	}
	return r
}

// offset checks the offset of an upload.
func (s *site) offset(t *testing.T, address string, want int) *reply {
	t.Helper()
	return s.tusSend(t, http.MethodHead, address, "", "").want(t, 200, fmt.Sprintf("Upload-Offset: %d\n", want))
}

// part creates a partial upload with bytes.
func (s *site) part(t *testing.T, bytes string) string {
	t.Helper()
	address := s.tusCreate(t, len(bytes), "Upload-Concat: partial\n")
	s.tusPatch(t, address, 0, bytes, "").want(t, 204, fmt.Sprintf("Upload-Offset: %d\n", len(bytes)))
	return address
}

// final requests the concatenation of parts.
func (s *site) final(t *testing.T, header string, parts ...string) *reply {
	t.Helper()
	return s.tusSend(t, http.MethodPost, resumablePath, "Upload-Concat: final;"+strings.Join(parts, " ")+"\n"+header, "")
}

func sha1Of(bytes string) string {
	sum := sha1.Sum([]byte(bytes))
	return "Upload-Checksum: sha1 " + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
}

// itemIs checks the content of the item of aText.
func (s *site) itemIs(t *testing.T, want string) {
	t.Helper()
	if got, ok := s.stored(t, "file/content/a.txt"); !ok || got != want {
		t.Errorf("the item is %.100q, %t, want %q", got, ok, want)
	}
}

// items returns the stored items by key.
func (s *site) items(t *testing.T) map[string]string {
	t.Helper()
	items := s.objects(t)
	maps.DeleteFunc(items, func(key, _ string) bool { return strings.HasPrefix(key, resumable.Folder+"/") })
	return items
}

// awaitOutcome waits for the end of an upload, at most a minute.
func awaitOutcome(t *testing.T, u *resumable.Upload) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ; u.Outcome == nil; time.Sleep(10 * time.Millisecond) {
		if err := cmp.Or(ctx.Err(), u.Reload(ctx)); err != nil {
			t.Fatalf("the upload is not finished: %v", err)
		}
	}
}

// sentence is a demand of a specification.
type sentence struct {
	text  string
	check func(*testing.T, *site)
}

// runSentences checks each sentence on its own sites, in parallel.
func runSentences(t *testing.T, sentences []sentence) {
	t.Helper()
	for _, c := range sentences {
		onEach(t, c.text, func(t *testing.T, b backend) { c.check(t, b.site(t, nil)) })
	}
}
