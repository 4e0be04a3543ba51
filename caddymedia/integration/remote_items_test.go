package integration

import (
	"net/http"
	"strings"
	"testing"
)

// TestRemoteItems uploads pictures and files to a storage of every driver and fetches them.
func TestRemoteItems(t *testing.T) {
	eachRemote(t, func(t *testing.T, p remoteBackend) {
		_, client, token := startOn(t, p)
		t.Run("picture", func(t *testing.T) { remotePicture(t, client, token) })
		t.Run("large file", func(t *testing.T) { remoteLargeFile(t, client, token) })
		t.Run("append time", func(t *testing.T) { remoteAppendTime(t, client, token) })
		t.Run("overwrite", func(t *testing.T) { remoteOverwrite(t, client, token) })
	})
}

func remotePicture(t *testing.T, client *childClient, token string) {
	for _, alias := range []string{"content", "over"} {
		picture := drawnJPEG(640, 480)
		r := client.uploadPicture(t, token, alias, "Šunka & vejce.jpg", picture)
		if r.status != http.StatusOK || r.Result[0].Filename != "sunka-vejce.jpg" {
			t.Fatalf("uploading a picture: %v %+v", r, r.Result)
		}
		got := client.get(t, r.Result[0].FullPath)
		if got.status != http.StatusOK || got.body != picture {
			t.Errorf("status %d with %d bytes, want the %d of the picture", got.status, len(got.body), len(picture))
		}
		if got.header.Get("Content-Type") != "image/jpeg" || got.header.Get("ETag") == "" || got.header.Get("Last-Modified") == "" {
			t.Errorf("headers %v", got.header)
		}
		same := client.get(t, r.Result[0].FullPath, "If-None-Match", got.header.Get("ETag"))
		if same.status != http.StatusNotModified {
			t.Errorf("requested again: status %d, want 304", same.status)
		}
		variant := client.get(t, r.Result[0].WebP)
		if variant.header.Get("Content-Type") != "image/webp" || !strings.HasPrefix(variant.body, "RIFF") {
			t.Errorf("variant of %d bytes, status %d, %v", len(variant.body), variant.status, variant.header)
		}
	}
}

func remoteLargeFile(t *testing.T, client *childClient, token string) {
	content := described(1, 100<<20)
	name := client.mustPut(t, token, "content", "large.bin", content)
	client.mustFetch(t, "content", name, content)
	const path = "/static/file/content/large.bin"
	for _, tt := range []struct {
		header      string
		status      int
		from, until int
	}{
		{"bytes=0-99", http.StatusPartialContent, 0, 100},
		{"bytes=52428000-62914560", http.StatusPartialContent, 52428000, 62914561},
		{"bytes=-10", http.StatusPartialContent, len(content) - 10, len(content)},
		{"bytes=104857000-", http.StatusPartialContent, 104857000, len(content)},
		{"bytes=104857600-", http.StatusRequestedRangeNotSatisfiable, 0, 0},
	} {
		got := client.get(t, path, "Range", tt.header)
		if got.status != tt.status {
			t.Errorf("%s: status %d, want %d", tt.header, got.status, tt.status)
		}
		if tt.until > 0 && got.body != string(content[tt.from:tt.until]) {
			t.Errorf("%s: got %d other bytes, want %d", tt.header, len(got.body), tt.until-tt.from)
		}
	}
}

func remoteAppendTime(t *testing.T, client *childClient, token string) {
	names := map[string][]byte{}
	for i := range 3 {
		content := described(uint64(i), 10_000+i)
		names[client.mustPut(t, token, "content", "same.bin", content)] = content
	}
	if len(names) != 3 || names["same.bin"] == nil {
		t.Errorf("three files of one name are called %v", names)
	}
	for name, content := range names {
		client.mustFetch(t, "content", name, content)
	}
}

func remoteOverwrite(t *testing.T, client *childClient, token string) {
	for i := range 3 {
		content := described(uint64(i), 3_000_000+i)
		if name := client.mustPut(t, token, "over", "same.bin", content); name != "same.bin" {
			t.Errorf("stored as %q", name)
		}
		client.mustFetch(t, "over", "same.bin", content)
	}
	before := drawnJPEG(64, 64)
	after := drawnJPEG(80, 40)
	first := client.uploadPicture(t, token, "over", "picture.jpg", before)
	second := client.uploadPicture(t, token, "over", "picture.jpg", after)
	if first.status != http.StatusOK || second.status != http.StatusOK {
		t.Fatal(first, second)
	}
	got := client.get(t, second.Result[0].FullPath)
	if got.status != http.StatusOK || got.body != after {
		t.Errorf("status %d with %d bytes after the picture was replaced", got.status, len(got.body))
	}
}

// TestRemoteWriters: 32 files of one name, uploaded at the same time through two Caddys, get
// distinct names.
func TestRemoteWriters(t *testing.T) {
	eachRemote(t, func(t *testing.T, p remoteBackend) {
		clients, tokens := make([]*childClient, 2), make([]string, 2)
		for i := range clients {
			_, clients[i], tokens[i] = startOn(t, p)
		}
		writersOfOneName(t, 32, clients, tokens)
	})
}

// TestRemoteRedirect: clients are redirected to the storage if it can sign addresses.
func TestRemoteRedirect(t *testing.T) {
	eachRemote(t, func(t *testing.T, p remoteBackend) {
		c := newChild(t)
		c.start(p.media(p.address, ""))
		client := c.http1()
		token := client.mustLogin(t)
		content := described(1, 50_000)
		client.mustPut(t, token, "content", "file.bin", content)
		status, answer := c.load(redirecting(p.media(p.address, "")))
		if p.signs == neverSigns {
			if status != http.StatusBadRequest || !strings.Contains(answer, "cannot sign") {
				t.Errorf("a storage that cannot sign is accepted: %d %s", status, answer)
			}
			return
		}
		if status != http.StatusOK {
			t.Fatal(status, answer)
		}
		if p.signs == cannotSign {
			client.mustFetch(t, "content", "file.bin", content)
			return
		}
		token = client.mustLogin(t)
		remoteRedirect(t, client, token, content)
	})
}

func remoteRedirect(t *testing.T, client *childClient, token string, content []byte) {
	r := client.get(t, "/static/file/content/file.bin")
	if cache := r.header.Get("Cache-Control"); r.status != http.StatusFound || cache != "private, max-age=300" {
		t.Fatalf("status %d, Cache-Control %q", r.status, cache)
	}
	got := client.get(t, r.header.Get("Location"), "Range", "bytes=1000-1999")
	if got.status != http.StatusPartialContent || got.body != string(content[1000:2000]) {
		t.Errorf("from the storage: status %d, %d bytes", got.status, len(got.body))
	}
	whole := client.get(t, r.header.Get("Location"))
	if d := whole.header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") {
		t.Errorf("the storage answers with Content-Disposition %q", d)
	}
	if missing := client.get(t, "/static/file/content/missing.bin"); missing.status != http.StatusNotFound {
		t.Errorf("missing: status %d", missing.status)
	}
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	up := client.uploadPicture(t, token, "content", "drawing.svg", svg)
	if up.status != http.StatusOK {
		t.Fatal(up)
	}
	drawing := client.get(t, up.Result[0].FullPath)
	if drawing.status != http.StatusOK || !strings.Contains(drawing.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("SVG leaves its sandbox: status %d, %v", drawing.status, drawing.header)
	}
}

// redirecting makes both aliases content redirect clients to the storage.
func redirecting(media string) string {
	return strings.ReplaceAll(media, "storage keep\n", "storage keep\nredirect presigned 10m\n")
}
