package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// A cause of a cut.
type cause int

const (
	closed   cause = iota // by the client
	reset                 // on the way
	silenced              // on the way: nothing passes, without a reset
	killed                // the Caddy
	reloaded              // the configuration
	forgot                // Redis restarts without the tokens
	causes
)

var causeNames = [causes]string{"closed", "reset", "silenced", "killed", "reloaded", "redis"}

// demand asks for a cut; done is closed after it.
type demand struct {
	cause cause
	node  int
	done  chan struct{}
}

// cause returns a random one. Those of a process are rare, as they cut all other uploads too.
func (s *sender) cause() cause {
	c := []cause{
		closed, closed, closed, closed, reset, reset, reset, reset, silenced, silenced, silenced, silenced,
		killed, killed, reloaded, forgot,
	}[s.random.IntN(16)]
	if c == forgot && s.redis == nil || c == killed && s.noKills {
		return reset
	}
	return c
}

// trip causes a cut from within a body.
func (s *sender) trip(ctx context.Context, c cause) error {
	switch c {
	case closed:
		return errors.New("the client closes the connection")
	case reset:
		for _, proxy := range s.proxies {
			proxy.CloseAll()
		}
	default:
		d := demand{c, s.random.IntN(len(s.nodes)), make(chan struct{})}
		s.demands <- d
		if c == killed {
			select {
			case <-d.done:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// abandon sends a request on connections that become silent after the bytes of before. It returns
// while the request hangs. Silent connections of an earlier request deliver what was on the way.
func (s *sender) abandon(
	ctx context.Context, send func(ctx context.Context, body io.Reader) error, before, after []byte,
) error {
	s.speak()
	proxies := s.proxies
	silent, failed := make(chan struct{}), make(chan error, 1)
	body := io.MultiReader(bytes.NewReader(before), tripwire{func() error {
		for _, proxy := range proxies {
			proxy.SetSilent(true)
		}
		close(silent)
		return nil
	}}, bytes.NewReader(after))
	go func() { failed <- send(ctx, body) }()
	select {
	case <-silent:
	case err := <-failed:
		select {
		case <-silent: // the request failed meanwhile
		default:
			return err
		}
	}
	s.silent = proxies
	s.mu.Lock()
	s.proxies = s.newProxies()
	s.mu.Unlock()
	s.tus.HTTP.CloseIdleConnections()
	return nil
}

// speak makes silent connections deliver what was on the way.
func (s *sender) speak() {
	for _, proxy := range s.silent {
		proxy.SetSilent(false)
	}
	s.silent = nil
}

// tripwire is an empty reader that calls a function.
type tripwire struct{ trip func() error }

func (w tripwire) Read([]byte) (int, error) {
	if err := w.trip(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// sender is the client of one upload. Its plan is random but reproducible.
type sender struct {
	*trial
	number  int
	random  *rand.Rand
	content []byte
	cuts    []int64 // offsets, in their order
	chunk   int64   // the most bytes of a request
	summed  bool    // with checksums
	unknown bool    // the length is sent with the last bytes

	tus    *site.Tus
	silent []*faults.Proxy // that will speak again
	ends   []context.CancelFunc

	mu      sync.Mutex
	proxies []*faults.Proxy // of the nodes
	turn    int             // of the next connection
}

const (
	mostCuts = 5
	mib      = 1 << 20
	pause    = 20 * time.Millisecond // before a request is repeated
	patience = 2 * time.Minute       // without any progress
)

func newSender(r *trial, number int) *sender {
	s := &sender{trial: r, number: number, random: rand.New(rand.NewPCG(r.seed, uint64(number)))}
	size := int(r.minSize * math.Pow(r.maxSize/r.minSize, s.random.Float64())) // as many small ones as large ones
	begin := s.random.IntN(len(r.pool) - size)
	s.content = r.pool[begin : begin+size]
	for range 1 + s.random.IntN(mostCuts) {
		s.cuts = append(s.cuts, s.random.Int64N(int64(size)))
	}
	slices.Sort(s.cuts)
	s.chunk = []int64{math.MaxInt64, math.MaxInt64, 5 * mib, mib}[s.random.IntN(4)]
	s.summed, s.unknown = s.random.IntN(4) == 0, s.random.IntN(4) == 0
	if s.summed {
		s.chunk = min(s.chunk, 5*mib)
	}
	s.proxies = s.newProxies()
	s.tus = &site.Tus{Base: "http://" + r.nodes[0].Plain, HTTP: &http.Client{Transport: &http.Transport{
		DialContext: s.dial, DisableKeepAlives: len(r.nodes) > 1,
	}}}
	return s
}

// newProxies returns one for every node.
func (s *sender) newProxies() []*faults.Proxy {
	proxies := make([]*faults.Proxy, len(s.nodes))
	for i, node := range s.nodes {
		proxies[i] = faults.New(s.t, node.Plain)
	}
	return proxies
}

// dial connects to the next node.
func (s *sender) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	s.turn++
	proxy := s.proxies[s.turn%len(s.proxies)]
	s.mu.Unlock()
	var d net.Dialer
	return d.DialContext(ctx, "tcp", proxy.Address)
}

// run uploads the content, however often that needs.
func (s *sender) run(ctx context.Context) error {
	defer func() {
		s.speak()
		for _, end := range s.ends {
			end()
		}
		s.tus.HTTP.CloseIdleConnections()
	}()
	progress, last := time.Now(), int64(-1)
	for {
		err := s.step(ctx)
		switch {
		case err != nil && !s.mayRepeat(err):
			return err
		case s.tus.Filename != "":
			return nil
		case s.tus.Acknowledged != last || len(s.cuts) > 0 && err == nil:
			progress, last = time.Now(), s.tus.Acknowledged
		case time.Since(progress) > patience:
			return fmt.Errorf("no progress any more: %w", err)
		}
		if err != nil {
			time.Sleep(pause)
		}
	}
}

// mayRepeat reports whether a request may be sent again after its error.
func (s *sender) mayRepeat(err error) bool {
	if _, ok := errors.AsType[site.UnansweredError](err); ok {
		return true
	}
	answer, ok := errors.AsType[site.TusError](err)
	if !ok {
		return false
	}
	switch answer.Status {
	case http.StatusUnauthorized:
		s.tus.Token = s.login.get(s.tus.HTTP, s.tus.Token)
	case http.StatusConflict:
	case http.StatusBadRequest: // of a body that was cut
		return bytes.Contains([]byte(answer.Body), []byte("ends too early"))
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusLocked:
		s.stuck.Add(1)
	default:
		return false
	}
	return true
}

// step sends one request.
func (s *sender) step(ctx context.Context) error {
	if s.tus.Token == "" {
		if s.tus.Token = s.login.get(s.tus.HTTP, ""); s.tus.Token == "" {
			return site.UnansweredError{Err: errors.New("no token")}
		}
	}
	size := int64(len(s.content))
	if s.tus.Location == "" {
		length := size
		if s.unknown {
			length = site.UnknownLength
		}
		err := s.tus.Create(ctx, length, "filename", "up-"+strconv.Itoa(s.number)+".bin", "sub_folder", "/")
		if _, ok := errors.AsType[site.UnansweredError](err); ok {
			s.lost.Add(1)
		}
		return err
	}
	offset, err := s.tus.Head(ctx)
	for err == nil && s.tus.Filename == "" {
		err = s.patch(ctx, offset)
		offset = s.tus.Acknowledged
	}
	return err
}

// patch sends the next bytes, and cuts the connection if there is a cut among them.
func (s *sender) patch(ctx context.Context, offset int64) error {
	size := min(s.chunk, int64(len(s.content))-offset)
	part := s.content[offset : offset+size]
	var headers []string
	if s.unknown && offset+size == int64(len(s.content)) {
		headers = append(headers, "Upload-Length", strconv.Itoa(len(s.content)))
	}
	if s.summed {
		name, value := site.SHA256(part)
		headers = append(headers, name, value)
	}
	body := io.Reader(bytes.NewReader(part))
	if len(s.cuts) == 0 || s.cuts[0] >= offset+size {
		return s.tus.Patch(ctx, offset, body, size, headers...)
	}
	before := max(0, s.cuts[0]-offset)
	s.cuts = s.cuts[1:]
	cause := s.cause()
	s.caused[cause].Add(1)
	if cause == silenced {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		s.ends = append(s.ends, end) // the connection ends with the upload
		return s.abandon(ctx, func(ctx context.Context, body io.Reader) error {
			dead := *s.tus // its offsets are not those of the client any more
			return dead.Patch(ctx, offset, body, size, headers...)
		}, part[:before], part[before:])
	}
	body = io.MultiReader(bytes.NewReader(part[:before]), tripwire{func() error { return s.trip(ctx, cause) }},
		bytes.NewReader(part[before:]))
	return s.tus.Patch(ctx, offset, body, size, headers...)
}

// verify expects the item to have the content.
func (s *sender) verify(client *site.Client) {
	s.t.Helper()
	r, err := client.Get(client.Base + "/static/file/content/" + s.tus.Filename)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK || err != nil || !bytes.Equal(got, s.content) {
		s.t.Errorf("%s: status %d, %d bytes, want the %d bytes that were uploaded; error %v",
			s.tus.Filename, r.StatusCode, len(got), len(s.content), err)
	}
}

// login returns a new token.
func login(client *http.Client, base string) (string, error) {
	r, err := client.PostForm(base+"/api/auth/generateToken", url.Values{"api_key": {site.APIKey}, "password": {site.Password}})
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	var answer site.Answer
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Token == "" {
		return "", fmt.Errorf("status %d: %w", r.StatusCode, err)
	}
	return answer.Token, nil
}

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

// media returns the lines of the global option media. Loading it again with another round is a
// change.
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
	// A new process sweeps at once, also what was changed just now, and needs time for it.
	for start := time.Now(); len(rest) > 0; {
		if time.Since(start) > site.Patience {
			t.Fatalf("after the expiry there are still %v", rest)
		}
		r.nodes[0].Stop()
		r.nodes[0].Start(r.media(r.reloads, "1s"))
		for looked := time.Now(); len(rest) > 0 && time.Since(looked) < site.Patience/6; time.Sleep(50 * time.Millisecond) {
			_, rest = r.stored()
		}
	}
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
