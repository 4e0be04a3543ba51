package mediahttp_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

// storedAs returns the contents of the objects whose keys contain a text.
func (s *site) storedAs(t *testing.T, text string) []string {
	t.Helper()
	var contents []string
	for key, content := range s.objects(t) {
		if strings.Contains(key, text) {
			contents = append(contents, content)
		}
	}
	return contents
}

// failPut fails each Put of an object whose key contains a text.
func failPut(text string) func(op, key string) error {
	return func(op, key string) error {
		if op == "put" && strings.Contains(key, text) {
			return fs.ErrPermission
		}
		return nil
	}
}

// TestRetryKeyAgain: after the end of a key, a request under it stores another item, also if that has the
// name of the first one.
func TestRetryKeyAgain(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"equal", "of another size"} {
		m := newMortalOn(t, true)
		for _, body := range []string{"equal", second} {
			m.known = nil
			httpCase{method: "PUT", target: putPath + "one/nightly.txt", header: bearer + retryKey, body: body, status: 201, want: "Idempotency-Replayed:"}.check(t, m.site)
			m.passed.Add(int64(25 * time.Hour))
		}
		if found := m.storedAs(t, "nightly"); len(found) != 2 {
			t.Errorf("stored %q", found)
		}
	}
}

// TestRetryTicketItems: a repetition with more items than an earlier attempt counts them all.
func TestRetryTicketItems(t *testing.T) {
	t.Parallel()
	m := newMortalOn(t, true)
	m.ticket(t, "kind=file&alias=one&max_files=3")
	for k := range 3 {
		header := multipart + ticketBearer + fmt.Sprintf("Idempotency-Key: q%d\n", k)
		name := func(n int) string { return fmt.Sprintf("x%d-%d.txt", k, n) }
		one := form(file(name(0), strings.Repeat("x", 2000)))
		three := func(pad int) string {
			return form(file(name(0), ""), file(name(1), ""), file(name(2), strings.Repeat("x", pad)))
		}
		m.driver.Fail = failPut("one/x")
		for range 2 {
			m.attempt(t, httpCase{method: "POST", target: filePath, header: header, body: one})
		}
		m.driver.Fail = nil
		m.attempt(t, httpCase{method: "POST", target: filePath, header: header, body: three(len(one) - len(three(0)))})
	}
	if found := m.storedAs(t, "one/x"); len(found) > 3 {
		t.Errorf("%d files are stored with a ticket for 3", len(found))
	}
}
