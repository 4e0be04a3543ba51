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

// transport is the network's transport, with a limit on the requests of the SDK's readers. A reader
// would otherwise repeat a request as long as the service responds and breaks off.
type transport struct{ *http.Transport }

func newTransport(timeout time.Duration) *transport { return &transport{network.Transport(timeout)} }

// maxRequests is the most requests of one reader.
const maxRequests = 4

var errBreaksOff = fmt.Errorf("%w: it breaks off every download", storagedrivers.ErrUnavailable)

// budgetKey is the context key of a reader's number of remaining requests.
type budgetKey struct{}

func withBudget(ctx context.Context) context.Context {
	left := new(atomic.Int64)
	left.Store(maxRequests)
	return context.WithValue(ctx, budgetKey{}, left)
}

// RoundTrip sends a request, unless the reader has used its budget.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	left, ok := request.Context().Value(budgetKey{}).(*atomic.Int64)
	if ok && left.Add(-1) < 0 {
		return nil, errBreaksOff
	}
	return t.Transport.RoundTrip(request)
}
