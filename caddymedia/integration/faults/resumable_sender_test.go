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
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

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
