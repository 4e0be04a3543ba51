// Package tokentest is the conformance suite of token stores: it tests the contract in the comments
// of tokens.Store. It does not test what a store adds to the contract, such as its configuration.
// Begin with [Run].
package tokentest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

const (
	// soon is the lifetime of an entry that should expire. It is short, for stores whose clock cannot
	// be moved. A slow test run must not fail because of it.
	soon = 500 * time.Millisecond
	// over is when that lifetime has ended, also by a clock of whole milliseconds.
	over = soon + 10*time.Millisecond
)

// Subject is a store under test.
type Subject struct {
	// Store is the store.
	Store tokens.Store
	// Now is the store's clock. Default: time.Now.
	Now func() time.Time
	// Advance advances the time of the store. Default: time.Sleep.
	Advance func(time.Duration)
	// Reopen closes the store and returns another one over the same data. If it is nil, the store
	// is expected to lose its data when closed.
	Reopen func(*testing.T) tokens.Store
	// Share returns another store over the same data, which is used at the same time. It is nil if a
	// store has its data for itself.
	Share func(*testing.T) tokens.Store

	prefix string // of the keys
}

var suite = []struct {
	name string
	run  func(*testing.T, Subject)
}{
	{"RoundTrip", testRoundTrip},
	{"Missing", testMissing},
	{"Replace", testReplace},
	{"Values", testValues},
	{"Expiry", testExpiry},
	{"ExpiryExact", testExpiryExact},
	{"Expired", testExpired},
	{"Extend", testExtend},
	{"Remove", testRemove},
	{"Change", testChange},
	{"ChangeFails", testChangeFails},
	{"Counter", testCounter},
	{"CallerLeaves", testCallerLeaves},
	{"Index", testIndex},
	{"IndexMembers", testIndexMembers},
	{"IndexExpired", testIndexExpired},
	{"IndexMixed", testIndexMixed},
	{"IndexMany", testIndexMany},
	{"IndexConcurrent", testIndexConcurrent},
	{"IndexCallerLeaves", testIndexCallerLeaves},
	{"Check", testCheck},
	{"Concurrent", testConcurrent},
	{"Reopen", testReopen},
	{"Share", testShare},
	{"ContextEnded", testContextEnded},
	{"Closed", testClosed},
}

// Run runs the suite, with durable and with volatile entries, and returns when it is done. Every
// test gets its own Subject; these may share their data.
func Run(t *testing.T, newSubject func(*testing.T) Subject) {
	t.Helper()
	t.Run("Conformance", func(t *testing.T) {
		for kind, prefix := range map[string]string{"Durable": "", "Volatile": tokens.Volatile} {
			for _, test := range suite {
				t.Run(kind+test.name, func(t *testing.T) {
					t.Parallel()
					s := newSubject(t)
					s.prefix = prefix
					if s.Now == nil {
						s.Now = time.Now //nolint:forbidigo // the default clock
					}
					if s.Advance == nil {
						s.Advance = time.Sleep
					}
					t.Cleanup(func() { _ = s.Store.Close() })
					test.run(t, s)
				})
			}
		}
	})
}

func testRoundTrip(t *testing.T, s Subject) {
	all := make([]byte, 256)
	for c := range all {
		all[c] = byte(c)
	}
	printable := all[' ' : '~'+1]
	long := s.newKey() + string(printable) + string(bytes.Repeat([]byte("x"), 200))
	values := map[string][]byte{
		long[:200]: all, s.newKey(): {}, s.newKey(): {0}, s.newKey(): []byte(`{"a":"ě"}`), s.newKey(): bytes.Repeat(all, 500),
	}
	for key, value := range values {
		for _, e := range []tokens.Entry{s.entry(""), {}} {
			e.Value = value
			set(t, s.Store, key, "", e)
			wantEntry(t, s.Store, key, e)
			wantEntry(t, s.Store, key, e)
		}
	}
	for key, value := range values {
		wantEntry(t, s.Store, key, tokens.Entry{Value: value})
	}
}

func testMissing(t *testing.T, s Subject) {
	key := s.newKey()
	wantMissing(t, s.Store, key)
	set(t, s.Store, key, "", s.entry("a"))
	wantMissing(t, s.Store, key[:len(key)-1])
	wantMissing(t, s.Store, key+"0")
	wantMissing(t, s.Store, key[:len(key)-1]+"0")
}

