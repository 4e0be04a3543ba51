package op

import (
	"context"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Attempt is an attempt at a request that may be repeated. These steps, in this order, make it
// exact however often and wherever an attempt ends:
//   - The request is leased to one attempt at a time. An attempt that has lost the lease changes
//     nothing more, and undoes nothing.
//   - Before something changes, the request is kept with the time of its first attempt. A later one
//     makes the same names with it, and finds what is stored under them since.
//   - The answer is kept before it is sent.
//
// A nil attempt is that at a request that is not repeated.
type Attempt struct {
	*access.Attempt
	// ID of the request and its first attempt, in letters and digits.
	ID string
	// Alias of the items that are about to change; empty if nothing is.
	Alias string
	// Unused means that nothing is stored by this attempt, nor ever will be.
	Unused bool

	open atomic.Bool
}

// NewAttempt returns an attempt with the lease of a request.
func NewAttempt(leased *access.Attempt, request access.ID) *Attempt {
	// The items outlive the key of the request, which may then be that of another one.
	first := access.RequestID(string(request[:]), leased.Began.String())
	return &Attempt{Attempt: leased, ID: hex.EncodeToString(first[:16])}
}

// ErrUnderWay is the failure of a request that another attempt is at.
var ErrUnderWay = item.Failf(item.Conflict, "a request with this Idempotency-Key is under way, try again later")

// IsRepeated reports whether an earlier attempt may have changed something.
func (a *Attempt) IsRepeated() bool { return a != nil && a.Attempt.IsRepeated }

// IsLost reports whether another attempt may have taken over.
func (a *Attempt) IsLost() bool { return a != nil && a.Attempt.IsLost() }

// Began returns when the request began, by the clock of the trash: now, or when its first attempt
// did.
func (p *Permit) Began() time.Time {
	if p.Attempt.IsRepeated() {
		return p.Attempt.Began
	}
	return p.Service.Uploader().Now()
}

// LeaveOpen says that a part of the request has failed, although its answer is a success: it is
// carried out again when it is repeated.
func (a *Attempt) LeaveOpen() {
	if a != nil {
		a.open.Store(true)
	}
}

// IsOpen reports whether [Attempt.LeaveOpen] was called.
func (a *Attempt) IsOpen() bool { return a.open.Load() }

// Keep keeps the request of an attempt, because something is about to change in an alias.
func (p *Permit) Keep(ctx context.Context, alias string) *item.Failure {
	a := p.Attempt
	if a == nil {
		return nil
	}
	a.Alias = alias
	switch err := a.Attempt.Keep(ctx); {
	case err == nil:
		return nil
	case errors.Is(err, access.ErrLost):
		return ErrUnderWay
	default:
		return StoreUnreachable(ctx, p.Log, "the Idempotency-Key cannot be used now, try again later", err)
	}
}

// settle notes the outcome of a commit.
func (a *Attempt) settle(outcome upload.Outcome) {
	if a != nil {
		a.Unused = outcome == upload.NothingStored
	}
}

// isOlder reports whether the attempt may delete an object: to a repetition, one that was stored
// after the first attempt does not exist.
func (a *Attempt) isOlder(info storagedrivers.Info) bool {
	return !a.IsRepeated() || !info.ModTime.After(a.Began)
}
