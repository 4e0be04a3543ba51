package access

import (
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"
)

// throttleClock is a clock that a test moves.
type throttleClock struct{ time.Time }

func (c *throttleClock) now() time.Time          { return c.Time }
func (c *throttleClock) advance(d time.Duration) { c.Time = c.Add(d) }

func newTestThrottle(entries int) (*Throttle, *throttleClock) {
	clock := &throttleClock{time.Unix(1_900_000_000, 0)}
	return NewThrottle(ThrottleOptions{MaxEntries: entries, Now: clock.now}), clock
}

// fails makes failed logins until one is refused. It returns their number, and how long to wait.
func fails(t *testing.T, th *Throttle, client netip.Addr, key string) (n int, wait time.Duration) {
	t.Helper()
	for ; ; n++ {
		_, err := th.start(client, loginKey{name: key})
		if throttled, ok := errors.AsType[*ThrottledError](err); ok {
			return n, throttled.RetryAfter
		}
		if err != nil || n > 1000 {
			t.Fatalf("login %d: %v", n, err)
		}
	}
}

func TestThrottleRates(t *testing.T) {
	t.Parallel()
	th, clock := newTestThrottle(0)
	client := netip.MustParseAddr("192.0.2.1")
	if n, wait := fails(t, th, client, "a"); n != 10 || wait != 6*time.Second {
		t.Errorf("at first: %d, then wait %v", n, wait)
	}
	clock.advance(6*time.Second - 1)
	if n, wait := fails(t, th, client, "a"); n != 0 || wait != 1 {
		t.Errorf("too early: %d, then wait %v", n, wait)
	}
	clock.advance(1)
	if n, _ := fails(t, th, client, "a"); n != 1 {
		t.Errorf("after the wait: %d", n)
	}
	clock.advance(time.Hour)
	if n, _ := fails(t, th, client, "a"); n != 10 {
		t.Errorf("after an hour: %d", n)
	}
}

// TestThrottleKey spreads the failures of one account over many clients.
func TestThrottleKey(t *testing.T) {
	t.Parallel()
	th, _ := newTestThrottle(0)
	client := netip.MustParseAddr("192.0.2.1")
	total := 0
	for range 5 {
		client = client.Next()
		n, _ := fails(t, th, client, "a")
		total += n
	}
	if total != 30 {
		t.Errorf("%d failures for one account", total)
	}
	if n, _ := fails(t, th, client, "b"); n != 10 {
		t.Errorf("attempts refused by the account's limit were charged to the client: %d left", n)
	}
}

func TestThrottleAbandon(t *testing.T) {
	t.Parallel()
	th, _ := newTestThrottle(0)
	client := netip.MustParseAddr("192.0.2.1")
	for range 100 {
		attempt, err := th.start(client, loginKey{name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		attempt.abandon()
	}
	if n, _ := fails(t, th, client, "a"); n != 10 {
		t.Errorf("%d are left after 100 that were not checked", n)
	}
}

// succeeds makes a successful login.
func succeeds(t *testing.T, th *Throttle, client netip.Addr, key string) {
	t.Helper()
	attempt, err := th.start(client, loginKey{name: key})
	if err != nil {
		t.Fatal(err)
	}
	attempt.succeed()
}

// TestThrottleKnown: unknown clients and neighbours use up every limit of an account. It can still
// log in from its site, where failures are limited too.
func TestThrottleKnown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ home, neighbour, sameNetwork string }{
		{"192.0.2.1", "192.0.2.1", "192.0.2.77"},
		{"2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:2::1"},
	} {
		th, clock := newTestThrottle(0)
		home := netip.MustParseAddr(test.home)
		succeeds(t, th, home, "shop")
		guess := func() { // uses up the limit of the account
			for n := range 4 {
				fails(t, th, netip.AddrFrom4([4]byte{10, 0, byte(n), 1}), "shop")
			}
		}
		guess()
		if n, _ := fails(t, th, netip.MustParseAddr("203.0.113.1"), "shop"); n != 0 {
			t.Errorf("%s: the limit of the account is not used up: %d", test.home, n)
		}
		fails(t, th, netip.MustParseAddr(test.neighbour), "blog") // the limit of the client
		succeeds(t, th, home, "shop")
		succeeds(t, th, netip.MustParseAddr(test.sameNetwork), "shop")
		if n, wait := fails(t, th, home, "shop"); n != 10 || wait <= 0 {
			t.Errorf("%s: %d failures, then wait %v", test.home, n, wait)
		}
		clock.advance(31 * 24 * time.Hour)
		guess()
		if n, _ := fails(t, th, home, "shop"); n != 0 {
			t.Errorf("%s: %d failures after a month", test.home, n)
		}
	}
}