func testReplace(t *testing.T, s Subject) {
	key := s.newKey()
	for _, e := range []tokens.Entry{s.entry("a"), s.entry("b"), {Value: []byte("c")}, {Value: []byte("d")}, s.entry("")} {
		set(t, s.Store, key, "", e)
		wantEntry(t, s.Store, key, e)
	}
}

// testValues: the value of an entry that was returned stays, whatever happens to the entry.
func testValues(t *testing.T, s Subject) {
	key, value := s.newKey(), bytes.Repeat([]byte("a"), 1000)
	set(t, s.Store, key, "", tokens.Entry{Value: value})
	before, err := s.Store.Get(t.Context(), key)
	wantNil(t, err)
	var old tokens.Entry
	wantNil(t, s.Store.Update(t.Context(), key, "", func(e tokens.Entry) (tokens.Entry, error) {
		old = e
		return tokens.Entry{Value: bytes.Repeat([]byte("b"), 1000)}, nil
	}))
	for range 20 {
		set(t, s.Store, s.newKey(), "", tokens.Entry{Value: bytes.Repeat([]byte("c"), 1000)})
	}
	if !bytes.Equal(before.Value, value) || !bytes.Equal(old.Value, value) {
		t.Error("the value of an old entry has changed")
	}
}

func testExpiry(t *testing.T, s Subject) {
	key, shorter, later, never := s.newKey(), s.newKey(), s.newKey(), s.newKey()
	e, forever := s.entry("a"), tokens.Entry{Value: []byte("forever")}
	set(t, s.Store, later, "", e)
	set(t, s.Store, never, "", s.shortEntry("b"))
	set(t, s.Store, never, "", forever)
	set(t, s.Store, shorter, "", e)
	set(t, s.Store, shorter, "", s.shortEntry("c"))
	set(t, s.Store, key, "", s.shortEntry("d"))
	s.Advance(over)
	wantMissing(t, s.Store, key)
	wantMissing(t, s.Store, shorter)
	wantEntry(t, s.Store, later, e)
	wantEntry(t, s.Store, never, forever)
	set(t, s.Store, key, "", e) // as if it had never been there
	wantEntry(t, s.Store, key, e)
}

// testExpiryExact: an entry exists until it expires, no matter how often it is read. It needs a
// clock that can be moved.
func testExpiryExact(t *testing.T, s Subject) {
	before := s.Now()
	if s.Advance(0); s.Now().Sub(before) > 0 {
		t.Skip("the clock cannot be moved")
	}
	key, e := s.newKey(), s.shortEntry("a")
	set(t, s.Store, key, "", e)
	rounded, r := s.newKey(), e
	r.Expires = r.Expires.Add(-time.Microsecond)
	set(t, s.Store, rounded, "", r)
	wantEntry(t, s.Store, rounded, r)
	for _, step := range []time.Duration{soon - time.Millisecond, time.Millisecond / 2} {
		s.Advance(step)
		set(t, s.Store, s.newKey(), "", s.entry("b")) // the store may sweep
		wantEntry(t, s.Store, key, e)
	}
	s.Advance(time.Millisecond / 2)
	wantMissing(t, s.Store, key)
	wantMissing(t, s.Store, rounded)
}

// testExpired: storing an expired entry removes the old one.
func testExpired(t *testing.T, s Subject) {
	key := s.newKey()
	for _, expires := range []time.Time{s.Now(), s.Now().Add(-time.Hour), time.Unix(0, 0), time.Unix(-1, 0)} {
		set(t, s.Store, key, "", s.entry("a"))
		set(t, s.Store, key, "", tokens.Entry{Value: []byte("b"), Expires: expires})
		wantMissing(t, s.Store, key)
	}
}

// testExtend stores an entry again with a later expiry. The store may then sweep at the first
// expiry.
func testExtend(t *testing.T, s Subject) {
	key, index, e := s.newKey(), rand.Text(), s.entry("a")
	set(t, s.Store, key, index, s.shortEntry("a"))
	set(t, s.Store, key, index, e)
	s.Advance(over)
	for range 10 {
		set(t, s.Store, s.newKey(), "", s.entry("b"))
	}
	wantEntry(t, s.Store, key, e)
	wantDeleted(t, s.Store, index, 1)
}

func testRemove(t *testing.T, s Subject) {
	key, other, e := s.newKey(), s.newKey(), s.entry("a")
	set(t, s.Store, key, "", e)
	set(t, s.Store, other, "", e)
	for range 2 { // the second time it is missing
		remove(t, s.Store, key)
		wantMissing(t, s.Store, key)
	}
	wantEntry(t, s.Store, other, e)
	set(t, s.Store, key, "", e)
	wantEntry(t, s.Store, key, e)
}

