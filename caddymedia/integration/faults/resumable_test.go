package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// seed returns that of MEDIA_TEST_SEED, or a random one.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("MEDIA_TEST_SEED")
	if text == "" {
		return rand.Uint64()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCuts cuts every upload several times, in every way. Each is stored once with all its bytes,
// no acknowledged byte is lost, and nothing else is left.
func TestCuts(t *testing.T) {
	t.Parallel()
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		r := &trial{
			t: t, nodes: []*site.Child{site.NewChild(t)}, storage: "driver local $ROOT/keep", seed: seed(t),
			uploads: site.Number(t, "MEDIA_TEST_UPLOADS", 14), atOnce: 12, minSize: mib, maxSize: 48 * mib,
		}
		r.run()
	})
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		r := &trial{
			t: t, nodes: []*site.Child{site.NewChild(t)}, storage: p.Driver(p.Address, "keep", ""), seed: seed(t),
			uploads: site.Number(t, "MEDIA_TEST_UPLOADS", 6), atOnce: 4, minSize: mib / 4, maxSize: 20 * mib,
			// A process that is killed leaves the lock of a name, which others break after 10 minutes.
			noKills: p.Apart,
		}
		if p.Folder == "media-test" { // S3
			r.redis, r.uploads, r.maxSize = site.NewRedis(t), site.Number(t, "MEDIA_TEST_UPLOADS", 8), 48*mib
		}
		r.run()
	})
}

// TestCutsTwoNodes is TestCuts with two Caddys that share the storage and the tokens. Every
// connection goes to the other one.
func TestCutsTwoNodes(t *testing.T) {
	t.Parallel()
	for name, storage := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &trial{
				t: t, nodes: []*site.Child{site.NewChild(t), site.NewChild(t)}, storage: storage(t),
				redis: site.NewRedis(t), seed: seed(t), uploads: site.Number(t, "MEDIA_TEST_UPLOADS", 8), atOnce: 6, minSize: mib, maxSize: 40 * mib,
			}
			r.run()
		})
	}
}

// takeOverLimit is a generous limit for a busy machine; the contract is one second.
const takeOverLimit = 15 * time.Second

// TestDeadConnection: a client loses its connection without any notice to the server. Its next
// request over another one is served at once.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	shared := site.StartS3(t)
	other := site.NewChild(t)
	redis := site.NewRedis(t)
	media := "tokens redis redis://" + redis.Address + "\n" + site.Account + `
storage disk {
	driver local ` + t.TempDir() + `
}
storage bucket {
	` + shared.Driver(shared.Address, "keep", "") + `
}
file_alias disk {
	storage disk
	prefix /
	extensions bin
}
file_alias bucket {
	storage bucket
	prefix /
	extensions bin
}
`
	c.Start(media)
	other.Start(media)
	clients := c.Clients()
	far := other.HTTP1()
	token := clients[0].MustLogin(t)
	for _, client := range clients {
		for _, alias := range []string{"disk", "bucket"} {
			t.Run(client.Version+" "+alias, func(t *testing.T) {
				t.Parallel()
				deadConnection(t, c, client, client, token, alias)
			})
			t.Run(client.Version+" "+alias+", other node", func(t *testing.T) {
				t.Parallel()
				deadConnection(t, c, client, far, token, alias)
			})
		}
	}
}

// deadConnection lets one request fall silent on c, and continues the upload with another client.
func deadConnection(t *testing.T, c *site.Child, first, second *site.Client, token, alias string) {
	const sent = 18 * mib
	wanted := int64(sent)
	if alias == "bucket" {
		wanted = 16 * mib // a piece
	}
	content := sample.Described(1, 20*mib)
	u := &site.Tus{HTTP: second.Client, Base: second.Base, Token: token}
	if err := u.Create(t.Context(), int64(len(content)), "filename", "dead.bin", "alias", alias, "sub_folder", "/"); err != nil {
		t.Fatal(err)
	}
	dead := *u
	dead.HTTP, dead.Base = silentClient(t, c, first)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = dead.Patch(ctx, 0, reader, int64(len(content))) // it never has a response
	}()
	defer func() {
		cancel()
		writer.Close()
		<-ended
	}()
	if _, err := writer.Write(content[:sent]); err != nil {
		t.Fatal(err)
	}
	site.Eventually(t, "the service has stored bytes", func() bool {
		offset, err := u.Head(t.Context())
		return err == nil && offset >= wanted
	})
	if proxied, ok := dead.HTTP.Transport.(*silentTransport); ok {
		proxied.proxy.SetSilent(true)
	}
	begin := time.Now()
	offset, err := u.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Since(begin)
	if err := u.Patch(t.Context(), offset, bytes.NewReader(content[offset:]), int64(len(content))-offset); err != nil {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
	took := time.Since(begin)
	t.Logf("HEAD at offset %d after %v, PATCH after %v", offset, asked, took)
	if took > takeOverLimit {
		t.Errorf("the other request was served after %v", took)
	}
	second.MustFetch(t, alias, u.Filename, content)
}

