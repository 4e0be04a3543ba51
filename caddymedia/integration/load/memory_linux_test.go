package load_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"image"
	"image/draw"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// besides is the documented memory of the service in addition to image_memory.
const besides = 120 << 20

// flood is a load of many uploads of one image at the same time.
type flood struct {
	limits        string
	memory        int64 // the limit for images
	uploads       int
	width, height int
}

// TestFloodOfImages: of many photographs at once, each is stored or refused with Retry-After. A
// stored one has its variant, unless a busy machine needs longer than image_time. Memory stays
// within its limit, and small files do not wait.
func TestFloodOfImages(t *testing.T) {
	for name, f := range map[string]flood{
		"by default":            {"", 512 << 20, 50, 4000, 3000},
		"with little memory":    {"image_memory 128MiB\n", 128 << 20, 20, 2448, 1632},
		"with many workers":     {"image_workers 16\nimage_memory 256MiB\n", 256 << 20, 20, 4000, 2000},
		"with a line too short": {"image_queue 4\n", 512 << 20, 20, 2448, 1632},
	} {
		t.Run(name, f.run)
	}
}

func (f flood) run(t *testing.T) {
	c := site.NewChild(t)
	c.Start(strings.Replace(site.ImageConfig(f.limits), "webp 80 small", "webp", 1))
	client := c.HTTP1()
	token := client.MustLogin(t)
	photo := sample.PhotoJPEG(f.width, f.height)
	form := site.ImageForm("photo.jpg", photo)
	f.watchMemory(t, c)

	answers, failures := make([]site.Answer, f.uploads), make([]error, f.uploads)
	var clients sync.WaitGroup
	begin := time.Now()
	for i := range answers {
		clients.Go(func() {
			answers[i], failures[i] = http1Alone(c).Send(t.Context(), token, "image", strings.NewReader(form))
		})
	}
	var done atomic.Bool
	go func() {
		clients.Wait()
		done.Store(true)
	}()
	small, slowest := f.smallFiles(t, client, token, done.Load)
	took := time.Since(begin)
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	var names, bare []string
	busy := 0
	for _, r := range answers {
		switch {
		case r.Busy():
			busy++
		case r.Status == http.StatusOK && r.Result[0].WebP == r.Result[0].FullPath+".webp":
			names = append(names, r.Result[0].Filename)
		case r.Status == http.StatusOK && r.Result[0].WebP == "":
			bare = append(bare, "pictures/"+r.Result[0].Filename)
		default:
			t.Errorf("a photograph is answered with %v, %+v, Retry-After %q", r, r.Result, r.RetryAfter)
		}
	}
	t.Logf("%d photographs of %d bytes in %v: %d stored, %d without a variant, %d refused; the slowest of %d small files took %v",
		f.uploads, len(photo), took, len(names), len(bare), busy, len(small), slowest)
	if len(names) == 0 {
		t.Error("no photograph was stored")
	}
	if limit := 5 * time.Second; slowest > limit {
		t.Errorf("a small file took %v, want at most %v", slowest, limit)
	}
	wantWhole(t, c, photo, names, f)
	for _, name := range small {
		bare = append(bare, "small/"+name)
	}
	wantOnly(t, c, names, bare)
}

// TestFloodOfKinds: the same for the types of images that need the most memory per pixel.
func TestFloodOfKinds(t *testing.T) {
	const (
		memory = 256 << 20
		side   = 1500
	)
	deep := image.NewNRGBA64(image.Rect(0, 0, side, side))
	draw.Draw(deep, deep.Rect, sample.Photo(side, side), image.Point{}, draw.Src)
	for i := 6; i < len(deep.Pix); i += 8 {
		deep.Pix[i] = uint8(i / side)
	}
	kinds := map[string]string{
		"deep.png": sample.EncodePNG(t, deep), "few-colors.png": sample.EncodePNG(t, seeThrough(side)), "photo.png": sample.EncodePNG(t, sample.Photo(side, side)),
		"palette.gif": sample.PaletteGIF(t, sample.Photo(side, side)),
	}
	for name, content := range kinds {
		t.Run(name, func(t *testing.T) { floodOf(t, memory, map[string]string{name: content}) })
	}
	t.Run("all together", func(t *testing.T) { floodOf(t, memory, kinds) })
}

