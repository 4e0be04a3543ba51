package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// forms uploads forms of 1 to 5 files, each until it is answered, under one key.
type forms struct {
	nodes   []*site.Child
	storage string // the driver's part of the storage
	redis   string // the address of the tokens; empty for a file of the node
	uploads int
	kills   int         // of processes
	kill    func(n int) // in place of that of a node, if set
	held    bool        // each second upload is held and kept, the others are abandoned

	token   string
	bases   []string
	cuts    atomic.Int64 // of answers and requests
	replays atomic.Int64
	mu      sync.Mutex
	items   map[string]string // contents of the acknowledged items by filename
}

// media returns the lines of the global option media.
func (r *forms) media() string {
	tokens := ""
	if r.redis != "" {
		tokens = "tokens redis redis://" + r.redis + "\n"
	}
	return tokens + site.Account + `
storage keep {
	` + r.storage + `
}
file_alias content {
	storage keep
	prefix /
	extensions bin
}
resumable {
	max_open 10000
}
`
}

// run uploads everything, and expects each acknowledged item once, with its bytes, and no other.
func (r *forms) run(t *testing.T) {
	t.Helper()
	r.items = map[string]string{}
	for _, node := range r.nodes {
		node.Start(r.media())
		r.bases = append(r.bases, "http://"+node.Plain)
	}
	r.token = r.nodes[0].HTTP1().MustLogin(t)
	began := time.Now()
	uploads := make(chan int)
	var clients sync.WaitGroup
	for range 6 {
		clients.Go(func() {
			for n := range uploads {
				r.upload(t, n)
			}
		})
	}
	var done atomic.Bool
	killed := make(chan int)
	go func() {
		n := 0
		for ; n < r.kills && !done.Load(); n++ {
			time.Sleep(time.Duration(100+rand.IntN(300)) * time.Millisecond) // a random moment
			if r.kill != nil {
				r.kill(n)
				continue
			}
			node := r.nodes[n%len(r.nodes)]
			node.Kill()
			node.Start(r.media())
		}
		killed <- n
	}()
	for n := 0; n < r.uploads; n++ {
		uploads <- n
	}
	if r.kills > 0 { // go on until the last one
		for n, left := r.uploads, true; left; n++ {
			select {
			case uploads <- n:
				r.uploads++
			case k := <-killed:
				t.Logf("%d kills", k)
				left = false
			}
		}
	} else {
		<-killed
	}
	close(uploads)
	clients.Wait()
	t.Logf("%d uploads of %d items in %v, %d cuts, %d replayed answers",
		r.uploads, len(r.items), time.Since(began).Round(time.Millisecond), r.cuts.Load(), r.replays.Load())
	if !t.Failed() {
		r.check(t)
	}
}

// tornConn is a connection of a client. It is cut before the first byte of every second answer, and
// within 20 ms of every fourth request.
type tornConn struct {
	net.Conn
	fate int // of the next answer
	cuts *atomic.Int64
}

func (c *tornConn) cut() {
	c.cuts.Add(1)
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}

func (c *tornConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.fate < 2 { // after the commit
		c.cut()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// dial connects a client to a node.
func (r *forms) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	torn := &tornConn{conn, rand.IntN(4), &r.cuts}
	if torn.fate == 2 {
		time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, torn.cut)
	}
	return torn, nil
}

// upload sends one form until it is answered.
func (r *forms) upload(t *testing.T, n int) {
	names := []string{"a.bin", "b.bin", "c.bin"}
	contents := make([]string, 1+rand.IntN(5))
	parts := make([]site.StreamPart, len(contents))
	for i := range contents {
		contents[i] = fmt.Sprintf("%d %d ", n, i) + strings.Repeat("x", rand.IntN(200_000))
		if n%3 == 0 && r.kills == 0 {
			contents[i] = "the same everywhere" // they differ by their number alone
		}
		parts[i].Name = names[rand.IntN(len(names))]
	}
	key := fmt.Sprintf("upload-%d", n)
	target := "/api/upload/file?sub_folder=%2F"
	if r.held {
		target += "&hold=600"
	}
	answer, ok := r.repeat(t, target, key, "multipart/form-data; boundary="+site.StreamBoundary, func() io.Reader {
		for i := range parts {
			parts[i].Body = strings.NewReader(contents[i])
		}
		return site.StreamForm("content", parts...)
	})
	if ok && r.held {
		if n%2 == 1 {
			return
		}
		fields := url.Values{"action": {"keep"}}
		for _, item := range answer.Result {
			fields.Add("held", item.Held)
		}
		answer, ok = r.repeat(t, "/api/items/file/content", "", "application/x-www-form-urlencoded", func() io.Reader {
			return strings.NewReader(fields.Encode())
		})
	}
	if ok {
		r.acknowledge(t, answer, contents)
	}
}

