package features_test

import (
	"compress/gzip"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// withVariants starts a site whose images have variants, at the root of the alias. more are
// additional lines of the alias.
func withVariants(t *testing.T, block string, more ...string) *site.Site {
	t.Helper()
	return site.Start(t, site.Account+site.AtRoot+"}\nimage_alias content {\nwebp\n"+strings.Join(more, "\n")+"\n}", block)
}

// fetchVariant fetches the variant named in an answer, which must have exactly the documented
// address.
func fetchVariant(t *testing.T, s *site.Site, of site.Stored) string {
	t.Helper()
	if of.WebP != of.FullPath+".webp" {
		t.Fatalf("webp %q, want %q", of.WebP, of.FullPath+".webp")
	}
	r := s.Fetch(t, of.WebP)
	if r.Status != http.StatusOK {
		t.Fatalf("%s: %d", of.WebP, r.Status)
	}
	return r.Body
}

// countVariants returns how many variants of the alias content had a result, according to the
// metrics. The site must serve them as /metrics.
func countVariants(t *testing.T, s *site.Site, result string) int {
	t.Helper()
	r := s.Get(t, "/metrics")
	if r.Status != http.StatusOK {
		t.Fatalf("metrics: %d", r.Status)
	}
	found := regexp.MustCompile(`(?m)^caddy_media_variants_total\{alias="content",result="` + result + `"\} (\d+)$`).FindStringSubmatch(r.Body)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestVariants: images are stored without metadata, and those that can have a variant have one at
// the documented address. Every outcome is counted, and the log names the image without a variant.
func TestVariants(t *testing.T) {
	s := withVariants(t, "metrics /metrics\nmedia", "strip_metadata on", "negotiate on")
	noise := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(rand.Uint32())
	}
	photo := sample.EncodeJPEG(t, sample.Quartered(60, 40), 90)
	const comment = "\xff\xfe\x00\x09comment"
	for _, c := range []struct{ name, content, stored, result string }{
		{"photo.jpg", photo[:2] + comment + photo[2:] + "<?php", photo, "made"},
		{"drawing.png", sample.EncodePNG(t, sample.Photo(300, 200)), "", "made"},
		{"moving.gif", sample.MovingGIF(t, 5), "", "larger"},
		{"noise.jpg", sample.EncodeJPEG(t, noise, 1), "", "larger"},
		{"wide.png", sample.PNG(t, 16_384, 2), "", "none"},
		{"drawing.svg", sample.SVG, "", ""}, // no variant is tried
	} {
		before := countVariants(t, s, c.result)
		answer := s.UploadImage(t, site.File(c.name, c.content))
		one := answer.One(t)
		if c.stored == "" {
			c.stored = c.content
		}
		if got := s.Fetch(t, one.FullPath); got.Body != c.stored {
			t.Errorf("%s: %d with %d bytes, want %d", c.name, got.Status, len(got.Body), len(c.stored))
		}
		if c.result != "" && countVariants(t, s, c.result) != before+1 {
			t.Errorf("%s is not counted as %q", c.name, c.result)
		}
		if c.result == "" || c.result == "none" {
			if r := s.Fetch(t, one.FullPath+".webp"); strings.Contains(answer.Body, `"webp"`) || r.Status != http.StatusNotFound {
				t.Errorf("%s has a variant: %d %s", c.name, r.Status, answer.Body)
			}
			continue
		}
		variant, want := fetchVariant(t, s, one), sample.Decode(t, c.content).Bounds()
		if f := sample.WebPFeatures(t, variant); f.Width != want.Dx() || f.Height != want.Dy() || strings.Contains(variant, "comment") {
			t.Errorf("the variant of %s is %+v, want one of %v without metadata", c.name, f, want)
		}
		if r := s.Do(t, http.MethodGet, "/static/img/content/"+c.name, site.Headers("Accept", "image/webp"), ""); r.Body != variant {
			t.Errorf("%s negotiated: %d, %d bytes", c.name, r.Status, len(r.Body))
		}
	}
	s.WaitForLog(t, "wide.png")
	if none := countVariants(t, s, "none"); none != 1 {
		t.Errorf("%d are counted as without a variant, want 1", none)
	}
	stored := len(site.Files(t, s.Root))
	got := s.UploadImage(t, site.File("1.jpg", photo), site.File("2.jpg", photo[:len(photo)/2])).Failures(t, http.StatusUnsupportedMediaType)
	if len(got) != 1 || got[0].Filename != "2.jpg" || len(site.Files(t, s.Root)) != stored {
		t.Errorf("errors %v, want one for the damaged image, and nothing stored", got)
	}
}

// TestNegotiatedCompressed: with encode around the service, an answer depends on two request
// headers.
func TestNegotiatedCompressed(t *testing.T) {
	s := withVariants(t, "encode gzip {\nminimum_length 1\nmatch header Content-Type image/*\n}\nmedia", "negotiate on")
	content := sample.EncodeJPEG(t, sample.Photo(200, 100), 80)
	one := s.UploadImage(t, site.File("photo.jpg", content)).One(t)
	path := strings.TrimPrefix(one.FullPath, s.URL)
	for accept, want := range map[string]string{"": content, "image/webp": fetchVariant(t, s, one)} {
		r := s.Get(t, path, "Accept", accept, "Accept-Encoding", "gzip")
		if r.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("it is not compressed: %v", r.Header)
		}
		vary := strings.Split(strings.ReplaceAll(strings.Join(r.Header["Vary"], ","), " ", ""), ",")
		slices.Sort(vary)
		if !slices.Equal(vary, []string{"Accept", "Accept-Encoding"}) {
			t.Errorf("Vary %q, want Accept and Accept-Encoding", vary)
		}
		unpack, err := gzip.NewReader(strings.NewReader(r.Body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(unpack); err != nil || string(got) != want {
			t.Errorf("Accept %q: %d bytes, want %d; %v", accept, len(got), len(want), err)
		}
		if got := s.Get(t, path, "Accept", accept, "Accept-Encoding", "gzip", "If-None-Match", r.Header.Get("ETag")); got.Status != http.StatusNotModified {
			t.Errorf("Accept %q: asking again: %d", accept, got.Status)
		}
	}
}

// TestBuiltCaddy makes variants with the Caddy in MEDIA_TEST_CADDY, for example built by xcaddy,
// with the encoder MEDIA_TEST_ENCODER. By default it uses the Caddy of the tests.
func TestBuiltCaddy(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(site.ImageConfig(""))
	client := c.HTTP1()
	token := client.MustLogin(t)
	for name, file := range map[string]string{
		"photo.jpg": sample.PhotoJPEG(641, 480), "drawing.png": sample.EncodePNG(t, sample.Quartered(65, 48)), "moving.gif": sample.MovingGIF(t, 4),
	} {
		answer, err := client.Send(t.Context(), token, "image", strings.NewReader(site.ImageForm(name, file)))
		if err != nil || answer.Status != http.StatusOK || !strings.HasSuffix(answer.Result[0].WebP, name+".webp") {
			t.Errorf("%s: %v %v", name, answer, err)
			continue
		}
		variant, err := os.ReadFile(filepath.Join(c.Root, "pictures", name+".webp"))
		if err != nil {
			t.Error(err)
			continue
		}
		if want := map[string]int{"moving.gif": 4}[name]; sample.WebPFeatures(t, string(variant)).FrameCount < want {
			t.Errorf("the variant of %s has %+v", name, sample.WebPFeatures(t, string(variant)))
		}
	}
	if encoder := os.Getenv("MEDIA_TEST_ENCODER"); !strings.Contains(c.Output(), encoder) {
		t.Errorf("its encoder is not %s", encoder)
	}
}

// TestReloadWhileEncoding: an upload whose image is processed during a reload succeeds, with its
// variant. The encoder is logged once, not at each reload.
func TestReloadWhileEncoding(t *testing.T) {
	c := site.NewTLSChild(t)
	limits := "image_workers 3\n" + site.PatientLimits + site.BigImage
	c.Start(site.ImageConfig(limits))
	token := c.HTTP1().MustLogin(t)
	clients := c.Clients()
	uploads := make([]*site.PendingImage, len(clients))
	photo := sample.PhotoJPEG(4200, 2800) // it takes seconds, the reloads take tenths of them
	for i, client := range clients {
		uploads[i] = c.BeginImage(t, client, token, "slow-"+client.Version[5:6]+".jpg", photo)
	}
	const named = `"msg":"WebP encoder"`
	for range 2 {
		c.LoadOnly(strings.Replace(site.ImageConfig(limits), "webp 80 small", "cache_control no-store\nwebp 70 fast", 1))
		if !uploads[0].Going() {
			t.Fatal("an upload was done too soon to show anything")
		}
		c.LoadOnly(site.ImageConfig(limits))
	}
	if got := strings.Count(c.Output(), named); got != 1 {
		t.Errorf("the encoder is named %d times, want once", got)
	}
	c.LoadOnly(site.ImageConfig("image_workers 2\n" + site.PatientLimits + site.BigImage)) // the next ones have another queue
	if !uploads[2].Going() {
		t.Error("no upload was in progress during the reloads")
	}
	for _, u := range uploads {
		u.MustSucceed(t)
	}
	c.MustHaveImages(t, "slow-1.jpg", "slow-2.jpg", "slow-3.jpg")
	client := c.HTTP1()
	r, err := client.Send(t.Context(), token, "image", strings.NewReader(site.ImageForm("after.jpg", sample.PhotoJPEG(64, 64))))
	if err != nil || r.Status != http.StatusOK || r.Result[0].WebP == "" {
		t.Errorf("after the reloads: %v %v", r, err)
	}
}

// leaver sends a whole form, waits until it is processed, and then disconnects without reading the
// answer.
type leaver func(t *testing.T, c *site.Child, token, form string)

var leavers = map[string]leaver{
	"closed over HTTP/1.1": func(t *testing.T, c *site.Child, token, form string) {
		leaveRaw(t, c, token, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form), false)
	},
	"reset over HTTP/1.1": func(t *testing.T, c *site.Child, token, form string) {
		leaveRaw(t, c, token, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form), true)
	},
	"closed over HTTP/1.1, chunked": func(t *testing.T, c *site.Child, token, form string) {
		leaveRaw(t, c, token, "Transfer-Encoding: chunked\r\n\r\n"+inChunks(form), false)
	},
	"cancelled over HTTP/2": func(t *testing.T, c *site.Child, token, form string) {
		leave(t, c, c.HTTP2(), token, form)
	},
	"cancelled over HTTP/3": func(t *testing.T, c *site.Child, token, form string) {
		leave(t, c, c.HTTP3(), token, form)
	},
}

