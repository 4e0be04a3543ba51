package queue

import "sync"

// Pool lends parts of a common amount to owners that cannot wait.
//
// An owner may hold as much as is left for others: alone it is lent half, beside another one a third,
// and so on. So there is always something left for an owner that holds nothing yet.
//
// It is safe for concurrent use. Owners take memory only while they hold something.
type Pool struct {
	capacity int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by owner
}

// NewPool returns a Pool of capacity.
func NewPool(capacity int64) *Pool { return &Pool{capacity: capacity, held: make(map[string]int64)} }

// Take reports whether n was lent to owner, who must give it back.
func (p *Pool) Take(owner string, n int64) bool { return p.TakeWithin(owner, n, p.capacity) }

// TakeWithin is Take for an owner that may hold at most limit.
func (p *Pool) TakeWithin(owner string, n, limit int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.held[owner] + n; held > min(limit, p.capacity-p.used-n) {
		return false
	}
	p.used += n
	p.held[owner] += n
	return true
}

// Give returns n that Take lent to owner.
func (p *Pool) Give(owner string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.held[owner] -= n; p.held[owner] == 0 {
		delete(p.held, owner)
	}
}

// Used returns how much is lent.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
