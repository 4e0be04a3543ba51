package browser_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// replacing are an image and a file alias whose items can be replaced.
const replacing = `storage replacing {
	driver local $ROOT
	overwrite_strategy overwrite
}
image_alias photos {
	storage replacing
	cache_control "public, max-age=3600"
}
file_alias notes {
	storage replacing
}
`

// TestBrowserItem: an item is renamed, replaced and deleted, its neighbours are shown by keyboard,
// and it is copied in several languages.
func TestBrowserItem(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+replacing)
	for i, name := range []string{"a.jpg", "b.jpg", "c.jpg", "d.jpg", "sub/e.jpg"} {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", name), sample.JPEG(t, 320+i, 240))
	}
	for _, name := range []string{"one.jpg", "two.jpg"} {
		site.PutFile(t, filepath.Join(p.Root, "img", "photos", name), sample.JPEG(t, 320, 240))
	}
	site.PutFile(t, filepath.Join(p.Root, "file", "content", "a [b] (c).txt"), "text")
	site.PutFile(t, filepath.Join(p.Root, "file", "notes", "note.txt"), "first")
	browse(t, "item", panelFacts(p, map[string]any{"jpegs": map[string][]byte{
		"new": []byte(sample.JPEG(t, 500, 100)), "newer": []byte(sample.JPEG(t, 50, 200)),
	}, "png": []byte(sample.PNG(t, 8, 8))}))
}

// TestBrowserSlow: answers about an item that arrive late, or not at all, leave the page true.
func TestBrowserSlow(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+replacing)
	for i, name := range []string{"a.jpg", "b.jpg", "c.jpg", "d.jpg"} {
		site.PutFile(t, filepath.Join(p.Root, "img", "photos", name), sample.JPEG(t, 320+i, 240))
	}
	browse(t, "slow", panelFacts(p, map[string]any{"jpeg": []byte(sample.JPEG(t, 500, 100))}))
}

// TestBrowserNames: items with long, hostile and foreign names work like others. A name with HTML
// in it is shown as text.
func TestBrowserNames(t *testing.T) {
	needsBrowser(t)
	const folder, odd = "<b>&amp;<i>", " <script>alert(1)<"
	p := site.StartPanel(t, site.Basic+"storage exact {\ndriver local $ROOT\nsanitize off\n}\nfile_alias exact {\nstorage exact\n}\n"+
		"storage odd {\ndriver local \"$ROOT"+odd+"\"\n}\n")
	names := []string{
		`"><img src=x onerror=alert(1)>.txt`, "a%2Fb.txt", "a#b?c=d&e.txt", "100%.txt", " leading.txt", "two  spaces.txt",
		"שלום עולם.txt", "😀 smile.txt", "[x](y) `z` {{.}}.txt", "it's, a <b>.txt", strings.Repeat("long", 49) + ".txt",
	}
	for _, name := range names {
		site.PutFile(t, filepath.Join(p.Root, "file", "exact", name), "text")
	}
	site.PutFile(t, filepath.Join(p.Root, "file", "exact", folder, names[0]), "text")
	browse(t, "names", panelFacts(p, map[string]any{"names": names, "folder": folder, "root": p.Root + odd}))
}

