package queue

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestPool(t *testing.T) {
	t.Parallel()
	p := NewPool(12)
	for _, c := range []struct {
		owner string
		want  int
	}{{"a", 6}, {"b", 3}, {"c", 1}, {"d", 1}} {
		n := 0
		for p.Acquire(Party{Owner: c.owner}, 1) {
			n++
		}
		test.Equal(t, n, c.want, c.owner)
	}
	for owner, n := range map[string]int64{"a": 6, "b": 3, "c": 1, "d": 1} {
		p.Release(Party{Owner: owner}, n)
	}
	if p.Used() != 0 || len(p.held) != 0 {
		t.Errorf("%d are lent to %d owners in the end", p.Used(), len(p.held))
	}
	if a := (Party{Owner: "a"}); p.Acquire(a, 7) || !p.Acquire(a, 6) {
		t.Error("one owner may take a half, and no more")
	}
}

// TestPoolWithin: an owner leaves capacity to others, whatever its own limit is.
func TestPoolWithin(t *testing.T) {
	t.Parallel()
	p := NewPool(8)
	take := func(owner string, limit int64, want int) {
		t.Helper()
		n := 0
		for p.AcquireWithin(Party{Owner: owner}, 1, limit) {
			n++
		}
		test.Equal(t, n, want, owner, "took")
	}
	take("greedy", 100, 4)
	take("modest", 1, 1)
	take("late", 100, 1)
	p.Release(Party{Owner: "greedy"}, 4)
	take("greedy", 3, 3)
	p.Release(Party{Owner: "greedy"}, 3)
	p.Release(Party{Owner: "modest"}, 1)
	p.Release(Party{Owner: "late"}, 1)
	if len(p.held) != 0 || p.Used() != 0 {
		t.Errorf("left: %v, %d used", p.held, p.Used())
	}
}

// TestPoolClients: clients of an owner leave room to the next client and to the owner, and the same
// again after all is released.
func TestPoolClients(t *testing.T) {
	t.Parallel()
	p := NewPool(1000)
	for range 2 {
		all := map[Party]int64{}
		take := func(party Party, want int64) {
			t.Helper()
			for p.AcquireWithin(party, 1, 100) {
				all[party]++
			}
			test.Equal(t, all[party], want, party, "took")
		}
		take(Party{Owner: "a", Client: "192.0.2.1", Network: "192.0.2.0"}, 30)
		take(Party{Owner: "a", Client: "192.0.2.2", Network: "192.0.2.0"}, 15) // their network has half
		take(Party{Owner: "a", Client: "192.0.2.3", Network: "192.0.2.0"}, 0)
		take(Party{Owner: "a", Client: "198.51.100.1", Network: "198.51.100.0"}, 15)
		take(Party{Owner: "a", Client: "203.0.113.1", Network: "203.0.113.0"}, 10)
		take(Party{Owner: "b", Client: "192.0.2.1", Network: "192.0.2.0"}, 30)
		take(Party{Owner: "a"}, 30)
		for party, n := range all {
			p.Release(party, n)
		}
		if p.Used() != 0 || len(p.held) != 0 {
			t.Errorf("%d are lent to %d parties in the end", p.Used(), len(p.held))
		}
	}
}

// TestPoolTickets: each ticket has its own bound, and releases what it held.
func TestPoolTickets(t *testing.T) {
	t.Parallel()
	p := NewPool(1000)
	for range 2 {
		held := map[Party]int64{}
		for _, ticket := range []string{"1", "2"} {
			party := Party{Owner: "a", Ticket: ticket, Most: 3, Client: "192.0.2.1", Network: "192.0.2.0"}
			for p.Acquire(party, 1) {
				held[party]++
			}
			test.Equal(t, held[party], 3, "ticket", ticket, "holds")
		}
		for party, n := range held {
			party.Most = 0 // another number by then
			p.Release(party, n)
		}
		if p.Used() != 0 || len(p.held) != 0 {
			t.Errorf("%d are lent to %d parties in the end", p.Used(), len(p.held))
		}
	}
}

// TestHasRoom: the bounds of a client, its network and the owner.
func TestHasRoom(t *testing.T) {
	t.Parallel()
	visitor := Party{Owner: "a", Client: "192.0.2.1", Network: "192.0.2.0"}
	for _, c := range []struct {
		name     string
		party    Party
		capacity int64
		held     Held
		n        int64
		want     bool
	}{
		{"all of it", Party{Owner: "a"}, 100, Held{}, 100, true},
		{"too much", Party{Owner: "a"}, 100, Held{Owner: 1}, 100, false},
		{"reserve of the owner", visitor, 100, Held{}, 91, false},
		{"a client without any", visitor, 100, Held{}, 90, true},
		{"a client with some", visitor, 100, Held{Owner: 10, Client: 10, Network: 10}, 31, false},
		{"half of what it leaves free", visitor, 100, Held{Owner: 10, Client: 10, Network: 10}, 30, true},
		{"a network with more than it leaves free", visitor, 100, Held{Owner: 45, Network: 45}, 1, false},
		{"a small capacity", visitor, 1, Held{}, 1, true},
		{"the most of a ticket", Party{Owner: "a", Most: 3}, 100, Held{Ticket: 2}, 1, true},
		{"more than that", Party{Owner: "a", Most: 3}, 100, Held{Ticket: 2}, 2, false},
	} {
		test.Equal(t, HasRoom(c.party, c.capacity, c.held, c.n), c.want, c.name)
	}
}