func testCheck(t *testing.T, s Subject) { wantNil(t, s.Store.Check(t.Context())) }

// testReopen: what is stored, expired or removed stays so. Volatile entries may be lost.
func testReopen(t *testing.T, s Subject) {
	if s.Reopen == nil || s.prefix != "" {
		t.Skip("the store keeps nothing when it is closed")
	}
	key, never, index, e := s.newKey(), s.newKey(), rand.Text(), s.entry("a")
	expired, removed, revoked, revokedIndex := s.newKey(), s.newKey(), s.newKey(), rand.Text()
	set(t, s.Store, key, index, e)
	set(t, s.Store, never, index, tokens.Entry{Value: []byte{}})
	set(t, s.Store, expired, index, s.shortEntry("a"))
	set(t, s.Store, removed, index, e)
	remove(t, s.Store, removed)
	set(t, s.Store, revoked, revokedIndex, e)
	wantDeleted(t, s.Store, revokedIndex, 1)
	s.Advance(over)
	again := s.Reopen(t)
	t.Cleanup(func() { _ = again.Close() })
	wantEntry(t, again, key, e)
	wantEntry(t, again, never, tokens.Entry{Value: []byte{}})
	for _, key := range []string{expired, removed, revoked} {
		wantMissing(t, again, key)
	}
	wantDeleted(t, again, index, 2)
	wantMissing(t, again, key)
}

func testContextEnded(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range s.callAll(ctx) {
		if !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want ErrUnavailable and context.Canceled", name, err)
		}
	}
}

func testClosed(t *testing.T, s Subject) {
	set(t, s.Store, s.newKey(), "", s.entry("a"))
	for range 2 {
		if err := s.Store.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	for name, err := range s.callAll(t.Context()) {
		if !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
	}
}

// callAll calls every method but Close and returns their errors.
func (s Subject) callAll(ctx context.Context) map[string]error {
	_, errGet := s.Store.Get(ctx, s.newKey())
	_, errIndex := s.Store.DeleteIndex(ctx, rand.Text())
	return map[string]error{
		"Get":         errGet,
		"Update":      s.Store.Update(ctx, s.newKey(), "", to(s.entry("a"))),
		"DeleteIndex": errIndex,
		"Check":       s.Store.Check(ctx),
	}
}

// newKey returns a unique key, because the data may be shared.
func (s Subject) newKey() string { return s.prefix + "test/" + rand.Text() }

// entry returns an entry that is valid during the test.
func (s Subject) entry(value string) tokens.Entry {
	return tokens.Entry{Value: []byte(value), Expires: s.Now().Add(time.Hour)}
}

func (s Subject) shortEntry(value string) tokens.Entry {
	return tokens.Entry{Value: []byte(value), Expires: s.Now().Add(soon)}
}

// to returns the change of any entry to e.
func to(e tokens.Entry) func(tokens.Entry) (tokens.Entry, error) {
	return func(tokens.Entry) (tokens.Entry, error) { return e, nil }
}

func set(t *testing.T, s tokens.Store, key, index string, e tokens.Entry) {
	t.Helper()
	if err := s.Update(t.Context(), key, index, to(e)); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func remove(t *testing.T, s tokens.Store, key string) {
	t.Helper()
	set(t, s, key, "", tokens.Entry{})
}

func wantEntry(t *testing.T, s tokens.Store, key string, want tokens.Entry) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	checkEntry(t, got, want)
}

// checkEntry compares two entries. The expiry of got may be rounded up to a millisecond.
func checkEntry(t *testing.T, got, want tokens.Entry) {
	t.Helper()
	if (got.Value == nil) != (want.Value == nil) || !bytes.Equal(got.Value, want.Value) {
		t.Fatalf("the value is %.200q, want %.200q", got.Value, want.Value)
	}
	late := got.Expires.Sub(want.Expires)
	if got.Expires.IsZero() != want.Expires.IsZero() || late < 0 || late >= time.Millisecond {
		t.Fatalf("the entry expires at %v, want %v", got.Expires, want.Expires)
	}
}

func wantMissing(t *testing.T, s tokens.Store, key string) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if err != nil || got.Value != nil || !got.Expires.IsZero() {
		t.Fatalf("Get: got %.200q, %v and %v, want the zero Entry", got.Value, got.Expires, err)
	}
}

func wantNil(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
