package queue

import "sync"

// Pool lends parts of a capacity to owners that cannot wait.
//
// An owner may hold at most as much as stays free: half of the capacity if alone, a third beside
// another owner, and so on. So there is always something left for a new owner.
//
// A Pool is safe for concurrent use. Owners use memory only while they hold something.
type Pool struct {
	capacity int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by owner
}

// NewPool returns a Pool of capacity.
func NewPool(capacity int64) *Pool { return &Pool{capacity: capacity, held: make(map[string]int64)} }

// Acquire lends n to owner, if possible, and reports whether it did. The caller must release it.
func (p *Pool) Acquire(owner string, n int64) bool { return p.AcquireWithin(owner, n, p.capacity) }

// AcquireWithin is Acquire for an owner that may hold at most limit.
func (p *Pool) AcquireWithin(owner string, n, limit int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.held[owner] + n; held > min(limit, p.capacity-p.used-n) {
		return false
	}
	p.used += n
	p.held[owner] += n
	return true
}

// Release returns n that was lent to owner.
func (p *Pool) Release(owner string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.held[owner] -= n; p.held[owner] == 0 {
		delete(p.held, owner)
	}
}

// Used returns the amount on loan.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