func inChunks(body string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(len(body), 50_000)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// leaveRaw sends the rest of a request after its first lines.
func leaveRaw(t *testing.T, c *site.Child, token, rest string, reset bool) {
	t.Helper()
	conn, err := net.Dial("tcp", c.Plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := c.Images()
	head := fmt.Sprintf("POST /api/upload/image HTTP/1.1\r\nHost: %s\r\nHTTP_SERVICE_API_KEY: %s\r\nHTTP_SERVICE_ACCESS_TOKEN: %s\r\n"+
		"Content-Type: multipart/form-data; boundary=%s\r\n", c.Plain, site.APIKey, token, site.StreamBoundary)
	if _, err := conn.Write([]byte(head + rest)); err != nil {
		t.Fatal(err)
	}
	site.Eventually(t, "the image is taken in", func() bool { return c.Images() > before })
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatal("it was answered before the client disconnected")
	}
	if reset {
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
	}
}

func leave(t *testing.T, c *site.Child, client *site.Client, token, form string) {
	t.Helper()
	_, content, _ := strings.Cut(form, "application/octet-stream\r\n\r\n")
	p := c.BeginImage(t, client, token, "big.jpg", strings.TrimSuffix(content, "\r\n--"+site.StreamBoundary+"--\r\n"))
	if !p.Going() {
		t.Fatalf("it was answered before the client disconnected: %v %v", p.Answer, p.Err)
	}
	p.Cancel()
	<-p.Done
}

// TestLeaving: the client of a big image disconnects while the only encoder works on it. The
// encoder stops, the next image does not wait, and nothing of the big one is stored.
func TestLeaving(t *testing.T) {
	c := site.NewTLSChild(t)
	c.Start(site.ImageConfig("image_workers 1\n" + site.PatientLimits + site.BigImage))
	client := c.HTTP1()
	token := client.MustLogin(t)
	big := site.ImageForm("big.jpg", sample.SlowImage())
	next := site.ImageForm("next.jpg", sample.PhotoJPEG(1100, 1000)) // a small one would not wait
	whole, err := client.Send(t.Context(), token, "image", strings.NewReader(big))
	if err != nil || whole.Status != http.StatusOK || whole.Result[0].WebP == "" {
		t.Fatal(whole, err)
	}
	t.Logf("the big image takes %v", whole.Took)
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"big.jpg"}
	for name, left := range leavers {
		t.Run(name, func(t *testing.T) {
			left(t, c, token, big)
			r, err := client.Send(t.Context(), token, "image", strings.NewReader(next))
			if err != nil || r.Status != http.StatusOK || r.Result[0].WebP == "" {
				t.Fatal(r, err)
			}
			t.Logf("the next image takes %v", r.Took)
			if encoder.Stops() && r.Took > whole.Took*3/4 {
				t.Errorf("the next image takes %v, the whole big one %v", r.Took, whole.Took)
			}
			names = append(names, r.Result[0].Filename)
			c.MustHaveImages(t, names...)
		})
	}
	if log := c.Output(); strings.Contains(log, `"level":"error"`) {
		t.Error("clients that leave are errors in the log")
	}
	c.Stop()
	if left := site.Hidden(t, c.Root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
}
