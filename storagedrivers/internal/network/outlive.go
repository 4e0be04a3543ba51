package network

import (
	"context"
	"time"
)

// Outlive gives a context that ends some time after ctx does, for a request whose answer is
// wanted also by a caller who has given up: without it nobody knows what has become of the
// object. cancel must be called.
func Outlive(ctx context.Context, by time.Duration) (longer context.Context, cancel context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(by):
			end()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		end()
	}
}

// maxAfterwards bounds what [Afterwards] allows.
const maxAfterwards = 10 * time.Second

// Afterwards returns how long a look at what a failed request has left, or its removal, may take.
// A host that has kept silent for the whole time-out is asked once more, briefly.
func Afterwards(timeout time.Duration, failed error) time.Duration {
	if Silent(failed) {
		return timeout / 8
	}
	return min(timeout, maxAfterwards)
}