// silentTransport is a transport whose connections go through a proxy.
type silentTransport struct {
	*http.Transport
	proxy *faults.Proxy
}

// silentClient returns a client like another one. Over TCP it goes through a proxy. Over QUIC it
// only stops sending.
func silentClient(t *testing.T, c *site.Child, like *site.Client) (client *http.Client, base string) {
	t.Helper()
	if like.Version == "HTTP/3.0" {
		return c.HTTP3().Client, like.Base
	}
	address := c.Plain
	if like.Version == "HTTP/2.0" {
		address = c.TLS
	}
	proxy := faults.New(t, address)
	transport := like.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", proxy.Address)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: &silentTransport{transport, proxy}}, like.Base
}

const finishing = site.Account + `
storage keep {
	driver local $ROOT/keep
}
storage replace {
	driver local $ROOT/replace
	overwrite_strategy overwrite
}
image_alias content {
	storage keep
	prefix /
	webp
}
image_alias over {
	storage replace
	prefix /
	webp
}
`

// TestCrashInFinish kills a Caddy when it has received all bytes of uploads. Package tus has a test
// that ends a process after each operation of the storage. After the restart alone, every image is
// stored once, with its variant.
func TestCrashInFinish(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(finishing)
	client := c.HTTP1()
	token := client.MustLogin(t)
	const rounds = 3
	want, answered := make([]string, 0, 4*rounds), 0
	for round := range rounds {
		img := []byte(sample.EncodePNG(t, sample.Photo(900+round, 700)))
		name := fmt.Sprintf("image-%d.png", round)
		ended := make(chan error, 2)
		all := make([]*site.Tus, 0, 2)
		for alias, folder := range map[string]string{"content": "keep", "over": "replace"} {
			u := &site.Tus{HTTP: client.Client, Base: client.Base, Token: token, Kind: "image"}
			if err := u.Create(t.Context(), int64(len(img)), "filename", name, "alias", alias, "sub_folder", "/"); err != nil {
				t.Fatal(err)
			}
			all, want = append(all, u), append(want, folder+"/"+name, folder+"/"+name+".webp")
			go func() { ended <- u.Patch(context.Background(), 0, bytes.NewReader(img), int64(len(img))) }()
		}
		site.Eventually(t, "all bytes are received", func() bool { return received(t, c, len(img)) == 2 || len(ended) > 0 })
		c.Kill()
		for range all {
			if <-ended == nil {
				answered++
			}
		}
		c.Start(finishing)
		if received(t, c, len(img))+answered < 2 { // one was killed earlier
			for _, u := range all {
				if offset, err := u.Head(t.Context()); err == nil && u.Filename == "" {
					_ = u.Patch(t.Context(), offset, bytes.NewReader(img[offset:]), int64(len(img))-offset)
				}
			}
		}
		slices.Sort(want)
		site.Eventually(t, "the restart finishes the uploads", func() bool {
			stored := slices.DeleteFunc(site.FilesBelow(t, c.Root), func(name string) bool {
				return strings.Contains(name, "/@uploads/done/") || strings.Contains(name, "/.")
			})
			return slices.Equal(stored, want) // and nothing of unfinished ones
		})
		for _, u := range all {
			if _, err := u.Head(t.Context()); err != nil || u.Filename != name {
				t.Fatalf("round %d: %q, error %v", round, u.Filename, err)
			}
		}
	}
	t.Logf("%d requests were answered before the kill", answered)
}

// received returns how many unfinished uploads have size bytes.
func received(t *testing.T, c *site.Child, size int) (number int) {
	t.Helper()
	for _, name := range site.FilesBelow(t, c.Root) {
		if info, err := os.Stat(filepath.Join(c.Root, name)); err == nil && strings.Contains(name, "/@uploads/data/") && info.Size() == int64(size) {
			number++
		}
	}
	return number
}