// repeat sends a request until it is answered, and reports whether it has succeeded.
func (r *forms) repeat(t *testing.T, target, key, mediaType string, body func() io.Reader) (answer site.Answer, ok bool) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: r.dial}, Timeout: time.Minute}
	for deadline := time.Now().Add(3 * time.Minute); ; {
		answer, err := r.send(t.Context(), client, target, key, mediaType, body())
		switch {
		case err == nil && (answer.Status == http.StatusOK || answer.Status == http.StatusAccepted):
			return answer, true
		case time.Now().After(deadline), err == nil && answer.Status != http.StatusConflict && answer.Status < 500:
			t.Errorf("%s %s: %v, %v", target, key, answer, err)
			return answer, false
		}
		time.Sleep(20 * time.Millisecond) // it is under way, or the node is being started
	}
}

func (r *forms) send(ctx context.Context, client *http.Client, target, key, mediaType string, form io.Reader) (site.Answer, error) {
	body, err := io.ReadAll(form)
	if err != nil {
		return site.Answer{}, err
	}
	base := r.bases[rand.IntN(len(r.bases))]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+target, bytes.NewReader(body))
	if err != nil {
		return site.Answer{}, err
	}
	req.Header = http.Header{"Content-Type": {mediaType}, "Authorization": {"Bearer " + r.token}}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return site.Answer{}, err
	}
	defer resp.Body.Close()
	answer := site.Answer{Status: resp.StatusCode}
	text, err := io.ReadAll(resp.Body)
	if resp.Header.Get("Idempotency-Replayed") != "" {
		r.replays.Add(1)
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}

func (r *forms) acknowledge(t *testing.T, answer site.Answer, contents []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(answer.Result) != len(contents) {
		t.Errorf("%d of %d files are acknowledged", len(answer.Result), len(contents))
		return
	}
	for i, item := range answer.Result {
		if _, twice := r.items[item.Filename]; twice {
			t.Errorf("%s is acknowledged twice", item.Filename)
		}
		r.items[item.Filename] = contents[i]
	}
}

// check compares the storage with the acknowledged items.
func (r *forms) check(t *testing.T) {
	t.Helper()
	node := r.nodes[0]
	stored := site.Objects(t, node.Caddyfile(r.media()), "keep")
	maps.DeleteFunc(stored, func(key string, _ int64) bool { return strings.HasPrefix(key, "@uploads/") }) // until the holds end
	for name := range stored {
		if r.items[name] == "" {
			t.Errorf("%s is stored, but not acknowledged", name)
		}
	}
	if len(stored) != len(r.items) {
		t.Errorf("%d items are stored, %d acknowledged", len(stored), len(r.items))
	}
	client := node.HTTP1()
	for name, content := range r.items {
		if status, got := client.Fetch(t, "content", name); status != http.StatusOK || string(got) != content {
			t.Errorf("%s: %d with %d bytes, want %d", name, status, len(got), len(content))
		}
	}
	if folder, ok := strings.CutPrefix(r.storage, "driver local "); ok && !r.held {
		node.Stop()
		node.Start(r.media())
		site.Eventually(t, "nothing hidden is left", func() bool { return len(site.FilesBelow(t, folder)) == len(r.items) })
	}
}

// TestLostAnswers cuts half of the answers after the commit. Exactly as many items are stored as
// are acknowledged.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, storage := range storages {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " redis ", shared), func(t *testing.T) {
				t.Parallel()
				r := &forms{
					nodes: []*site.Child{site.NewChild(t)}, storage: storage(t), uploads: site.Number(t, "MEDIA_TEST_UPLOADS", 24),
				}
				if shared {
					r.redis = site.NewRedis(t).Address
				}
				r.run(t)
			})
		}
	}
}