// TestThrottleSuccess: successful logins cost nothing.
func TestThrottleSuccess(t *testing.T) {
	t.Parallel()
	th, _ := newTestThrottle(0)
	client := netip.MustParseAddr("192.0.2.1")
	succeeds(t, th, client, "a") // not known yet
	for range 50 {
		succeeds(t, th, client, "a")
	}
	if n, _ := fails(t, th, client, "a"); n != 10 {
		t.Errorf("%d failures are left after 50 logins", n)
	}
	if n, _ := fails(t, th, client, "b"); n != 10 {
		t.Errorf("%d failures of another account are left", n)
	}
}

// TestThrottleKnownSites: an account that logs in from many clients does not displace the sites of
// another.
func TestThrottleKnownSites(t *testing.T) {
	t.Parallel()
	th, clock := newTestThrottle(0)
	home := netip.MustParseAddr("192.0.2.1")
	succeeds(t, th, home, "quiet")
	for n := range 1000 {
		succeeds(t, th, netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 1}), "busy")
		clock.advance(time.Minute)
	}
	if n := len(th.known[loginKey{name: "busy"}]); n != maxKnownSites {
		t.Errorf("%d sites of one account are remembered", n)
	}
	if _, ok := th.known.find(loginKey{name: "quiet"}, sitesOf(home), th.now()); !ok {
		t.Error("a quiet account is forgotten")
	}
}

// TestThrottleNetworks spreads failures over the clients of one network.
func TestThrottleNetworks(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(n int) netip.Addr{
		"a /24": func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) },
		"a /48": func(n int) netip.Addr {
			return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 7: byte(n), 15: 1})
		},
	} {
		th, _ := newTestThrottle(0)
		total := 0
		for n := range 200 {
			if _, err := th.start(client(n), loginKey{name: strconv.Itoa(n)}); err == nil {
				total++
			}
		}
		if total != 50 {
			t.Errorf("%s: %d failures", name, total)
		}
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
		if same := sitesOf(a)[0] == sitesOf(b)[0]; same != test.same {
			t.Errorf("%q and %q: the same client %v, want %v", test.a, test.b, same, test.same)
		}
	}
	th, _ := newTestThrottle(0)
	if n, _ := fails(t, th, netip.Addr{}, "a"); n != 10 {
		t.Errorf("unknown clients may fail %d times together", n)
	}
}

// TestThrottleMemory: with too many failing clients, those with few failures are forgotten first.
func TestThrottleMemory(t *testing.T) {
	t.Parallel()
	th, clock := newTestThrottle(100)
	noisy, client := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.1")
	fails(t, th, noisy, "noisy")
	for n := range 1000 {
		client = netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 1})
		if _, err := th.start(client, loginKey{name: client.String()}); err != nil {
			t.Fatal(err)
		}
		if len(th.clients.fullAt) > 100 || len(th.networks.fullAt) > 100 || len(th.keys.fullAt) > 100 {
			t.Fatalf("it remembers %d clients and %d keys", len(th.clients.fullAt), len(th.keys.fullAt))
		}
	}
	if n, _ := fails(t, th, noisy, "noisy"); n != 0 {
		t.Errorf("the noisy client was forgotten: %d", n)
	}
	clock.advance(time.Hour)
	for range 100 {
		client = client.Next()
		if _, err := th.start(client, loginKey{name: "a"}); err != nil {
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
		_, _ = th.start(client, loginKey{decoy: true, name: client.String()})
	}
}
