package faults_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// trial sends many uploads at the same time to one or more Caddys, and cuts all of them.
type trial struct {
	t       *testing.T
	nodes   []*site.Child
	storage string      // the driver's part of the storages
	redis   *site.Redis // of the tokens; nil for a file of the node
	seed    uint64
	uploads int
	atOnce  int
	minSize float64
	maxSize float64
	noKills bool

	pool    []byte // all contents are parts of it
	login   *logins
	demands chan demand // for cuts that concern a whole process
	caused  [causes]atomic.Int64
	lost    atomic.Int64 // creations without a response
	stuck   atomic.Int64 // responses 503, 429 and the like
	reloads int
}

// media returns the lines of the global option media. Loading it again with another round is a change.
func (r *trial) media(round int, expires string) string {
	tokens := ""
	if r.redis != nil {
		tokens = "tokens redis redis://" + r.redis.Address + "\n"
	}
	return tokens + site.Account + fmt.Sprintf(`
resumable {
	expires %s
	max_open %d
}
storage keep {
	%s
}
file_alias content {
	storage keep
	prefix /
	extensions bin
}
`, expires, 10_000+round, r.storage)
}

func (r *trial) run() {
	t := r.t
	t.Helper()
	t.Logf("seed %d", r.seed)
	r.pool = make([]byte, 2*int(r.maxSize))
	var key [32]byte
	copy(key[:], strconv.FormatUint(r.seed, 10))
	_, _ = rand.NewChaCha8(key).Read(r.pool) // it never fails
	r.demands = make(chan demand)
	r.login = &logins{}
	for _, node := range r.nodes {
		node.Start(r.media(0, "1h"))
		r.login.bases = append(r.login.bases, "http://"+node.Plain)
	}
	begin := time.Now()
	all := make([]*sender, r.uploads)
	for i := range all {
		all[i] = newSender(r, i)
	}
	var senders sync.WaitGroup
	next := make(chan *sender)
	for range r.atOnce {
		senders.Go(func() {
			for s := range next {
				if err := s.run(t.Context()); err != nil {
					t.Errorf("upload %d of %d bytes, at %d: %v", s.number, len(s.content), s.tus.Acknowledged, err)
				}
			}
		})
	}
	go func() {
		for _, s := range all {
			next <- s
		}
		close(next)
		senders.Wait()
		close(r.demands)
	}()
	r.serveDemands()
	took := time.Since(begin)
	total := 0
	for _, s := range all {
		total += len(s.content)
	}
	t.Logf("%d uploads of %d MiB in %v; %s; %d creations without a response, %d requests to be repeated",
		len(all), total>>20, took.Round(time.Millisecond), r.counts(), r.lost.Load(), r.stuck.Load())
	if !t.Failed() {
		r.check(all)
	}
}

func (r *trial) counts() string {
	var texts [causes]string
	for c, name := range causeNames {
		texts[c] = fmt.Sprintf("%s %d", name, r.caused[c].Load())
	}
	return strings.Join(texts[:], ", ")
}

// serveDemands cuts what concerns a whole process, one after the other. It returns when all uploads
// have ended.
func (r *trial) serveDemands() {
	for d := range r.demands {
		node := r.nodes[d.node]
		switch d.cause {
		case killed:
			node.Kill()
			close(d.done)
			node.Start(r.media(r.reloads, "1h"))
			continue
		case forgot:
			r.redis.Stop()
			r.redis.Start()
		default:
			r.reloads++
			node.MustLoad(r.media(r.reloads, "1h"))
		}
		close(d.done)
	}
}

// check expects every item once, with its bytes, and no other data after the expiry.
func (r *trial) check(all []*sender) {
	t := r.t
	t.Helper()
	client := r.nodes[0].HTTP1()
	want := make([]string, 0, len(all))
	for _, s := range all {
		want = append(want, s.tus.Filename)
		s.verify(client)
	}
	items, rest := r.stored()
	slices.Sort(want)
	if !slices.Equal(items, want) {
		t.Errorf("the storage has the items %q, want %q", items, want)
	}
	open := int64(0)
	for key, size := range rest {
		switch {
		case strings.HasPrefix(key, "@uploads/done/") && size <= 4<<10:
		case strings.HasPrefix(key, "@uploads/open/"):
			open++
		default:
			t.Errorf("%s of %d bytes is left", key, size)
		}
	}
	if open > r.lost.Load() {
		t.Errorf("%d uploads are unfinished, but only %d creations had no response", open, r.lost.Load())
	}
	if outcomes := len(rest) - int(open); outcomes < len(all) {
		t.Errorf("%d outcomes of %d uploads", outcomes, len(all))
	}
	for _, node := range r.nodes[1:] {
		node.Stop()
	}
	site.Eventually(t, "nothing is left after the expiry", func() bool {
		r.nodes[0].Stop()
		r.nodes[0].Start(r.media(r.reloads, "1s")) // a new process sweeps at once, also what was changed just now
		_, rest = r.stored()
		return len(rest) == 0
	})
	if items, _ := r.stored(); !slices.Equal(items, want) {
		t.Errorf("after the expiry the storage has the items %q, want %q", items, want)
	}
}

// stored returns the items of the storage in their order, and the sizes of the objects of uploads.
func (r *trial) stored() (items []string, rest map[string]int64) {
	r.t.Helper()
	rest = map[string]int64{}
	for key, size := range site.Objects(r.t, r.nodes[0].Caddyfile(r.media(0, "1h")), "keep") {
		if strings.HasPrefix(key, "@uploads/") {
			rest[key] = size
			continue
		}
		items = append(items, key)
	}
	slices.Sort(items)
	return items, rest
}

// logins are the tokens of all clients. A token that was forgotten is replaced once.
type logins struct {
	bases []string
	mu    sync.Mutex
	token string
}

// get returns a token other than old, or "" if there is none at the moment.
func (l *logins) get(client *http.Client, old string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != old {
		return l.token
	}
	for _, base := range l.bases {
		if token, err := login(client, base); err == nil {
			l.token = token
			return token
		}
	}
	return ""
}
