package gcs

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// transport is the network's, with a limit to the requests of the SDK's readers: they repeat a
// request for as long as the service answers and breaks off.
type transport struct{ *http.Transport }

func newTransport(timeout time.Duration) *transport { return &transport{network.Transport(timeout)} }

// maxRequests is how many requests one reader may send.
const maxRequests = 4

var errBreaksOff = fmt.Errorf("%w: it breaks off every download", storagedrivers.ErrUnavailable)

// budgetKey is the key of how many requests are left, in the context of a reader.
type budgetKey struct{}

func withBudget(ctx context.Context) context.Context {
	left := new(atomic.Int64)
	left.Store(maxRequests)
	return context.WithValue(ctx, budgetKey{}, left)
}

// RoundTrip sends a request, unless too many went before it.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	left, ok := request.Context().Value(budgetKey{}).(*atomic.Int64)
	if ok && left.Add(-1) < 0 {
		return nil, errBreaksOff
	}
	return t.Transport.RoundTrip(request)
}
