package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

const killClients = 6

// TestKillDuringUploads kills a Caddy at random moments while clients upload, and restarts it on the same
// folder. Every upload that was answered as stored exists, every visible file is complete, and
// nothing else remains. MEDIA_TEST_KILLS sets the number of kills.
func TestKillDuringUploads(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := site.NewChild(t)
	c.Start(site.OnBolt)
	token := c.HTTP1().MustLogin(t)
	ledger := &killLedger{kept: map[string]int{}, last: map[string]uint64{}}
	leftovers := 0
	for round := range site.Number(t, "MEDIA_TEST_KILLS", 6) {
		var clients sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for i := range killClients {
			u := &killUploader{
				ledger: ledger, client: c.HTTP1(), token: token, own: fmt.Sprintf("own-%d.bin", i),
				random: rand.New(rand.NewPCG(seed, uint64(1000*round+i+1))),
			}
			clients.Go(func() { u.run(ctx, t) })
		}
		before := ledger.stored()
		site.Eventually(t, "uploads are stored", func() bool { return ledger.stored() > before })
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond) // the random moment
		c.Kill()
		cancel()
		clients.Wait()
		leftovers += len(site.Hidden(t, c.Root))
		c.Start(site.OnBolt)
		site.Eventually(t, "nothing hidden is left", func() bool { return len(site.Hidden(t, c.Root)) == 0 })
		ledger.check(t, c)
		if t.Failed() {
			t.Fatalf("after round %d", round)
		}
	}
	if r, _ := c.HTTP1().Put(t, token, "content", "last.bin", []byte("x")); r.Status != http.StatusOK {
		t.Errorf("with the token from before all that: %v", r)
	}
	t.Logf("%d uploads were answered, %d leftovers were swept", ledger.stored(), leftovers)
}

// killLedger records the uploads of the clients of a Caddy.
type killLedger struct {
	mu   sync.Mutex
	n    int
	kept map[string]int // answered uploads of "content": their sizes by name
	// last has the seed of the last upload of a name to "over" that was answered. The next upload
	// has that seed plus one.
	last map[string]uint64
}

