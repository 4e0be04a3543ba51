package faults_test

import (
	"bytes"
	"image"
	"image/color"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// TestRemoteItems uploads images and files to a storage of every driver and fetches them.
func TestRemoteItems(t *testing.T) {
	t.Parallel()
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		_, client, token := site.StartOn(t, p)
		t.Run("image", func(t *testing.T) { remoteImage(t, client, token) })
		t.Run("large file", func(t *testing.T) { remoteLargeFile(t, client, token) })
		t.Run("overwrite", func(t *testing.T) { remoteOverwrite(t, client, token) })
		t.Run("renditions", func(t *testing.T) { remoteRenditions(t, client, token) })
	})
}

func remoteImage(t *testing.T, client *site.Client, token string) {
	for _, alias := range []string{"content", "over"} {
		img := sample.PhotoJPEG(640, 480)
		r := client.UploadImage(t, token, alias, "Šunka & vejce.jpg", img)
		if r.Status != http.StatusOK || r.Result[0].Filename != "sunka-vejce.jpg" {
			t.Fatalf("uploading an image: %v %+v", r, r.Result)
		}
		got := client.FetchURL(t, r.Result[0].FullPath)
		if got.Status != http.StatusOK || got.Body != img {
			t.Errorf("status %d with %d bytes, want the %d of the image", got.Status, len(got.Body), len(img))
		}
		if got.Header.Get("Content-Type") != "image/jpeg" || got.Header.Get("ETag") == "" || got.Header.Get("Last-Modified") == "" {
			t.Errorf("headers %v", got.Header)
		}
		same := client.FetchURL(t, r.Result[0].FullPath, "If-None-Match", got.Header.Get("ETag"))
		if same.Status != http.StatusNotModified {
			t.Errorf("requested again: status %d, want 304", same.Status)
		}
		variant := client.FetchURL(t, r.Result[0].WebP)
		if variant.Header.Get("Content-Type") != "image/webp" || !strings.HasPrefix(variant.Body, "RIFF") {
			t.Errorf("variant of %d bytes, status %d, %v", len(variant.Body), variant.Status, variant.Header)
		}
	}
}

// remoteRenditions replaces an image, and expects renditions of the present one.
func remoteRenditions(t *testing.T, client *site.Client, token string) {
	for _, c := range []color.NRGBA{{200, 0, 0, 255}, {0, 0, 200, 255}} {
		r := client.UploadImage(t, token, "over", "plain.png", sample.EncodePNG(t, sample.Plain(60, 40, c)))
		if r.Status != http.StatusOK || len(r.Result[0].Renditions) != 2 {
			t.Fatalf("uploading an image: %v %+v", r, r.Result)
		}
		for name, address := range r.Result[0].Renditions {
			site.WantRendition(t, client, address, image.Pt(map[string]int{"soon": 20, "later": 30}[name], 20), c)
		}
	}
	if got := client.FetchURL(t, client.Base+"/static/img/over@soon/none.png"); got.Status != http.StatusNotFound {
		t.Errorf("without an image: status %d", got.Status)
	}
}

func remoteLargeFile(t *testing.T, client *site.Client, token string) {
	content := sample.Described(1, 24<<20) // several parts on every server
	name := client.MustPut(t, token, "content", "large.bin", content)
	client.MustFetch(t, "content", name, content)
	const path = "/static/file/content/large.bin"
	for _, tt := range []struct {
		header      string
		status      int
		from, until int
	}{
		{"bytes=0-99", http.StatusPartialContent, 0, 100},
		{"bytes=10485000-20971520", http.StatusPartialContent, 10485000, 20971521},
		{"bytes=-10", http.StatusPartialContent, len(content) - 10, len(content)},
		{"bytes=25165000-", http.StatusPartialContent, 25165000, len(content)},
		{"bytes=25165824-", http.StatusRequestedRangeNotSatisfiable, 0, 0},
	} {
		got := client.FetchURL(t, path, "Range", tt.header)
		if got.Status != tt.status {
			t.Errorf("%s: status %d, want %d", tt.header, got.Status, tt.status)
		}
		if tt.until > 0 && got.Body != string(content[tt.from:tt.until]) {
			t.Errorf("%s: got %d other bytes, want %d", tt.header, len(got.Body), tt.until-tt.from)
		}
	}
}

func remoteOverwrite(t *testing.T, client *site.Client, token string) {
	for i := range 3 {
		content := sample.Described(uint64(i), 3_000_000+i)
		if name := client.MustPut(t, token, "over", "same.bin", content); name != "same.bin" {
			t.Errorf("stored as %q", name)
		}
		client.MustFetch(t, "over", "same.bin", content)
	}
}

