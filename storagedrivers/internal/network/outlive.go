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
