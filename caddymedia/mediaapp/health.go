package mediaapp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Health is what the checks of a storage have found.
type Health struct {
	// Err is why the storage cannot be used; nil if it can.
	Err error
	// Since is when that began, Checked when the last check ended, and Took how long it
	// took. All are zero before the first check has ended, of this configuration or of one
	// before it with the same storage.
	Since, Checked time.Time
	Took           time.Duration
	// Features are what the storage is known to guarantee.
	Features storagedrivers.Features
}

const (
	checkEvery     = time.Minute
	checkAgain     = 10 * time.Second // while it fails
	maxCheckTime   = time.Minute
	msgUnusable    = "storage cannot be used now"
	msgUsableAgain = "storage can be used again"
)

// health keeps the state of the storages by their names.
type health struct {
	mu     sync.Mutex
	states map[string]Health
	// earlier are those that the configuration before had of storages that stay as they are.
	earlier map[string]Health
	// failed are those that could not be used in the previous configuration, on whatever backend.
	failed map[string]Health
	// doubts has a channel for each storage, which is sent to when an operation fails.
	doubts map[string]chan struct{}
	now    func() time.Time
}

func newHealth() *health {
	return &health{states: map[string]Health{}, doubts: map[string]chan struct{}{}, now: time.Now} //nolint:forbidigo // the clock's one default
}

// doubted returns the channel on which failed operations of a storage are announced.
func (h *health) doubted(name string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doubts[name] == nil {
		h.doubts[name] = make(chan struct{}, 1)
	}
	return h.doubts[name]
}

// observe returns the function that counts the operations of a storage. A failed one brings its next
// check forward.
func (a *App) observe(name string) func(op string, took time.Duration, err error) {
	doubted := a.health.doubted(name)
	return func(op string, took time.Duration, err error) {
		a.lasting().metrics.operation(name, op, took, err)
		if op == "check" || !storagedrivers.Fault(op, err) {
			return
		}
		select {
		case doubted <- struct{}{}:
		default: // a check is due already
		}
	}
}

// note keeps what a check that began at start has found, and gives what was told before: what
// fails is told anew in every configuration, and that it does no more also across a reload.
func (h *health) note(name string, start time.Time, err error, features storagedrivers.Features) (before Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before = h.states[name]
	state := Health{Err: err, Since: before.Since, Checked: h.now(), Features: features}
	state.Took = state.Checked.Sub(start)
	if before.Checked.IsZero() || (err == nil) != (before.Err == nil) {
		state.Since = state.Checked
	}
	earlier := h.earlier[name]
	if before.Checked.IsZero() && !earlier.Checked.IsZero() && (err == nil) == (earlier.Err == nil) {
		state.Since = earlier.Since
	}
	h.states[name] = state
	if before.Checked.IsZero() && err == nil {
		return h.failed[name]
	}
	return before
}

// inherit takes over the states of storages whose settings are the same in the app of the previous
// configuration, and which of all storages that app could not use.
func (a *App) inherit(before *App) {
	a.health.earlier, a.health.failed = map[string]Health{}, map[string]Health{}
	for name, state := range before.Health() {
		if state.Err != nil {
			a.health.failed[name] = state
		}
		if key, ok := a.poolKeys[name]; ok && key == before.poolKeys[name] {
			a.health.earlier[name] = state
		}
	}
}

// Health gives the state of every storage by its name; of one that was not checked yet
// the zero value.
func (a *App) Health() map[string]Health {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	states := make(map[string]Health, len(a.storages))
	for name := range a.storages {
		state, checked := a.health.states[name]
		if !checked {
			state = a.health.earlier[name]
		}
		states[name] = state
	}
	return states
}

// watch checks a storage again and again until ctx ends. Nothing waits for it. After a failed
// operation it does not wait for the end of the interval.
func (a *App) watch(ctx context.Context, name string, storage *storagedrivers.Storage) {
	every := time.Duration(a.HealthInterval)
	if every <= 0 {
		every = checkEvery
	}
	doubted := a.health.doubted(name)
	for ctx.Err() == nil {
		usable := a.examine(ctx, name, storage)
		soon := min(every, checkAgain)
		select {
		case <-ctx.Done():
		case <-time.After(soon):
		}
		if !usable {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(every - soon):
		case <-doubted:
		}
	}
}

// examine checks a storage once and tells whether it can be used. What changes goes to
// the log.
func (a *App) examine(ctx context.Context, name string, storage *storagedrivers.Storage) bool {
	bounded, cancel := context.WithTimeout(ctx, maxCheckTime)
	defer cancel()
	start := a.health.now()
	err := storage.Check(bounded)
	if ctx.Err() != nil || errors.Is(err, storagedrivers.ErrClosed) {
		return true // nobody wants to know any more
	}
	before := a.health.note(name, start, err, storage.Features())
	a.metrics.up(name, err == nil)
	if (err == nil) != (before.Err == nil) {
		a.events.health(name, err == nil, a.Health()[name].Since)
	}
	switch {
	case err != nil && before.Err == nil:
		a.log.Error(msgUnusable, "storage", name, "error", err)
	case err == nil && before.Err != nil:
		a.log.Info(msgUsableAgain, "storage", name, "after", a.health.now().Sub(before.Since))
	}
	return err == nil
}