// TestRemoteTransfers copies, moves and deletes items within a storage of every driver.
func TestRemoteTransfers(t *testing.T) {
	t.Parallel()
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		c := site.NewChild(t)
		account := strings.TrimSuffix(site.Account, "\n")
		c.Start(strings.Replace(p.Media(p.Address, ""), account, account+" {\nmay upload move copy delete\n}", 1))
		client := c.HTTP1()
		token := client.MustLogin(t)
		content := sample.Described(1, 9<<20)
		client.MustPut(t, token, "content", "file.bin", content)
		transfer(t, client, token, "file/content/file.bin", "copy_to=sub/copy.bin")
		client.MustFetch(t, "content", "sub/copy.bin", content)
		client.MustFetch(t, "content", "file.bin", content)
		for range 2 { // the second one replaces the first one
			transfer(t, client, token, "file/content/file.bin", "copy_to=copy.bin&to_alias=over")
			client.MustFetch(t, "over", "copy.bin", content)
		}
		transfer(t, client, token, "file/content/file.bin", "to=moved.bin")
		client.MustFetch(t, "content", "moved.bin", content)
		if old := client.FetchURL(t, "/static/file/content/file.bin"); old.Status != http.StatusNotFound {
			t.Errorf("the moved item: status %d", old.Status)
		}
		img := sample.PhotoJPEG(640, 480)
		client.UploadImage(t, token, "content", "photo.jpg", img)
		transfer(t, client, token, "image/content/photo.jpg", "to=moved.jpg&to_alias=over")
		if got := client.FetchURL(t, "/static/img/over/moved.jpg"); got.Body != img || got.Header.Get("Content-Type") != "image/jpeg" {
			t.Errorf("status %d with %d bytes, want the %d of the image", got.Status, len(got.Body), len(img))
		}
		if variant := client.FetchURL(t, "/static/img/over/moved.jpg.webp"); !strings.HasPrefix(variant.Body, "RIFF") {
			t.Errorf("the variant: status %d", variant.Status)
		}
		transfer(t, client, token, "file/content", "action=delete&folder=sub")
		if got := client.FetchURL(t, "/static/file/content/sub/copy.bin"); got.Status != http.StatusNotFound {
			t.Errorf("an item of a deleted folder: status %d", got.Status)
		}
		client.MustFetch(t, "content", "moved.bin", content)
	})
}

// transfer moves or copies an item.
func transfer(t *testing.T, client *site.Client, token, item, form string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, client.Base+"/api/items/"+item, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s of %s: status %d, %s", form, item, answer.StatusCode, body)
	}
}

// TestRemoteWriters: 32 files of one name, uploaded at the same time through two Caddys, get
// distinct names, of which one is the plain name; through one Caddy on FTP, which belongs to one.
func TestRemoteWriters(t *testing.T) {
	t.Parallel()
	dated := regexp.MustCompile(`^photo-\d{10}\.bin$`)
	writers := func(t *testing.T, p site.Backend) {
		number := 2
		if p.Apart {
			number = 1
		}
		nodes := newNodes(t, p, number)
		names, contents := make([]string, 32), make([][]byte, 32)
		var wg sync.WaitGroup
		for i := range names {
			contents[i] = sample.Described(uint64(i), 1000+i)
			n := nodes[i%number]
			wg.Go(func() {
				r, err := n.client.Upload(t.Context(), n.token, "content", site.StreamPart{Name: "photo.bin", Body: bytes.NewReader(contents[i])})
				if err != nil || r.Status != http.StatusOK {
					t.Errorf("writer %d: %v %v", i, r, err)
					return
				}
				names[i] = r.Result[0].Filename
			})
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
		plain := 0
		for i, name := range names {
			if name == "photo.bin" {
				plain++
			} else if !dated.MatchString(name) || slices.Contains(names[:i], name) {
				t.Errorf("writer %d got the name %s", i, name)
			}
			nodes[(i+1)%number].client.MustFetch(t, "content", name, contents[i]) // through the other one
		}
		if plain != 1 {
			t.Errorf("%d writers got the plain name", plain)
		}
	}
	site.EachRemote(t, writers)
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		writers(t, local.Start(t))
	})
}

// TestRemoteRedirect: clients are redirected to the storage if it can sign addresses.
func TestRemoteRedirect(t *testing.T) {
	t.Parallel()
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		c := site.NewChild(t)
		c.Start(p.Media(p.Address, ""))
		client := c.HTTP1()
		token := client.MustLogin(t)
		content := sample.Described(1, 50_000)
		client.MustPut(t, token, "content", "file.bin", content)
		status, answer := c.Load(redirecting(p.Media(p.Address, "")))
		if p.Signs == site.NeverSigns {
			if status != http.StatusBadRequest || !strings.Contains(answer, "cannot sign") {
				t.Errorf("a storage that cannot sign is accepted: %d %s", status, answer)
			}
			return
		}
		if status != http.StatusOK {
			t.Fatal(status, answer)
		}
		if p.Signs == site.CannotSign {
			client.MustFetch(t, "content", "file.bin", content)
			return
		}
		token = client.MustLogin(t)
		remoteRedirect(t, client, token, content)
	})
}

func remoteRedirect(t *testing.T, client *site.Client, token string, content []byte) {
	r := client.FetchURL(t, "/static/file/content/file.bin")
	if cache := r.Header.Get("Cache-Control"); r.Status != http.StatusFound || cache != "private, max-age=300" {
		t.Fatalf("status %d, Cache-Control %q", r.Status, cache)
	}
	got := client.FetchURL(t, r.Header.Get("Location"), "Range", "bytes=1000-1999")
	if got.Status != http.StatusPartialContent || got.Body != string(content[1000:2000]) {
		t.Errorf("from the storage: status %d, %d bytes", got.Status, len(got.Body))
	}
	whole := client.FetchURL(t, r.Header.Get("Location"))
	if d := whole.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") {
		t.Errorf("the storage answers with Content-Disposition %q", d)
	}
	if missing := client.FetchURL(t, "/static/file/content/missing.bin"); missing.Status != http.StatusNotFound {
		t.Errorf("missing: status %d", missing.Status)
	}
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	up := client.UploadImage(t, token, "content", "drawing.svg", svg)
	if up.Status != http.StatusOK {
		t.Fatal(up)
	}
	drawing := client.FetchURL(t, up.Result[0].FullPath)
	if drawing.Status != http.StatusOK || !strings.Contains(drawing.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("SVG leaves its sandbox: status %d, %v", drawing.Status, drawing.Header)
	}
}

// redirecting makes both aliases content redirect clients to the storage.
func redirecting(media string) string {
	return strings.ReplaceAll(media, "storage keep\n", "storage keep\nredirect presigned 10m\n")
}
