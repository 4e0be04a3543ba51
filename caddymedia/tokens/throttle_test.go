package tokens

import (
	"errors"
	"net/netip"
	"testing"
	"time"
)

// throttleClock is a clock that a test moves by hand.
type throttleClock struct{ time.Time }

func (c *throttleClock) now() time.Time          { return c.Time }
func (c *throttleClock) advance(d time.Duration) { c.Time = c.Add(d) }

func newTestThrottle(entries int) (*Throttle, *throttleClock) {
	clock := &throttleClock{time.Unix(1_900_000_000, 0)}
	return NewThrottle(ThrottleOptions{MaxEntries: entries, Now: clock.now}), clock
}

// takes goes on until it is refused, and says how often it was not and how long to wait.
func takes(t *testing.T, th *Throttle, client netip.Addr, key string) (n int, wait time.Duration) {
	t.Helper()
	for ; ; n++ {
		_, err := th.take(client, loginKey{name: key})
		if throttled, ok := errors.AsType[*ThrottledError](err); ok {
			return n, throttled.RetryAfter
		}
		if err != nil || n > 1000 {
			t.Fatalf("take %d: %v", n, err)
		}
	}
}

func TestThrottleRates(t *testing.T) {
	t.Parallel()
	th, clock := newTestThrottle(0)
	client := netip.MustParseAddr("192.0.2.1")
	if n, wait := takes(t, th, client, "a"); n != 10 || wait != 6*time.Second {
		t.Errorf("at first: %d, then wait %v", n, wait)
	}
	clock.advance(6*time.Second - 1)
	if n, wait := takes(t, th, client, "a"); n != 0 || wait != 1 {
		t.Errorf("too early: %d, then wait %v", n, wait)
	}
	clock.advance(1)
	if n, _ := takes(t, th, client, "a"); n != 1 {
		t.Errorf("after the wait: %d", n)
	}
	clock.advance(time.Hour)
	if n, _ := takes(t, th, client, "a"); n != 10 {
		t.Errorf("after an hour: %d", n)
	}
}

// TestThrottleKey spreads the failures for one account over many clients.
func TestThrottleKey(t *testing.T) {
	t.Parallel()
	th, _ := newTestThrottle(0)
	client := netip.MustParseAddr("192.0.2.1")
	total := 0
	for range 5 {
		client = client.Next()
		n, _ := takes(t, th, client, "a")
		total += n
	}
	if total != 30 {
		t.Errorf("%d failures for one account", total)
	}
	if n, _ := takes(t, th, client, "b"); n != 10 {
		t.Errorf("attempts that the account's limit refused were charged to the client: %d are left", n)
	}
}

func TestThrottleGiveBack(t *testing.T) {
	t.Parallel()
	th, _ := newTestThrottle(0)
	client := netip.MustParseAddr("192.0.2.1")
	for range 100 {
		giveBack, err := th.take(client, loginKey{name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		giveBack()
	}
	if n, _ := takes(t, th, client, "a"); n != 10 {
		t.Errorf("%d are left after 100 that were given back", n)
	}
}

func TestThrottleClients(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:0:0:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%a", "fe80::1%b", true},
		{"0.0.0.0", "::", false},
		{"", "", true},
		{"", "0.0.0.0", false},
	} {
		a, _ := netip.ParseAddr(test.a)
		b, _ := netip.ParseAddr(test.b)
		if same := siteOf(a) == siteOf(b); same != test.same {
			t.Errorf("%q and %q: the same client %v, want %v", test.a, test.b, same, test.same)
		}
	}
	th, _ := newTestThrottle(0)
	if n, _ := takes(t, th, netip.Addr{}, "a"); n != 10 {
		t.Errorf("unknown clients may fail %d times together", n)
	}
}

// TestThrottleMemory lets more clients fail than it remembers: it forgets quiet ones before the noisy one.
func TestThrottleMemory(t *testing.T) {
	t.Parallel()
	th, clock := newTestThrottle(100)
	noisy, client := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.1")
	takes(t, th, noisy, "noisy")
	for range 1000 {
		client = client.Next()
		if _, err := th.take(client, loginKey{name: client.String()}); err != nil {
			t.Fatal(err)
		}
		if len(th.clients.fullAt) > 100 || len(th.keys.fullAt) > 100 {
			t.Fatalf("it remembers %d clients and %d keys", len(th.clients.fullAt), len(th.keys.fullAt))
		}
	}
	if n, _ := takes(t, th, noisy, "noisy"); n != 0 {
		t.Errorf("the noisy client was forgotten: %d", n)
	}
	clock.advance(time.Hour)
	for range 100 {
		client = client.Next()
		if _, err := th.take(client, loginKey{name: "a"}); err != nil {
			t.Fatal(err)
		}
		clock.advance(time.Minute)
	}
	if n := len(th.clients.fullAt); n > 10 {
		t.Errorf("%d clients are remembered though all are quiet", n)
	}
}

func BenchmarkThrottle(b *testing.B) {
	th := NewThrottle(ThrottleOptions{})
	client := netip.MustParseAddr("10.0.0.0")
	for b.Loop() {
		client = client.Next()
		_, _ = th.take(client, loginKey{decoy: true, name: client.String()})
	}
}