// TestBrowserPreview: items of all types are previewed, and hostile ones do nothing.
func TestBrowserPreview(t *testing.T) {
	needsBrowser(t)
	var asked atomic.Int64
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(evil.Close)
	p := site.StartPanel(t, site.Account+site.LocalDefault+"image_alias content\nfile_alias content {\nextensions webm webp\n}\n")
	script := fmt.Sprintf(`<script>top.hacked = 1; alert(1); fetch(%q)</script>`, evil.URL)
	svg := `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="alert(2)"><rect width="40" height="30" fill="red"/>` +
		strings.ReplaceAll(script, "&", "&amp;") + `<image href="` + evil.URL + `/image"/></svg>`
	for name, content := range map[string]string{
		"a.avif":        string(site.ReadFile(t, "../../internal/leaf/imaging/testdata/turned.avif")),
		"a.heic":        string(site.ReadFile(t, "../../internal/leaf/imaging/testdata/photo.heic")),
		"a.pdf":         pdf(""),
		"a.svg":         svg,
		"a.wav":         wav(2),
		"a.zip":         "PK",
		"binary.txt":    "a\x00b",
		"broken.mp4":    "no film",
		"broken.jpg":    "no image",
		"empty.txt":     "",
		"evil.html":     "<!doctype html><title>x</title>" + script,
		"evil.pdf":      pdf(fmt.Sprintf("app.launchURL(%q, true); this.submitForm(%q); this.getURL(%q)", evil.URL, evil.URL, evil.URL)),
		"evil.txt":      "a < b </pre>" + script + "\nend",
		"latin.txt":     "Gr\xfc\xdfe",
		"long.txt":      strings.Repeat("0123456789abcde\n", 8<<10),
		"soundonly.mp4": wav(1),
		"wide.txt":      "\xff\xfe\x61\x00\x11\x01",
	} {
		site.PutFile(t, filepath.Join(p.Root, "file", "content", name), content)
	}
	browse(t, "preview", panelFacts(p, nil))
	if asked.Load() > 0 {
		t.Errorf("hostile previews sent %d requests", asked.Load())
	}
}

// pdf returns a PDF with one red page, which runs a script when it is opened.
func pdf(script string) string {
	const red = "0.8 0.1 0.1 rg 0 0 300 200 re f"
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(" + strings.NewReplacer("(", `\(`, ")", `\)`).Replace(script) + ")>>>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<<>>>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(red), red),
	}
	file, table := "%PDF-1.4\n", ""
	for i, object := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(file))
		file += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	return file + fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n",
		len(objects)+1, table, len(objects)+1, len(file))
}

// wav returns some seconds of a rising tone.
func wav(seconds int) string {
	const rate = 8000
	sound := make([]byte, seconds*rate)
	for i := range sound {
		sound[i] = byte(i * i / rate)
	}
	header := []byte("RIFF")
	header = binary.LittleEndian.AppendUint32(header, uint32(36+len(sound)))
	header = append(header, "WAVEfmt "...)
	header = binary.LittleEndian.AppendUint32(header, 16)
	header = binary.LittleEndian.AppendUint16(header, 1) // PCM
	header = binary.LittleEndian.AppendUint16(header, 1) // channel
	header = binary.LittleEndian.AppendUint32(header, rate)
	header = binary.LittleEndian.AppendUint32(header, rate) // bytes per second
	header = binary.LittleEndian.AppendUint16(header, 1)    // byte per frame
	header = binary.LittleEndian.AppendUint16(header, 8)    // bits per sample
	header = append(header, "data"...)
	header = binary.LittleEndian.AppendUint32(header, uint32(len(sound)))
	return string(header) + string(sound)
}

// TestBrowserSelect: items are selected by mouse and keyboard, and on a phone by touch.
func TestBrowserSelect(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic)
	putImages(t, p, "all", 300)
	for _, folder := range []string{"all/album", "all/holidays", "all/team"} {
		putImages(t, p, folder, 3)
	}
	browse(t, "select", panelFacts(p, nil))
}

// TestBrowserActions: many items are deleted, moved, copied as addresses and downloaded, and
// folders are made and deleted.
func TestBrowserActions(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+"image_alias photos\nimage_alias secret {\nprivate\n}\n")
	for i := range 51 {
		site.PutFile(t, filepath.Join(p.Root, "img", "secret", fmt.Sprintf("image-%04d.jpg", i)), sample.JPEG(t, 8, 8))
	}
	putImages(t, p, "all", 1100)
	putImages(t, p, "few", 30)
	putImages(t, p, "few/below", 2)
	putImages(t, p, "old", 3)
	putImages(t, p, "old/older", 3)
	browse(t, "actions", panelFacts(p, nil))
}

