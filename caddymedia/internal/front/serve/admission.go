package serve

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
)

const (
	// admissionPatience is how long a request waits for another one of its client to end. Browsers
	// request more images at once than a client may have open, and do not retry.
	admissionPatience = 30 * time.Second
	// admissionRetry is the Retry-After value of a request whose wait was in vain.
	admissionRetry = 5 * time.Second
	// maxWaiting is how many requests of all clients may wait.
	maxWaiting = 1024
	// busyWarning is the shortest time between two warnings about refused clients.
	busyWarning = time.Hour
)

var (
	// errClientBusy means that the client has too many items open.
	errClientBusy = errors.New("too many items are being sent to the client")
	// errAllBusy means that the service has too many items open.
	errAllBusy = errors.New("too many items are being sent")
)

// admissions bounds the number of open items, for each client and for all together, so that file
// descriptors remain for uploads and connections.
type admissions struct {
	open    *queue.Pool  // of all clients
	clients *queue.Queue // for the limit of a client

	mu     sync.Mutex
	warned time.Time // of a client that was refused
}

// allAdmissions are the admissions of the process, shared by all configurations. They may use a
// quarter of the open files.
var allAdmissions = sync.OnceValue(func() *admissions { return newAdmissions(service.MaxOpenFiles() / 4) })

func newAdmissions(limit int) *admissions {
	return &admissions{
		open: queue.NewPool(int64(limit)),
		clients: queue.New(queue.Options{
			Slots: math.MaxInt32, Wait: admissionPatience, Waiting: max(1, min(limit, maxWaiting)), // open bounds the slots
		}),
	}
}

// enter waits until the client may open another item; limit is the most per client. leave must be
// called once, when the item is closed. The error is errClientBusy, errAllBusy or that of ctx.
func (r *admissions) enter(ctx context.Context, client string, limit int) (leave func(), err error) {
	slot, err := r.clients.Acquire(ctx, queue.Request{Owner: client, Most: limit})
	switch {
	case errors.Is(err, queue.ErrTimeout), errors.Is(err, queue.ErrFull):
		return nil, errClientBusy
	case err != nil:
		return nil, err
	}
	party := queue.Party{Owner: client}
	if !r.open.Acquire(party, 1) {
		slot.Release()
		return nil, errAllBusy
	}
	return func() {
		r.open.Release(party, 1)
		slot.Release()
	}, nil
}

// mayWarn reports whether the log may warn about a refused client now.
func (r *admissions) mayWarn(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.warned) < busyWarning {
		return false
	}
	r.warned = now
	return true
}

// admission is the permission of one request to open an item.
type admission struct {
	limit int
	leave func() // nil while there is no permission
}

// enter acquires the admission of a request, unless the request has it. A HEAD request needs none,
// because it sends no item.
func (s *Server) enter(ctx context.Context, a *admission, method string) error {
	if a.leave != nil || method == http.MethodHead {
		return nil
	}
	leave, err := s.admissions.enter(ctx, storagedrivers.Owner(ctx), a.limit)
	if err == nil {
		a.leave = leave
	}
	return err
}

// end releases the admission when the item is closed. It may be called again.
func (a *admission) end() {
	if a.leave != nil {
		a.leave()
		a.leave = nil
	}
}

// clientOwner returns the owner of bounded work for the addresses that count as the same client.
// All invalid addresses count as one.
func clientOwner(client string) string {
	address, _ := netip.ParseAddr(client)
	return "static " + access.Client(address).String()
}

// tooMany responds to a request that cannot open an item: with 429 if its client has too many, and
// with 503 if all together have.
func (s *Server) tooMany(running *service.Service, w http.ResponseWriter, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return nil //nolint:nilerr // the client is gone
	}
	status := http.StatusTooManyRequests
	if errors.Is(err, errAllBusy) {
		status = http.StatusServiceUnavailable
	} else {
		s.warnOfBusyClient(r, running.Limits().MaxOpenItems)
	}
	running.Observer().Failed(r.Context(), "static", strconv.Itoa(status))
	w.Header().Set("Retry-After", strconv.Itoa(int(admissionRetry.Seconds())))
	return staticError(w, status, err)
}

// warnOfBusyClient logs the options that may be the cause. Behind a proxy all clients may seem to
// be one.
func (s *Server) warnOfBusyClient(r *http.Request, limit int) {
	if !s.admissions.mayWarn(s.Now()) {
		return
	}
	s.Log.Warn("a client has too many items open; behind a proxy set trusted_proxies, otherwise max_open_items may be too low",
		"client", s.Client(r), "max_open_items", limit)
}
