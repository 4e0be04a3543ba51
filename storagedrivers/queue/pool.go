package queue

import "sync"

// Party is a caller that shares a capacity.
type Party struct {
	// Owner is the account or address that the capacity counts for.
	Owner string
	// Ticket, if set, identifies a ticket of the owner, and Most is the most that may be held with it.
	// 0 means no limit.
	Ticket string
	Most   int64
	// Client and Network, if set, are the addresses that count as the client of one of many callers
	// of the owner, and those of its network. Such callers leave a reserve to the owner itself, and
	// share the rest by client and network, see [HasRoom].
	Client, Network string
}

// Request returns a request of the party.
func (p Party) Request() Request {
	return Request{Owner: p.Owner, Client: p.Client, Network: p.Network}
}

// Held are parts of a capacity that an owner holds, and those of them that one ticket, one client and
// its network hold.
type Held struct{ Owner, Ticket, Client, Network int64 }

const (
	// ownerReserve is the share of a capacity that clients leave to its owner: a tenth.
	ownerReserve = 10
	// clientShare is how many times as much a client leaves free: it may have a third of the
	// capacity if it is alone. A network may have half of it.
	clientShare = 2
)

// HasRoom reports whether a party may have n more of a capacity, of which held is in use. An owner
// may have all of it. Clients leave a tenth to it. A client may have half as much as it leaves
// free, and its network as much as it leaves free, so a few of them cannot shut out the next one.
// One without any may have whatever fits. A ticket may have its most.
func HasRoom(p Party, capacity int64, held Held, n int64) bool {
	if p.Most > 0 && held.Ticket+n > p.Most {
		return false
	}
	free := capacity - held.Owner
	if p.Client == "" {
		return n <= free
	}
	free -= capacity / ownerReserve
	return n <= free &&
		(held.Client == 0 || held.Client+n <= free/clientShare) &&
		(held.Network == 0 || held.Network+n <= free)
}

// Pool lends parts of a capacity to parties that cannot wait.
//
// An owner may hold at most as much as stays free: half of the capacity if alone, a third beside
// another owner, and so on. So there is always something left for a new owner. The clients of an
// owner share that by [HasRoom].
//
// A Pool is safe for concurrent use. Parties use memory only while they hold something.
type Pool struct {
	capacity int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by owner, and by the clients and networks of an owner
}

// NewPool returns a Pool of capacity.
func NewPool(capacity int64) *Pool { return &Pool{capacity: capacity, held: make(map[string]int64)} }

// Acquire lends n to a party, if possible, and reports whether it did. The caller must release it.
func (p *Pool) Acquire(party Party, n int64) bool { return p.AcquireWithin(party, n, p.capacity) }

// AcquireWithin is Acquire for an owner that may hold at most limit.
func (p *Pool) AcquireWithin(party Party, n, limit int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := Held{p.held[party.Owner], p.held[party.ticket()], p.held[party.client()], p.held[party.network()]}
	limit = min(limit, (p.capacity-p.used+held.Owner)/2)
	if !HasRoom(party, limit, held, n) {
		return false
	}
	p.lend(party, n)
	return true
}

// Release returns n that was lent to a party.
func (p *Pool) Release(party Party, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lend(party, -n)
}

// lend adds n to the parts of a party.
func (p *Pool) lend(party Party, n int64) {
	p.used += n
	names := []string{party.Owner, party.ticket(), party.client(), party.network()}
	if party.Client == "" {
		names = names[:1]
	}
	for _, name := range names {
		if p.held[name] += n; p.held[name] == 0 {
			delete(p.held, name)
		}
	}
}

// ticket, client and network return names that no other owner, ticket, client or network has.
func (p Party) ticket() string  { return p.Owner + "\nticket " + p.Ticket }
func (p Party) client() string  { return p.Owner + "\nclient " + p.Client }
func (p Party) network() string { return p.Owner + "\nnetwork " + p.Network }

// Used returns the amount on loan.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
