package mediahttp_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failed checks the status and the message of a refusal.
func failed(t *testing.T, r *reply, status int, has string) {
	t.Helper()
	if r.Status != status || !strings.Contains(r.Body, has) {
		t.Fatalf("%d %s, want %d and %q", r.Status, r.Body, status, has)
	}
}

// TestRetryRecovers: a request whose key cannot be looked up is refused, also if the token store is
// back a moment later. It is never carried out without its key.
func TestRetryRecovers(t *testing.T) {
	t.Parallel()
	for _, c := range interruptible {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m := newMortal(t)
			m.setTag(t)
			c.Header += bearer + retryKey
			for before := range int32(2) {
				stored := m.contents(t)
				m.Store.NoLoads.Store(before + 1)
				failed(t, m.attempt(t, c), 503, "tokens cannot be checked now")
				if after := m.contents(t); strings.Join(after, "\n") != strings.Join(stored, "\n") {
					t.Fatalf("it was carried out: %q", after)
				}
				m.Store.NoLoads.Store(0)
			}
			for _, want := range []string{"", "true"} {
				if r := m.attempt(t, c); r.Status >= 300 || r.Header.Get("Idempotency-Replayed") != want {
					t.Errorf("%d %s, replayed %q", r.Status, r.Body, r.Header.Get("Idempotency-Replayed"))
				}
			}
		})
	}
}

// TestRetryUnkept: a request that cannot be kept before its change, because the token store fails, is 503.
func TestRetryUnkept(t *testing.T) {
	t.Parallel()
	for _, c := range interruptible {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m := newMortal(t)
			m.setTag(t)
			before := m.contents(t)
			c.Header += bearer + retryKey
			begun := false
			m.Store.Step = func() error {
				if !begun { // the attempt begins
					begun = true
					return nil
				}
				return fs.ErrPermission
			}
			failed(t, m.attempt(t, c), 503, "the Idempotency-Key cannot be used now")
			if after := m.contents(t); strings.Join(after, "\n") != strings.Join(before, "\n") {
				t.Errorf("it was carried out: %q", after)
			}
		})
	}
}

// TestRetryLost: an attempt that has lost its lease undoes nothing, because the next attempt may
// have taken its items for its own. Its client gets an answer that is repeated.
func TestRetryLost(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"sized", "replacing"} {
		for _, left := range []bool{false, true} {
			t.Run(fmt.Sprint(alias, " left ", left), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testRetryLost(t, alias, left) })
			})
		}
	}
}

func testRetryLost(t *testing.T, alias string, left bool) {
	t.Helper()
	m := newMortal(t)
	name := fmt.Sprint("lost-", alias, left) // of this bubble alone, because the process has locks of names
	target, ext, content := filePath, ".txt", "text"
	if alias == "sized" {
		target, ext, content = imagePath, ".png", samples["png"]
	}
	target += "?alias=" + alias
	body := form(file(name+"-1"+ext, content), file(name+"-2"+ext, content))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first, header := httptest.NewRecorder(), multipart+bearer+retryKey
	m.Driver.Fail = func(op, key string) error {
		if op != "put" || !strings.Contains(key, name+"-2") {
			return nil
		}
		m.Store.Unextended.Store(true)
		time.Sleep(time.Second) // the other item is stored
		if left {
			leave()
		}
		time.Sleep(leaseTime)
		m.Passed.Add(int64(leaseTime))
		return fs.ErrPermission
	}
	m.Handler.ServeHTTP(first, m.Request(t, "POST", target, header, body).WithContext(ctx))
	if first.Code != 409 || first.Header().Get("Retry-After") != "1" {
		t.Errorf("the attempt that is lost: %d %s", first.Code, first.Body)
	}
	if stored := m.StoredAs(t, name+"-1"); len(stored) == 0 {
		t.Error("it has removed its item")
	}
	m.Driver.Fail = nil
	m.Store.Unextended.Store(false)
	for _, want := range []string{"", "true"} {
		r := m.attempt(t, httpCase{Method: "POST", Target: target, Header: header, Body: body})
		if r.Status != 200 || r.Header.Get("Idempotency-Replayed") != want {
			t.Errorf("repeated: %d %s", r.Status, r.Body)
		}
	}
	if stored := m.StoredAs(t, name); alias == "replacing" && len(stored) != 2 {
		t.Errorf("stored %q", stored)
	}
}

// TestRetryTicketBytes: a repetition with other bytes, of a request with a ticket whose answer is
// not kept, stores no more items than were counted. Nor does one after its key was forgotten.
func TestRetryTicketBytes(t *testing.T) {
	t.Parallel()
	const files = 150
	for name, repeats := range map[string]bool{"recognised": true, "compared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMortalOn(t, repeats)
			m.Ticket(t, fmt.Sprint("kind=file&alias=one&max_files=", files))
			attempt := func(text string) *reply {
				parts := make([]part, files)
				for n := range parts {
					parts[n] = file(fmt.Sprintf("many-%0180d.txt", n), "x"+text)
				}
				parts[0] = file("many-first.txt", "1") // as in each attempt
				return m.attempt(t, httpCase{Method: "POST", Target: filePath, Header: multipart + ticketBearer + retryKey, Body: form(parts...)})
			}
			for range 2 {
				if r := attempt("1"); r.Status != 200 || r.Header.Get("Idempotency-Replayed") != "" {
					t.Fatalf("%d %.200s", r.Status, r.Body)
				}
			}
			failed(t, attempt("2"), 403, "used up")
			if stored := m.StoredAs(t, "one/many"); len(stored) != files {
				t.Errorf("%d files are stored with a ticket for %d", len(stored), files)
			}
		})
	}
}

// TestRetryTicketForgotten: a key that is forgotten counts the items of its request again.
func TestRetryTicketForgotten(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.Ticket(t, "kind=file&alias=one&max_files=1")
	c := httpCase{Method: "PUT", Target: putPath + "one/forgotten.txt", Header: ticketBearer + retryKey, Body: "1"}
	if r := m.attempt(t, c); r.Status != 201 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	if n, err := m.Store.DeleteIndex(t.Context(), m.Store.Indexes[0]); n != 1 || err != nil { // as if the account had too many
		t.Fatalf("forgot %d answers, error %v", n, err)
	}
	c.Body = "2"
	if r := m.attempt(t, c); r.Status != 403 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if stored := m.StoredAs(t, "one/forgotten"); len(stored) != 1 {
		t.Errorf("stored %q", stored)
	}
}