// floodOf sends several of each type at the same time.
func floodOf(t *testing.T, memory int64, kinds map[string]string) {
	c := site.NewChild(t)
	limits := fmt.Sprintf("image_workers 8\nimage_memory %dMiB\n", memory>>20)
	c.Start(strings.Replace(site.ImageConfig(limits), "webp 80 small", "webp", 1))
	token := c.HTTP1().MustLogin(t)
	flood{memory: memory}.watchMemory(t, c)
	var clients sync.WaitGroup
	for name, content := range kinds {
		form := site.ImageForm(name, content)
		for range max(12/len(kinds), 5) {
			clients.Go(func() {
				r, err := http1Alone(c).Send(t.Context(), token, "image", strings.NewReader(form))
				if err != nil || !r.Busy() && (r.Status != http.StatusOK || r.Result[0].WebP == "") {
					t.Errorf("%s is answered with %v, %+v, %v", name, r, r.Result, err)
				}
			})
		}
	}
	clients.Wait()
}

// seeThrough returns an image of 256 colours, alpha included, which is encoded both lossy and
// lossless.
func seeThrough(side int) image.Image {
	m := sample.Quartered(side, side)
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = uint8(i / 4 % 64)
	}
	return m
}

// TestMemoryComesBack: images sent one after the other need no more memory than the first.
func TestMemoryComesBack(t *testing.T) {
	const (
		memory = 128 << 20
		side   = 1500
	)
	c := site.NewChild(t)
	c.Start(strings.Replace(site.ImageConfig("image_workers 1\nimage_memory 128MiB\n"), "webp 80 small", "webp", 1))
	token := c.HTTP1().MustLogin(t)
	form := site.ImageForm("few-colors.png", sample.EncodePNG(t, seeThrough(side)))
	flood{memory: memory}.watchMemory(t, c)
	for i := range 12 {
		r, err := http1Alone(c).Send(t.Context(), token, "image", strings.NewReader(form))
		if err != nil || r.Status != http.StatusOK {
			t.Fatal(r, err)
		}
		now, _ := memoryOf(c.Cmd.Process, "VmRSS")
		t.Logf("after %d images the Caddy has %d MiB", i+1, now>>20)
	}
}

// http1Alone returns a client with one connection, which is closed at the end of the test.
func http1Alone(c *site.Child) *site.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	return &site.Client{Client: &http.Client{Transport: transport, Timeout: 2 * time.Minute}, Version: "HTTP/1.1", Base: "http://" + c.Plain}
}

// smallFiles uploads files one after the other until stop returns true.
func (f flood) smallFiles(t *testing.T, client *site.Client, token string, stop func() bool) (names []string, slowest time.Duration) {
	t.Helper()
	content := sample.Described(1, 1<<10)
	for i := 0; !stop(); i++ {
		body, err := io.ReadAll(site.StreamForm("small", site.StreamPart{Name: fmt.Sprintf("%d.bin", i), Body: bytes.NewReader(content)}))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r, err := client.Send(t.Context(), token, "file", bytes.NewReader(body))
		if err != nil || r.Status != http.StatusOK {
			t.Fatalf("a small file: %v %v", r, err)
		}
		slowest = max(slowest, time.Since(begin))
		names = append(names, r.Result[0].Filename)
		time.Sleep(20 * time.Millisecond)
	}
	return names, slowest
}

