package ingest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caddymedia/media/caddymedia/imaging/render"
)

const (
	// maxAttempts is the number of renditions whose attempts are remembered, some 500 bytes each.
	maxAttempts = 1000
	// unrenderableTime is the pause before a picture that cannot be rendered is tried again.
	unrenderableTime = 5 * time.Minute
)

// slowPauses are the pauses before a rendition that took too long is tried again. They grow with each
// attempt.
var slowPauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

// attempts remembers the failures of making renditions, by location, settings and generation. Without
// it, every request for one would fetch and decode its picture again.
var attempts = remembered[attempt](maxAttempts)

// attempt is what is known of making a rendition.
type attempt struct {
	long  bool  // its picture is a long animation
	slow  int   // how often it took too long
	err   error // is returned again until then
	until time.Time
}

// SlowError means that making a rendition took too long. It wraps [render.ErrBusy] and [render.ErrTime].
type SlowError struct {
	// RetryAfter is the time until the next attempt.
	RetryAfter time.Duration
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("making the rendition took too long, it is tried again in %v", e.RetryAfter)
}

func (e *SlowError) Unwrap() []error { return []error{render.ErrBusy, render.ErrTime} }

// failed returns the error of an earlier attempt whose pause has not ended, or nil.
func (a *attempt) failed(now time.Time) error {
	switch {
	case !now.Before(a.until):
		return nil
	case errors.Is(a.err, render.ErrTime):
		return &SlowError{a.until.Sub(now)}
	default:
		return a.err
	}
}

// end records the result of an attempt, and returns its error.
func (a *attempt) end(err error, now time.Time) error {
	switch {
	case errors.Is(err, render.ErrTime):
		a.err, a.until = err, now.Add(slowPauses[min(a.slow, len(slowPauses)-1)])
		a.slow++
		return fmt.Errorf("%w: %w", a.failed(now), err)
	case IsUnrenderable(err):
		a.err, a.until = err, now.Add(unrenderableTime)
	}
	return err
}

// remembered returns a function that returns a cache of the values used last, made by its first call.
func remembered[V any](size int) func() *lru.Cache[string, V] {
	return sync.OnceValue(func() *lru.Cache[string, V] {
		cache, err := lru.New[string, V](size)
		if err != nil {
			panic(err) // it fails only without a size
		}
		return cache
	})
}
