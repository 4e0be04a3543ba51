package mediahttp

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/tokens"
)

const (
	// readerPatience is how long a request waits for another of its client to be answered. Browsers
	// ask for more pictures at once than a client may have open, and do not ask again.
	readerPatience = 30 * time.Second
	// readerRetry is the Retry-After value of a request that has waited in vain.
	readerRetry = 5 * time.Second
)

var (
	// errClientBusy is a client that has too many items open.
	errClientBusy = errors.New("too many items are being sent to the client")
	// errAllBusy is a service that has too many items open.
	errAllBusy = errors.New("too many items are being sent")
)

// readers bounds how many items are open at the same time: for each client, and for all together,
// so that descriptors for uploads and connections are left.
type readers struct {
	patience time.Duration
	max      int // for all

	mu      sync.Mutex
	open    int
	clients map[netip.Prefix]*clientReaders
}

// clientReaders are the requests of one client.
type clientReaders struct {
	open    int
	waiting []chan struct{} // in the order of arrival; closed to hand over an open item
}

// allReaders are those of the process, whatever the configuration.
var allReaders = sync.OnceValue(func() *readers { return newReaders(mediaapp.MaxOpenFiles() / 4) })

func newReaders(limit int) *readers {
	return &readers{patience: readerPatience, max: limit, clients: map[netip.Prefix]*clientReaders{}}
}

// enter waits until the client of a request may open one more of limit items. The returned function
// must be called when the item is closed, and may be called again. Where all items together are
// too many, a client without any still gets one of a reserve.
func (r *readers) enter(ctx context.Context, limit int) (leave func(), err error) {
	site := siteOf(mediaapp.ClientOf(ctx))
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
	turn := make(chan struct{})
	c.waiting = append(c.waiting, turn)
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
	if !r.giveUp(c, turn) { // it came meanwhile
		leave()
	}
	return nil, err
}

// leave hands the place of an item that was closed to the next request of its client.
func (r *readers) leave(site netip.Prefix, c *clientReaders) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(c.waiting) > 0 {
		close(c.waiting[0])
		c.waiting = c.waiting[1:]
		return
	}
	c.open--
	r.open--
	r.forget(site, c)
}

// giveUp takes a request out of those that wait, and reports whether it was there.
func (r *readers) giveUp(c *clientReaders, turn chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, waiting := range c.waiting {
		if waiting == turn {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// forget drops a client without requests.
func (r *readers) forget(site netip.Prefix, c *clientReaders) {
	if c.open == 0 && len(c.waiting) == 0 {
		delete(r.clients, site)
	}
}

// siteOf returns the addresses that count as one client: all that are none are one together.
func siteOf(client string) netip.Prefix {
	address, _ := netip.ParseAddr(client)
	return tokens.Client(address)
}

// tooMany answers a request that cannot open an item: 429 where its client has too many, 503 where
// all together have.
func (h *Handler) tooMany(app *mediaapp.App, w http.ResponseWriter, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return nil //nolint:nilerr // the client is gone
	}
	status := http.StatusTooManyRequests
	if errors.Is(err, errAllBusy) {
		status = http.StatusServiceUnavailable
	}
	app.CountFailure("static", strconv.Itoa(status))
	w.Header().Set("Retry-After", strconv.Itoa(int(readerRetry.Seconds())))
	return staticError(w, status, err)
}