// watchMemory checks the peak memory of the Caddy when the test ends.
func (f flood) watchMemory(t *testing.T, c *site.Child) {
	t.Helper()
	before, peak, ok := watchMemory([]*os.Process{c.Cmd.Process})
	if !ok {
		site.Skip(t, "the system does not report the memory of a process")
	}
	t.Cleanup(func() {
		most := peak()
		t.Logf("the Caddy has had %d MiB at most, %d before", most>>20, before>>20)
		if limit := f.memory + besides; most > limit {
			t.Errorf("the Caddy has had %d MiB, want at most %d", most>>20, limit>>20)
		}
	})
}

// wantWhole expects every stored image to equal the uploaded one, and to have its variant.
func wantWhole(t *testing.T, c *site.Child, photo string, names []string, f flood) {
	t.Helper()
	var first string
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(c.Root, "pictures", name))
		if err != nil || string(b) != photo {
			t.Errorf("%s has %d bytes, want the %d that were sent; %v", name, len(b), len(photo), err)
		}
		b, err = os.ReadFile(filepath.Join(c.Root, "pictures", name+".webp"))
		if err != nil {
			t.Error(err)
			continue
		}
		if first == "" {
			first = string(b)
			if size := sample.DecodeWebP(t, first).Bounds(); size.Dx() != f.width || size.Dy() != f.height {
				t.Errorf("the variant of %s is %v", name, size)
			}
		}
		if string(b) != first {
			t.Errorf("the variant of %s is another one than the first", name)
		}
	}
}

// wantOnly expects images with their variants, and other files, but no leftovers of uploads that
// were not stored.
func wantOnly(t *testing.T, c *site.Child, images, others []string) {
	t.Helper()
	want := slices.Clone(others)
	for _, name := range images {
		want = append(want, "pictures/"+name, "pictures/"+name+".webp")
	}
	slices.Sort(want)
	site.Eventually(t, "nothing else is in the folder", func() bool { return slices.Equal(site.FilesBelow(t, c.Root), want) })
	if open, ok := c.OpenFiles(c.Root); ok && slices.ContainsFunc(open, site.IsNoFolder(c)) {
		t.Errorf("files stay open: %q", open)
	}
}

// TestMemoryStaysFlat: uploading and downloading much needs no more memory than a small file.
// MEDIA_TEST_MIB sets the size in MiB.
func TestMemoryStaysFlat(t *testing.T) {
	const limit = 32 << 20
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Account + `
storage keep {
	driver local $ROOT {
		sync off
	}
}
file_alias content {
	extensions bin
}
`)
	client := c.HTTP1()
	token := client.MustLogin(t)
	warm := sample.Described(1, 20<<20) // so that all code and all buffers are in memory
	client.MustFetch(t, "content", client.MustPut(t, token, "content", "warm.bin", warm), warm)

	moveMuch(t, c, client, token, limit)
}

// sizeOfMuch is a multiple of all limits of memory.
func sizeOfMuch(t *testing.T) int64 {
	t.Helper()
	return int64(site.Number(t, "MEDIA_TEST_MIB", 256)) << 20
}

// moveMuch uploads sizeOfMuch bytes twice, first as a resumable upload, whose item it downloads.
// The child may use less than limit bytes of memoryOf for it.
func moveMuch(t *testing.T, c *site.Child, client *site.Client, token string, limit int64) {
	t.Helper()
	size := sizeOfMuch(t)
	before, peak, ok := watchMemory([]*os.Process{c.Cmd.Process})
	if !ok {
		site.Skip(t, "the system does not report the memory of a process")
	}
	check := func(what string) {
		t.Helper()
		added := peak() - before
		t.Logf("%s: %d KiB more than the %d KiB before", what, added>>10, before>>10)
		if added >= limit {
			t.Errorf("%s used %d MiB", what, added>>20)
		}
	}
	sent, got := sha256.New(), sha256.New()
	u := &site.Tus{HTTP: client.Client, Base: client.Base, Token: token}
	err := u.Create(t.Context(), size, "alias", "content", "filename", "resumed.bin")
	if err == nil {
		err = u.Patch(t.Context(), 0, generated(size, sent), size)
	}
	if err != nil {
		t.Fatal(err)
	}
	check("the resumable upload")
	answer, err := client.Get(client.Base + "/static/file/content/" + u.Filename)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	n, err := io.Copy(got, answer.Body)
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Errorf("got %d bytes back with the hash %x, want %d with %x; error %v", n, got.Sum(nil), size, sent.Sum(nil), err)
	}
	check("the download")
	large := site.StreamPart{Name: "large.bin", Body: generated(size, sha256.New())}
	r, err := client.Upload(t.Context(), token, "content", large)
	if err != nil || r.Status != http.StatusOK {
		t.Fatal(r, err)
	}
	check("the upload")
}