func (l *killLedger) stored() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// check checks every file in the folders.
func (l *killLedger) check(t *testing.T, c *site.Child) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	contents := map[string][]byte{}
	for _, name := range site.FilesBelow(t, c.Root) {
		b, err := os.ReadFile(filepath.Join(c.Root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := sample.Verify(b); err != nil {
			t.Errorf("%s is not complete: %v", name, err)
		}
		contents[name] = b
	}
	for name, size := range l.kept {
		if b, ok := contents["keep/"+name]; !ok || len(b) != size {
			t.Errorf("%s was answered as stored with %d bytes and has %d", name, size, len(b))
		}
	}
	for name, seed := range l.last {
		b := contents["replace/"+name]
		if !bytes.Equal(b, ownContent(seed)) && !bytes.Equal(b, ownContent(seed+1)) {
			t.Errorf("%s is neither the last answered content nor the one sent after it", name)
		}
	}
	client := c.HTTP1()
	for name := range maps.Keys(l.last) {
		client.MustFetch(t, "over", name, contents["replace/"+name])
	}
}

// killUploader is a client that uploads until its Caddy is killed.
type killUploader struct {
	ledger *killLedger
	client *site.Client
	token  string
	own    string // the name that no other client overwrites
	random *rand.Rand
}

func (u *killUploader) run(ctx context.Context, t *testing.T) {
	for {
		var err error
		switch u.random.IntN(3) {
		case 0:
			err = u.keep(ctx)
		case 1:
			err = u.replaceOwn(ctx)
		case 2: // all clients replace this one
			_, err = u.upload(ctx, "over", site.StreamPart{Name: "shared.bin", Body: bytes.NewReader(u.content())})
		}
		if err != nil {
			if answer, ok := errors.AsType[statusError](err); ok {
				t.Errorf("an upload is answered with %v", answer)
			}
			return // an unanswered upload may be stored or not
		}
	}
}

// content returns small or large content, up to 4 MiB.
func (u *killUploader) content() []byte {
	size := 1 + u.random.IntN(1<<u.random.IntN(23))
	return sample.Described(u.random.Uint64(), size)
}

// keep uploads files whose names soon conflict.
func (u *killUploader) keep(ctx context.Context) error {
	parts := make([]site.StreamPart, 1+u.random.IntN(4))
	sizes := make([]int, len(parts))
	for i := range parts {
		content := u.content()
		sizes[i] = len(content)
		parts[i] = site.StreamPart{Name: fmt.Sprintf("file-%d.bin", u.random.IntN(10)), Body: bytes.NewReader(content)}
	}
	r, err := u.upload(ctx, "content", parts...)
	if err != nil {
		return err
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	for i, item := range r.Result {
		u.ledger.kept[item.Filename] = sizes[i]
	}
	return nil
}

// replaceOwn uploads the next generation of a file.
func (u *killUploader) replaceOwn(ctx context.Context) error {
	u.ledger.mu.Lock()
	next := u.ledger.last[u.own] + 1
	u.ledger.mu.Unlock()
	if _, err := u.upload(ctx, "over", site.StreamPart{Name: u.own, Body: bytes.NewReader(ownContent(next))}); err != nil {
		return err
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	u.ledger.last[u.own] = next
	return nil
}

// ownContent returns the content of a generation of a file.
func ownContent(seed uint64) []byte { return sample.Described(seed, 100+int(seed*77_777%1_500_000)) }

func (u *killUploader) upload(ctx context.Context, alias string, parts ...site.StreamPart) (site.Answer, error) {
	r, err := u.client.Upload(ctx, u.token, alias, parts...)
	if err != nil {
		return r, err
	}
	if r.Status != http.StatusOK {
		return r, statusError(r.Status)
	}
	u.ledger.mu.Lock()
	defer u.ledger.mu.Unlock()
	u.ledger.n++
	return r, nil
}

// TestStartBesideOthers repeatedly starts a Caddy on the folder of another one and kills it. The
// sweep at its start must not touch data that the other one uses.
func TestStartBesideOthers(t *testing.T) {
	t.Parallel()
	one, two := site.NewChild(t), site.NewChild(t)
	two.Root = one.Root
	one.Start(site.InMemory)
	client := one.HTTP1()
	token := client.MustLogin(t)
	var stop atomic.Bool
	var stored atomic.Int64
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			for n := uint64(0); !stop.Load(); n++ {
				r, err := client.Upload(t.Context(), token, "over", site.StreamPart{
					Name: fmt.Sprintf("file-%d.bin", i), Body: bytes.NewReader(sample.Described(n, 300_000)),
				})
				if err != nil || r.Status != http.StatusOK {
					t.Errorf("beside a Caddy that starts: %v %v", r, err)
					return
				}
				stored.Add(1)
			}
		})
	}
	for range 4 {
		before := stored.Load()
		two.Start(site.InMemory)
		other := two.HTTP1()
		other.MustPut(t, other.MustLogin(t), "over", "other.bin", sample.Described(1, 1000))
		two.Kill() // its scratch folder stays, for its next start to sweep
		site.Eventually(t, "uploads succeed", func() bool { return stored.Load() > before+5 || t.Failed() })
	}
	stop.Store(true)
	clients.Wait()
	two.Start(site.InMemory)
	site.Eventually(t, "only the folder that is in use is left", func() bool { return len(site.Hidden(t, one.Root)) == 1 })
	two.Stop()
	one.Stop()
	site.MustHaveOnly(t, filepath.Join(one.Root, "replace"), "file-0.bin", "file-1.bin", "file-2.bin", "other.bin")
	if left := site.Hidden(t, one.Root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
}