// putImages stores images of some sizes and colours in a folder of the image alias content.
func putImages(t *testing.T, p *site.Panel, folder string, count int) {
	t.Helper()
	img := sample.JPEG(t, 320, 240)
	for i := range count {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", folder, fmt.Sprintf("image-%04d.jpg", i)), img)
	}
}

// TestBrowserTree: folders are dropped, chosen and stored with their trees, ten thousand files too.
func TestBrowserTree(t *testing.T) {
	needsBrowser(t)
	const many = 10_000
	p := site.StartPanel(t, site.Basic+docs)
	folder := t.TempDir()
	for _, name := range []string{
		"holiday/plan.txt", "holiday/Day One/notes.txt", "holiday/Day One/Thumbs.db", "holiday/.DS_Store",
		"holiday/.git/config", "holiday/program.exe", "holiday" + strings.Repeat("/deep", 16) + "/lost.txt", "single.txt",
	} {
		site.PutFile(t, filepath.Join(folder, name), "text")
	}
	for i := range many {
		site.PutFile(t, filepath.Join(folder, "many", fmt.Sprint(i/100), fmt.Sprintf("%05d.txt", i)), "text")
	}
	browse(t, "tree", panelFacts(p, map[string]any{"folder": folder, "many": many}))
}

// TestBrowserQueue: failed uploads are sent again, all are cancelled, and progress is shown on
// other pages, with the keyboard and on a phone.
func TestBrowserQueue(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "queue", panelFacts(p, nil))
}

// TestBrowserPaste: images and files are pasted.
func TestBrowserPaste(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	png := encoded(sample.PNG(t, 64, 48))
	browse(t, "paste", panelFacts(p, map[string]any{"png": png}))
}

// TestBrowserUpload: several files are uploaded, refused, cancelled and dropped.
func TestBrowserUpload(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "upload", panelFacts(p, nil))
}

// TestBrowserResume: a large upload is cut in the middle, continued, and cancelled.
func TestBrowserResume(t *testing.T) {
	needsBrowser(t)
	const size = 24 << 20
	p := site.StartPanel(t, site.Basic)
	proxy := faults.New(t, strings.TrimPrefix(p.URL, "http://"))
	proxy.CutAfter(size / 2)
	facts := panelFacts(p, map[string]any{"size": size})
	facts.Panel = "http://" + proxy.Address + "/media-admin/"
	browse(t, "resume", facts)
}

// TestBrowserUploads: unfinished uploads are listed and ended.
func TestBrowserUploads(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "uploads", panelFacts(p, map[string]any{"key": site.APIKey, "password": site.Password}))
}

// TestBrowserItems: items are found by browsing, searching, addresses and the browser's history.
func TestBrowserItems(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+"image_alias photos\n")
	img := sample.JPEG(t, 8, 8)
	site.PutFile(t, filepath.Join(p.Root, "img", "content", "tree.jpg"), img)
	for i := range 78 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "all", fmt.Sprintf("image-%02d.jpg", i)), img)
	}
	for i := range 70 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "deep", fmt.Sprintf("folder-%02d", i), "tree.jpg"), img)
	}
	for i := range 9 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "deep", fmt.Sprintf("tree-%d.jpg", i)), img)
	}
	for name, year := range map[string]int{"newest": 2040, "oldest": 2001} {
		file := filepath.Join(p.Root, "img", "content", "all", name+".jpg")
		site.PutFile(t, file, sample.JPEG(t, 8+year%2000, 8)) // the newest is the largest
		when := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
	}
	browse(t, "items", panelFacts(p, nil))
}

// TestBrowserPrivateItem: an alias is made private in its form, and its item is opened and copied
// by a signed address.
func TestBrowserPrivateItem(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Account+site.LocalDefault+"image_alias content {\nrendition small 320x320\n}\n")
	site.PutFile(t, filepath.Join(p.Root, "img", "content", "tree.jpg"), sample.JPEG(t, 640, 480))
	browse(t, "privateitem", panelFacts(p, nil))
}