// TestKilled kills the process at random moments, and cuts as TestLostAnswers does.
func TestKilled(t *testing.T) {
	t.Parallel()
	for name, storage := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &forms{
				nodes: []*site.Child{site.NewChild(t)}, storage: storage(t), uploads: 20, kills: site.Number(t, "MEDIA_TEST_KILLS", 8),
			}
			r.run(t)
		})
	}
}

// TestTwoNodes repeats each request at any of two Caddys that share the storage and one Redis, and
// kills them in turn. What the dead one held is soon free.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	for name, storage := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &forms{
				nodes: []*site.Child{site.NewChild(t), site.NewChild(t)}, storage: storage(t), redis: site.NewRedis(t).Address,
				uploads: 20, kills: site.Number(t, "MEDIA_TEST_KILLS", 4),
			}
			r.run(t)
		})
	}
}

// TestHeldAtTwoNodes holds forms and keeps half of them, each request at any of two Caddys, and
// kills these in turn. Exactly the items that are kept exist.
func TestHeldAtTwoNodes(t *testing.T) {
	t.Parallel()
	for name, storage := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &forms{
				nodes: []*site.Child{site.NewChild(t), site.NewChild(t)}, storage: storage(t), redis: site.NewRedis(t).Address,
				uploads: 20, kills: site.Number(t, "MEDIA_TEST_KILLS", 4), held: true,
			}
			r.run(t)
		})
	}
}

// TestFailover repeats requests at two Caddys while their Redis changes places with its replica. It
// runs alone, because a busy machine may need longer for a change of the master than the token
// store waits.
func TestFailover(t *testing.T) {
	address, failover := newReplicated(t)
	r := &forms{
		nodes: []*site.Child{site.NewChild(t), site.NewChild(t)}, storage: storages["local"](t), redis: address,
		uploads: 20, kills: site.Number(t, "MEDIA_TEST_KILLS", 4), kill: failover,
	}
	r.run(t)
}

// newReplicated starts a Redis with a replica, which have one address, and returns a function that
// makes the other one the master. It loses no write, unlike the crash of a master.
func newReplicated(t *testing.T) (address string, failover func(n int)) {
	t.Helper()
	var clients [2]*goredis.Client
	var hosts, ports [2]string
	for i := range clients {
		server := site.NewRedis(t)
		clients[i] = goredis.NewClient(&goredis.Options{Addr: server.Address})
		t.Cleanup(func() { clients[i].Close() })
		hosts[i], ports[i], _ = net.SplitHostPort(server.Address)
	}
	is := func(i int, role, state string) bool {
		info, err := clients[i].Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:"+role) && strings.Contains(info, state)
	}
	if err := clients[1].ReplicaOf(t.Context(), hosts[0], ports[0]).Err(); err != nil {
		t.Fatal(err)
	}
	site.Eventually(t, "the replica follows", func() bool { return is(1, "slave", "master_link_status:up") })
	proxies := [2]*faults.Proxy{}
	for i := range proxies {
		proxies[i] = faults.New(t, net.JoinHostPort(hosts[i], ports[i]))
	}
	proxies[1].SetRefusing(true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var master atomic.Int32
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				conn, err := net.Dial("tcp", proxies[master.Load()].Address)
				if err != nil {
					return
				}
				defer conn.Close()
				go func() {
					_, _ = io.Copy(conn, client)
					conn.Close()
				}()
				_, _ = io.Copy(client, conn)
			}()
		}
	}()
	return listener.Addr().String(), func(n int) {
		from, to := n%2, 1-n%2
		if err := clients[from].Do(t.Context(), "FAILOVER", "TO", hosts[to], ports[to]).Err(); err != nil {
			t.Errorf("failover: %v", err)
			return
		}
		site.Eventually(t, "the replica is the master", func() bool {
			return is(to, "master", "connected_slaves:1") && is(from, "slave", "master_link_status:up")
		})
		proxies[to].SetRefusing(false)
		master.Store(int32(to))
		proxies[from].SetRefusing(true) // and ends the connections
	}
}

var storages = map[string]func(t *testing.T) string{
	"local": func(t *testing.T) string {
		t.Helper()
		return "driver local " + t.TempDir()
	},
	"s3": func(t *testing.T) string {
		t.Helper()
		p := site.StartS3(t)
		return p.Driver(p.Address, "keep", "")
	},
}
