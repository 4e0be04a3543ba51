package faults_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// TestRemoteDead: a storage is on a dead host. Everything else works, requests for the storage fail
// within the time-out, and the storage recovers with its host.
func TestRemoteDead(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*faults.Proxy, bool){
		"refusing": (*faults.Proxy).SetRefusing,
		"silent":   (*faults.Proxy).SetSilent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site.EachRemote(t, func(t *testing.T, p site.Backend) { remoteDead(t, p, set) })
		})
	}
}

func remoteDead(t *testing.T, p site.Backend, kill func(*faults.Proxy, bool)) {
	const timeout = 2 * time.Second
	proxy := faults.New(t, p.Address)
	kill(proxy, true)
	c := site.NewChild(t)
	begin := time.Now()
	c.Start("health_interval 1s\n" + p.Media(proxy.Address, "timeout 2s"))
	t.Logf("started after %v", time.Since(begin))
	client := c.HTTP1()
	token := client.MustLogin(t)
	content := sample.Described(1, 1_000_000)
	for range 2 { // before and while the circuit is open
		client.MustFetch(t, "near", client.MustPut(t, token, "near", "file.bin", content), content)
		remoteDown(t, client, token, timeout)
	}
	site.Eventually(t, "the log has it", func() bool { return strings.Contains(c.Output(), "storage unreachable") })

	kill(proxy, false)
	site.Eventually(t, "the storage takes files again", func() bool {
		r, _ := client.Put(t, token, "content", "file.bin", content)
		return r.Status == http.StatusOK
	})
	client.MustFetch(t, "content", "file.bin", content)
	site.Eventually(t, "the log has the recovery", func() bool { return strings.Contains(c.Output(), "storage reachable again") })

	kill(proxy, true)
	remoteDown(t, client, token, timeout)
	kill(proxy, false)
	site.Eventually(t, "the storage takes files again", func() bool {
		r, _ := client.Put(t, token, "over", "file.bin", content)
		return r.Status == http.StatusOK
	})
}

// remoteDown expects that uploads and downloads are answered with 503 in time, without the name of
// the host.
func remoteDown(t *testing.T, client *site.Client, token string, timeout time.Duration) {
	t.Helper()
	// The attempts of one operation, and its roll-back, on a slow machine.
	limit := 4*timeout + 30*time.Second
	begin := time.Now()
	r, name := client.Put(t, token, "over", "lost.bin", sample.Described(2, 3_000_000))
	if r.Status != http.StatusServiceUnavailable || strings.Contains(r.String(), "127.0.0.1") {
		t.Errorf("an upload to a dead host is answered with %v %q", r, name)
	}
	if took := time.Since(begin); took > limit {
		t.Errorf("an upload to a dead host is answered after %v", took)
	}
	begin = time.Now()
	if status, _ := client.Fetch(t, "over", "any.bin"); status != http.StatusServiceUnavailable {
		t.Errorf("a download from a dead host: status %d", status)
	}
	if took := time.Since(begin); took > limit {
		t.Errorf("a download from a dead host is answered after %v", took)
	}
}

// startThrough starts a Caddy whose storages are behind a proxy, and logs in.
func startThrough(t *testing.T, p site.Backend) (proxy *faults.Proxy, client *site.Client, token string) {
	t.Helper()
	proxy = faults.New(t, p.Address)
	p.Address = proxy.Address
	_, client, token = site.StartOn(t, p)
	return proxy, client, token
}

// TestRemoteCut resets the connection in the middle of uploads. Each upload is stored completely,
// or refused and rolled back, including replaced items.
func TestRemoteCut(t *testing.T) {
	t.Parallel()
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		proxy, client, token := startThrough(t, p)
		old := sample.Described(1, 500_000)
		client.MustPut(t, token, "over", "old.bin", old)
		cuts := []int64{0, 1000, 300_000, 9_000_000, 11_999_000}
		if p.Apart { // then these are commands
			cuts = []int64{0, 20, 60, 100}
		}
		for _, at := range cuts {
			content := sample.Described(uint64(at)+2, 12_000_000)
			for alias, name := range map[string]string{"content": "new.bin", "over": "old.bin"} {
				before := proxy.Cuts()
				proxy.CutAfter(at)
				r, stored := client.Put(t, token, alias, name, content)
				if proxy.Cuts() == before {
					t.Errorf("%s at %d: nothing was cut", alias, at)
				}
				proxy.CutAfter(-1)
				switch {
				case r.Status == http.StatusOK:
					client.MustFetch(t, alias, stored, content)
					if alias == "over" {
						old = content
					}
				case r.Status != http.StatusServiceUnavailable && r.Status != http.StatusBadGateway:
					t.Errorf("%s at %d: %v", alias, at, r)
				case alias == "over":
					client.MustFetch(t, alias, name, old)
				default:
					if status, b := client.Fetch(t, alias, name); status != http.StatusNotFound && sample.Verify(b) != nil {
						t.Errorf("%s at %d: status %d with %d bytes of a failed upload", alias, at, status, len(b))
					}
				}
			}
		}
	})
}

// TestRemoteDownloadCut: a cut download is complete, or fails visibly. It is complete if entity
// tags identify the object.
func TestRemoteDownloadCut(t *testing.T) {
	t.Parallel()
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		proxy, client, token := startThrough(t, p)
		content := sample.Described(1, 32<<20) // more than all buffers on the way
		client.MustPut(t, token, "content", "file.bin", content)
		r, err := client.Get(client.Base + "/static/file/content/file.bin")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		got := make([]byte, 0, len(content))
		buffer := make([]byte, 64<<10)
		for cut := false; ; {
			n, err := r.Body.Read(buffer)
			got = append(got, buffer[:n]...)
			if !cut && len(got) > 1_000_000 {
				proxy.CloseAll()
				cut = true
			}
			if err != nil {
				if !bytes.HasPrefix(content, got) {
					t.Errorf("the first %d bytes are others", len(got))
				}
				tagged := p.Signs != site.NeverSigns // backends that sign addresses also have entity tags
				if (errors.Is(err, io.EOF) || tagged) && len(got) < len(content) {
					t.Errorf("%d of %d bytes are all that comes", len(got), len(content))
				}
				t.Logf("%d of %d bytes, then %v", len(got), len(content), err)
				break
			}
		}
		client.MustFetch(t, "content", "file.bin", content)
	})
}
