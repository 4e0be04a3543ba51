package tokentest

import (
	"sync"
	"time"
)

// Clock is a clock that a test moves. The zero Clock is ready and starts at a fixed time.
type Clock struct {
	mu      sync.Mutex
	elapsed time.Duration
}

// Now implements time.Now.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC).Add(c.elapsed)
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elapsed += d
}
