package mediahttp

import (
	"container/list"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

const (
	// readerPatience is how long a request waits for another one of its client to end. Browsers
	// request more pictures at once than a client may have open, and do not retry.
	readerPatience = 30 * time.Second
	// readerRetry is the Retry-After value of a request whose wait was in vain.
	readerRetry = 5 * time.Second
	// waitingPerOpen is how many requests of a client may wait for each item that it may have open.
	waitingPerOpen = 2
	// busyWarning is the shortest time between two warnings about refused clients.
	busyWarning = time.Hour
)

var (
	// errClientBusy means that the client has too many items open.
	errClientBusy = errors.New("too many items are being sent to the client")
	// errAllBusy means that the service has too many items open.
	errAllBusy = errors.New("too many items are being sent")
)

// readers bounds the number of open items, for each client and for all together, so that file
// descriptors remain for uploads and connections.
type readers struct {
	patience time.Duration
	max      int // for all

	mu      sync.Mutex
	open    int
	clients map[netip.Prefix]*clientReaders
	warned  time.Time // of a client that was refused
}

// clientReaders holds the requests of one client.
type clientReaders struct {
	open    int
	waiting list.List // of chan struct{}, in the order of arrival; closed to hand over an open item
}

// allReaders are the readers of the process, shared by all configurations. With their reserve they
// may use a quarter of the open files.
var allReaders = sync.OnceValue(func() *readers { return newReaders(media.MaxOpenFiles() / 6) })

func newReaders(limit int) *readers {
	return &readers{patience: readerPatience, max: limit, clients: map[netip.Prefix]*clientReaders{}}
}

// enter waits until the client may open another item; limit is the most per client. leave must be
// called when the item is closed, and may be called again. If all clients together have too many
// items open, a client without any still gets one from a reserve. The error is errClientBusy,
// errAllBusy or that of ctx.
func (r *readers) enter(ctx context.Context, client string, limit int) (leave func(), err error) {
	site := siteOf(client)
	r.mu.Lock()
	c := r.clients[site]
	if c == nil {
		c = &clientReaders{}
		r.clients[site] = c
	}
	if r.open >= r.max && (c.open > 0 || r.open >= r.max+r.max/2) {
		r.forget(site, c)
		r.mu.Unlock()
		return nil, errAllBusy
	}
	leave = sync.OnceFunc(func() { r.leave(site, c) })
	if c.open < limit {
		c.open++
		r.open++
		r.mu.Unlock()
		return leave, nil
	}
	if c.waiting.Len() >= waitingPerOpen*limit {
		r.mu.Unlock()
		return nil, errClientBusy
	}
	turn := make(chan struct{})
	waiting := c.waiting.PushBack(turn)
	r.mu.Unlock()
	timer := time.NewTimer(r.patience)
	defer timer.Stop()
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errClientBusy
	}
	r.mu.Lock()
	c.waiting.Remove(waiting)
	r.mu.Unlock()
	select {
	case <-turn: // it came meanwhile
		leave()
	default:
	}
	return nil, err
}

// leave releases a closed item. The next waiting request of the client gets its slot.
func (r *readers) leave(site netip.Prefix, c *clientReaders) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next := c.waiting.Front(); next != nil {
		close(c.waiting.Remove(next).(chan struct{})) // the list holds nothing else
		return
	}
	c.open--
	r.open--
	r.forget(site, c)
}

// forget removes a client without requests.
func (r *readers) forget(site netip.Prefix, c *clientReaders) {
	if c.open == 0 && c.waiting.Len() == 0 {
		delete(r.clients, site)
	}
}

// mayWarn reports whether the log may warn about a refused client now.
func (r *readers) mayWarn(now time.Time) bool {
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
	leave func() // nil before
}

// enter acquires the admission of a request, at most once. A HEAD request needs none, because it
// sends no item.
func (h *Handler) enter(a *admission, r *http.Request) error {
	if a.leave != nil || r.Method == http.MethodHead {
		return nil
	}
	leave, err := h.readers.enter(r.Context(), h.options.Client(r), a.limit)
	if err == nil {
		a.leave = leave
	}
	return err
}

// end releases the admission when the item is closed. It may be called again.
func (a *admission) end() {
	if a.leave != nil {
		a.leave()
	}
}

// siteOf returns the addresses that count as the same client. All invalid addresses count as one.
func siteOf(client string) netip.Prefix {
	address, _ := netip.ParseAddr(client)
	return tokens.Client(address)
}

// tooMany responds to a request that cannot open an item: with 429 if its client has too many, and
// with 503 if all together have.
func (h *Handler) tooMany(service *media.Service, w http.ResponseWriter, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return nil //nolint:nilerr // the client is gone
	}
	status := http.StatusTooManyRequests
	if errors.Is(err, errAllBusy) {
		status = http.StatusServiceUnavailable
	} else {
		h.warnOfBusyClient(r, service.Limits().MaxOpenItems)
	}
	service.Observer().Failed(r.Context(), "static", strconv.Itoa(status))
	w.Header().Set("Retry-After", strconv.Itoa(int(readerRetry.Seconds())))
	return staticError(w, status, err)
}

// warnOfBusyClient logs the options that may be the cause. Behind a proxy all clients may seem to
// be one.
func (h *Handler) warnOfBusyClient(r *http.Request, limit int) {
	if !h.readers.mayWarn(h.options.Now()) {
		return
	}
	h.options.Log.Warn("a client has too many items open; behind a proxy set trusted_proxies, otherwise max_open_items may be too low",
		"client", h.options.Client(r), "max_open_items", limit)
}