// generated returns bytes that are generated as they are read.
func generated(size int64, hash hash.Hash) io.Reader {
	var key [32]byte
	copy(key[:], fmt.Sprint(size))
	return io.TeeReader(io.LimitReader(rand.NewChaCha8(key), size), hash)
}

// TestRemoteMemoryStaysFlat sends as much to a storage on another host and back. The other
// drivers are left out because their test servers keep it in memory, or because they work alike.
func TestRemoteMemoryStaysFlat(t *testing.T) {
	const limit = 64 << 20
	for _, kind := range site.RemoteDrivers {
		if !slices.Contains([]string{"s3", "sftp"}, kind.Name) {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			c, client, token := site.StartOn(t, kind.Start(t))
			warm := sample.Described(1, 20<<20) // so that all code and all buffers are in memory
			client.MustFetch(t, "content", client.MustPut(t, token, "content", "warm.bin", warm), warm)
			moveMuch(t, c, client, token, limit)
		})
	}
}

// memoryOf returns a figure of the memory of a process in bytes: "VmRSS" is the resident memory,
// "VmHWM" its peak. It returns false if the system does not report it.
func memoryOf(p *os.Process, name string) (int64, bool) {
	if p == nil {
		return 0, false
	}
	status, err := os.ReadFile(proc(p, "status"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		return kilobytes << 10, err == nil
	}
	return 0, false
}

func proc(p *os.Process, name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.Pid), name)
}

// processorTime returns the seconds of processor time that processes and their children have had,
// user and system. The clock of a process is exact, /proc counts in hundredths of a second.
func processorTime(b *testing.B, processes ...*os.Process) float64 {
	b.Helper()
	total := 0.0
	for _, p := range processes {
		var spent unix.Timespec
		if err := unix.ClockGettime(int32(^p.Pid<<3|2), &spent); err != nil { // CPUCLOCK_SCHED of clock_getcpuclockid(3)
			b.Fatal(err)
		}
		total += float64(spent.Nano())/1e9 + processorTime(b, children(b, p)...)
	}
	return total
}

func children(b *testing.B, p *os.Process) []*os.Process {
	b.Helper()
	var found []*os.Process
	tasks, err := filepath.Glob(proc(p, "task/*/children"))
	for _, task := range tasks {
		var list []byte
		if list, err = os.ReadFile(task); err != nil {
			break
		}
		for pid := range strings.FieldsSeq(string(list)) {
			n, _ := strconv.Atoi(pid) // the kernel writes numbers
			found = append(found, &os.Process{Pid: n})
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// watchMemory returns the memory of a single process, and a function that returns its peak since
// then. ok is false if the system does not report it, or there are several.
func watchMemory(processes []*os.Process) (before int64, peak func() int64, ok bool) {
	if len(processes) != 1 {
		return 0, nil, false
	}
	p := processes[0]
	before, ok = memoryOf(p, "VmRSS")
	if !ok || os.WriteFile(proc(p, "clear_refs"), []byte("5"), 0) != nil { // resets VmHWM
		return 0, nil, false
	}
	return before, func() int64 {
		most, _ := memoryOf(p, "VmHWM")
		return most
	}, true
}
