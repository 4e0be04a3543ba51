package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Health is the result of the checks of a storage.
type Health struct {
	// Err is the error of the last check; nil if the storage is reachable.
	Err error
	// Since is when the storage became reachable or unreachable. Checked is when the last check
	// ended, and Took its duration. All are zero before the first check of the storage, in this
	// service or in the previous one with the same settings.
	Since, Checked time.Time
	Took           time.Duration
	// Features are the guarantees of the storage, as far as they are known.
	Features storagedrivers.Features
	// Space is that of the backend at the last check. It is zero if the check failed, or if the
	// backend does not report it.
	Space storagedrivers.Space
}

const (
	defaultHealthInterval = time.Minute
	retryInterval         = 10 * time.Second // after a failed check
	maxCheckTime          = time.Minute
	msgUnreachable        = "storage unreachable"
	msgReachable          = "storage reachable again"
)

// health holds the states of the storages by name.
type health struct {
	interval time.Duration
	now      func() time.Time
	// settings of the storages; constant after New.
	settings map[string]string

	// ctx is the context of the checks, which cancel ends.
	ctx    context.Context //nolint:containedctx // it ends with the service
	cancel context.CancelFunc

	mu     sync.Mutex
	states map[string]Health
	// checked is closed, and replaced, after every check.
	checked chan struct{}
	// earlier are the states, in the previous service, of storages with the same settings.
	earlier map[string]Health
	// failed are the states, in the previous service, of unreachable storages with any settings.
	failed map[string]Health
	// failures has a channel for each storage. It receives when an operation fails.
	failures map[string]chan struct{}
}

func newHealth(interval time.Duration, now func() time.Time) *health {
	if interval <= 0 {
		interval = defaultHealthInterval
	}
	h := &health{
		interval: interval, now: now, settings: map[string]string{}, states: map[string]Health{},
		failures: map[string]chan struct{}{}, checked: make(chan struct{}),
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// add adds a storage. The returned function makes the next check of the storage due now.
func (h *health) add(name, settings string) (failed func()) {
	failures := make(chan struct{}, 1)
	h.settings[name], h.failures[name] = settings, failures
	return func() {
		select {
		case failures <- struct{}{}:
		default: // a check is due already
		}
	}
}

// inherit takes the states of the previous service.
func (h *health) inherit(previous *health) {
	h.earlier, h.failed = map[string]Health{}, map[string]Health{}
	for name, state := range previous.all() {
		if state.Err != nil {
			h.failed[name] = state
		}
		if settings, ok := h.settings[name]; ok && settings == previous.settings[name] {
			h.earlier[name] = state
		}
	}
}

// note records the result of a check, but Since, which it finds. It returns the new state, and the
// one that was logged before. Every service logs a failure once; the next service may log its end.
func (h *health) note(name string, result Health) (state, before Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := result.Err
	before, state = h.states[name], result
	state.Since = before.Since
	if before.Checked.IsZero() || (err == nil) != (before.Err == nil) {
		state.Since = state.Checked
	}
	earlier := h.earlier[name]
	if before.Checked.IsZero() && !earlier.Checked.IsZero() && (err == nil) == (earlier.Err == nil) {
		state.Since = earlier.Since
	}
	h.states[name] = state
	close(h.checked)
	h.checked = make(chan struct{})
	if before.Checked.IsZero() && err == nil {
		return state, h.failed[name]
	}
	return state, before
}

// all returns the state of every storage.
func (h *health) all() map[string]Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := make(map[string]Health, len(h.settings))
	for name := range h.settings {
		state, checked := h.states[name]
		if !checked {
			state = h.earlier[name]
		}
		states[name] = state
	}
	return states
}

// awaitReachable waits until the last check of a storage in this service has found it reachable. It
// returns false if ctx ends before.
func (h *health) awaitReachable(ctx context.Context, name string) bool {
	for ctx.Err() == nil {
		h.mu.Lock()
		state, checked := h.states[name], h.checked
		h.mu.Unlock()
		if state.Err == nil && !state.Checked.IsZero() {
			return true
		}
		select {
		case <-ctx.Done():
		case <-checked:
		}
	}
	return false
}

// Health returns the states of all storages by name. It is zero for a storage that was not checked.
func (s *Service) Health() map[string]Health { return s.health.all() }

// Start starts to check the storages in the background, and checks the token store once. Failures
// are logged. The first check of a storage also sweeps the leftovers of an earlier process.
// Resumable uploads and the trash are swept, too. Close ends the checks, also if it is called
// before Start.
func (s *Service) Start() {
	_, release, err := s.Acquire()
	if err != nil {
		return
	}
	ctx := s.health.ctx
	for name, storage := range s.storages {
		s.background("checking a storage", func() { s.watch(ctx, name, storage) })
	}
	for _, storage := range s.uploads.Storages {
		s.background("sweeping resumable uploads", func() { s.sweepUploads(ctx, storage) })
	}
	for _, alias := range s.Aliases() {
		s.sweepAlias(ctx, alias, "sweeping the trash", alias.Trash, s.SweepTrash)
		s.sweepAlias(ctx, alias, "removing items that expired", alias.Expires, s.expiring())
	}
	s.background("checking the token store", func() { s.checkTokens(ctx, release) })
}

// background runs a task in the background. A panic ends the task, and is logged.
func (s *Service) background(task string, f func()) {
	guard.Go(f, func(err error) { s.log.Error(task, "error", err) })
}

// checkTokens checks the token store, then calls release.
func (s *Service) checkTokens(ctx context.Context, release func()) {
	defer release()
	ctx, cancel := context.WithTimeout(ctx, maxCheckTime)
	defer cancel()
	if err := s.store.Check(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.log.Error("token store unreachable", "error", err)
	}
}

// watch checks a storage repeatedly until ctx ends. After a failed operation it does not wait for
// the end of the interval.
func (s *Service) watch(ctx context.Context, name string, storage *storagedrivers.Storage) {
	every := s.health.interval
	failures := s.health.failures[name]
	for ctx.Err() == nil {
		reachable := s.check(ctx, name, storage)
		soon := min(every, retryInterval)
		select {
		case <-ctx.Done():
		case <-time.After(soon):
		}
		if !reachable {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(every - soon):
		case <-failures:
		}
	}
}

// check checks a storage once, logs changes, and reports whether the storage is reachable.
func (s *Service) check(ctx context.Context, name string, storage *storagedrivers.Storage) bool {
	bounded, cancel := context.WithTimeout(ctx, maxCheckTime)
	defer cancel()
	start := s.health.now()
	var result Health
	err := guard.Call(func() error {
		err := storage.Check(bounded)
		result.Features = storage.Features() // some are known only now
		return err
	})
	result.Err, result.Checked = err, s.health.now()
	result.Took = result.Checked.Sub(start)
	if err == nil {
		result.Space, _ = storage.Space(bounded) // without it the storage is as usable
	}
	if ctx.Err() != nil || errors.Is(err, storagedrivers.ErrClosed) {
		return true // the service is closed
	}
	state, before := s.health.note(name, result)
	s.observer.StorageChecked(name, state, (err == nil) != (before.Err == nil))
	switch {
	case err != nil && before.Err == nil:
		s.log.Error(msgUnreachable, "storage", name, "reason", storage.Explain(err), "error", err)
	case err == nil && before.Err != nil:
		s.log.Info(msgReachable, "storage", name, "after", s.health.now().Sub(before.Since))
	}
	return err == nil
}
