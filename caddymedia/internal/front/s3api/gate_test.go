package s3api_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// ways store bytes under a key of a bucket, each in its own way. The source of a copy is an object
// that no check has seen.
var ways = map[string]func(t *testing.T, f *front, bucket, key, content string) answer{
	"put": func(t *testing.T, f *front, bucket, key, content string) answer {
		return f.do(t, call{method: http.MethodPut, key: bucket + "/" + key, body: content})
	},
	"multipart": func(t *testing.T, f *front, bucket, key, content string) answer {
		target := bucket + "/" + key
		created := f.do(t, call{method: http.MethodPost, key: target, query: "uploads="})
		if created.status != http.StatusOK {
			return created
		}
		id := created.uploadID(t)
		part := f.do(t, call{method: http.MethodPut, key: target, query: "partNumber=1&uploadId=" + id, body: content})
		if part.status != http.StatusOK {
			f.do(t, call{method: http.MethodDelete, key: target, query: "uploadId=" + id})
			return part
		}
		end := f.do(t, call{method: http.MethodPost, key: target, query: "uploadId=" + id, body: fmt.Sprintf(
			"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>", part.header.Get("ETag"))})
		if end.status != http.StatusOK {
			f.do(t, call{method: http.MethodDelete, key: target, query: "uploadId=" + id})
		}
		return end
	},
	"copy": func(t *testing.T, f *front, bucket, key, content string) answer {
		f.site.Put(t, "file/docs/the source", content)
		defer f.site.Backend.Delete(t.Context(), "file/docs/the source", storagedrivers.DeleteOptions{})
		return f.do(t, call{method: http.MethodPut, key: bucket + "/" + key, header: http.Header{"X-Amz-Copy-Source": {docs + "/the%20source"}}})
	},
}

// uploadID returns the ID of the multipart upload in the answer.
func (a answer) uploadID(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(a.body, "<UploadId>")
	id, _, ok := strings.Cut(rest, "</")
	if !ok {
		t.Fatalf("%d %s has no ID", a.status, a.body)
	}
	return id
}

// formVerdict uploads a file by a form: the folder of the key is the sub folder. It returns the
// status, and the key of the item.
func formVerdict(t *testing.T, f *front, kind item.Kind, alias, key, content string) (status int, filename string) {
	t.Helper()
	folder, name := path.Split(key)
	if folder == "" {
		folder = "/"
	}
	body := "--x\r\nContent-Disposition: form-data; name=\"files[]\"; filename*=UTF-8''" + escaped(name) + "\r\n\r\n" + content + "\r\n--x--\r\n"
	r := f.site.Do(t, http.MethodPost, testservice.FilePath[:len("/api/upload/")]+kind.Name()+"?alias="+alias+"&sub_folder="+url.QueryEscape(folder),
		testservice.Multipart+testservice.Bearer, body)
	if r.Status != http.StatusOK {
		return r.Status, ""
	}
	return r.Status, r.Items(t)[0].Filename
}

// files are names and bytes that the aliases of a kind accept or refuse.
var files = []struct {
	kind                item.Kind
	alias, key, content string
}{
	{item.File, "content", "a.txt", ""},
	{item.File, "content", "A B.txt", "x"},
	{item.File, "content", "a.exe", "x"},
	{item.File, "content", "a", "x"},
	{item.File, "content", "x/y/a.txt", "x"},
	{item.File, "content", "X/a.txt", "x"},
	{item.File, "content", "a.txt", "\x7fELF\x02\x01\x01\x00"},
	{item.File, "docs", "a.txt", "\x7fELF\x02\x01\x01\x00"},
	{item.File, "docs", "a", "\x7fELF\x02\x01\x01\x00"},
	{item.File, "content", "a.pdf", "<!doctype html><script>1</script>"},
	{item.File, "content", "a.svg", testservice.Samples["svg"]},
	{item.File, "docs", "a.svg", testservice.Samples["svg"]},
	{item.File, "docs", "a.html", "<script>1</script>"},
	{item.File, "web", "a.html", "<script>1</script>"},
	{item.File, "content", "a.txt", "<?php phpinfo();"},
	{item.File, "content", "a.phtml", "x"},
	{item.File, "docs", "a.png", "no image"},
	{item.File, "docs", "a.pdf", testservice.Samples["png"]},
	{item.File, "small", "a.txt", "ten bytes!"},
	{item.File, "small", "a.txt", "eleven byte"},
	{item.File, "large", "a.txt", strings.Repeat("x", 1<<10)},
	{item.File, "large", "a.txt", strings.Repeat("x", 1<<10+1)},
	{item.File, "docs", "a/x.php/b.txt", "x"},
	{item.File, "docs", "a.PHP", "x"},
	{item.Image, "content", "a.png", testservice.Samples["png"]},
	{item.Image, "content", "a.jpg", testservice.Samples["png"]},
	{item.Image, "content", "a.jpeg", testservice.Samples["jpg"]},
	{item.Image, "content", "a.jpg", testservice.Samples["jpg"]},
	{item.Image, "content", "a.jfif", testservice.Samples["jpg"]},
	{item.Image, "content", "a.PNG", testservice.Samples["png"]},
	{item.Image, "exact", "a.PNG", testservice.Samples["png"]},
	{item.Image, "content", "a.png", ""},
	{item.Image, "content", "a.png", "<html>"},
	{item.Image, "content", "a.pdf", testservice.Samples["pdf"]},
	{item.Image, "content", "a.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>"},
	{item.Image, "keep", "a.svg", testservice.Samples["svg"]},
	{item.Image, "nosvg", "a.svg", testservice.Samples["svg"]},
	{item.Image, "few", "a.png", testservice.PNGOf(4, 3)},
	{item.Image, "few", "b.png", testservice.PNGOf(3, 3)},
	{item.Image, "tiny", "a.jpg", testservice.Samples["jpg"]},
	{item.Image, "content", "a.png", testservice.PNGBomb(1<<16, 1<<16)},
	{item.Image, "content", "a.png", testservice.Samples["png"][:40]},
	{item.Image, "pictures", "a.png", testservice.Samples["png"]},
	{item.Image, "pictures", "a.png.webp", testservice.Samples["png"]},
	{item.Image, "pictures", "a@thumb.png", testservice.Samples["png"]},
	{item.Image, "content", "x.php.png", testservice.Samples["png"]},
	{item.Image, "renaming", "a.jpg", testservice.Samples["png"]},
	{item.Image, "renaming", "a.png", testservice.Samples["png"]},
	{item.Image, "renaming", "a", testservice.Samples["png"]},
	{item.Image, "renaming", "a.txt", "x"},
}

// TestGateOfForms: a form, a put, a multipart upload and a copy have the same verdict about a name
// and bytes. S3 has one refusal more: that of another name than the key.
func TestGateOfForms(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.reload(t, func(c *media.Config) {
		c.ImageAliases["renaming"] = &media.ImageAlias{AliasOptions: testservice.On("main"), RenameMismatched: true}
	})
	check := func(kind item.Kind, alias, key, content string) {
		t.Helper()
		status, filename := formVerdict(t, f, kind, alias, key, content)
		want := f.taken(t)
		if filename != key {
			clear(want)
		}
		for name, store := range ways {
			a := store(t, f, kind.Name()+"-"+alias, key, content)
			code := "InvalidRequest"
			switch {
			case len(want) > 0:
				code = ""
			case status == http.StatusRequestEntityTooLarge:
				code = "EntityTooLarge"
			}
			stored := f.taken(t)
			if a.Code != code || !maps.Equal(stored, want) {
				t.Errorf("%s of %.80q with %.20q to %s %s: %d %s %s, stored %.200q; the form: %d %.80q",
					name, key, content, kind.Name(), alias, a.status, a.Code, a.Message, stored, status, filename)
			}
			if status == http.StatusOK && a.Code != "" && !strings.Contains(key, `\`) && !strings.Contains(a.Message, filename) {
				t.Errorf("%s of %.80q to %s %s: the message %q has not the name %q", name, key, kind.Name(), alias, a.Message, filename)
			}
		}
	}
	for _, name := range testservice.HostileNames {
		for _, alias := range []string{"exact", "replacing", "docs", "keep"} {
			if !strings.HasSuffix(name, "/") { // a form has no name then, and S3 a folder
				check(item.File, alias, name, "text\n")
			}
		}
		check(item.Image, "exact", name+".png", testservice.PNG)
	}
	for _, c := range files {
		check(c.kind, c.alias, c.key, c.content)
	}
}

// taken returns all objects, and removes them. It leaves out the records of completed uploads.
func (f *front) taken(t *testing.T) map[string]string {
	t.Helper()
	objects := f.site.Objects(t)
	for key := range objects {
		if err := f.site.Backend.Delete(t.Context(), key, storagedrivers.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(key, "@uploads/done/") {
			delete(objects, key)
		}
	}
	return objects
}

// TestWholeObjects: a piece of a file is never stored as a file, and a compressed one, which would
// be served as what it is not, neither.
func TestWholeObjects(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for header, want := range map[string]string{
		"Content-Range: bytes 0-3/8": "InvalidRequest", "Upload-Offset: 0": "InvalidRequest", "Content-Encoding: gzip": "InvalidRequest",
		"Content-Encoding: aws-chunked, gzip": "InvalidRequest", "Content-Encoding: identity": "", "Content-Encoding: aws-chunked": "", "Content-Encoding: ": "",
	} {
		name, value, _ := strings.Cut(header, ": ")
		for what, c := range map[string]call{
			"put": {method: http.MethodPut, body: "text"}, "multipart": {method: http.MethodPost, query: "uploads="},
		} {
			c.key, c.header = docs+"/a.txt", http.Header{name: {value}}
			if a := f.do(t, c); a.Code != want {
				t.Errorf("%s with %s: %d %s %s, want %q", what, header, a.status, a.Code, a.Message, want)
			}
			if stored := f.taken(t); want != "" && len(stored) > 0 {
				t.Errorf("%s with %s: stored %q", what, header, stored)
			}
		}
	}
}

// TestNoObjects: what is no item is no object either, for any operation: variants, unfinished
// uploads and names that no item has.
func TestNoObjects(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for target, stored := range map[string]string{
		"image-pictures/a.png.webp": "img/pictures/a.png.webp", docs + "/@uploads/a.txt": "file/docs/@uploads/a.txt", docs + "/a//b.txt": "", docs + "/../keep/a.txt": "file/keep/a.txt",
		docs + "/a/../../keep/a.txt": "file/keep/a.txt", docs + "/./a.txt": "file/docs/a.txt", docs + "/a.txt\x00": "file/docs/a.txt", docs + "/\xff": "",
		docs + "/" + strings.Repeat("a", 1025): "",
	} {
		if stored != "" {
			f.site.Put(t, stored, testservice.PNG)
		}
		before := f.site.Objects(t)
		for _, c := range []call{
			{method: "GET"},
			{method: "HEAD"},
			{method: "GET", query: "acl"},
			{method: "PUT", query: "acl"},
			{method: "GET", query: "tagging"},
			{method: "DELETE"},
			{method: "PUT", key: docs + "/copy.png", header: http.Header{source: {escaped(target)}}},
			{method: "POST", key: target[:strings.Index(target, "/")], query: "delete", body: "<Delete><Object><Key>" + strings.ToValidUTF8(strings.ReplaceAll(target[strings.Index(target, "/")+1:], "\x00", ""), "?") + "</Key></Object></Delete>"},
		} {
			want := http.StatusNotFound
			switch c.method {
			case "DELETE":
				want = http.StatusNoContent
			case "POST":
				want = http.StatusOK
			}
			if c.key == "" {
				c.key = target
			}
			if strings.Contains(c.body, "<Key>a.txt</Key>") {
				continue // that is one
			}
			if a := f.do(t, c); a.status != want {
				t.Errorf("%s %q?%s: %d %s %s, want %d", c.method, c.key, c.query, a.status, a.Code, a.Message, want)
			}
		}
		if after := f.site.Objects(t); !maps.Equal(after, before) {
			t.Fatalf("%q: stored are %q", target, after)
		}
		f.taken(t)
	}
}

// TestHosts: the bucket is in the host only below the domain, and never in both.
func TestHosts(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.site.Put(t, "file/docs/a.txt", "docs")
	f.site.Put(t, "file/docs/file-docs/a.txt", "below")
	for _, tt := range []struct{ host, path, want string }{
		{"s3.example.com", docs + "/a.txt", "docs"},
		{"file-docs.s3.example.com", "a.txt", "docs"},
		{"file-docs.s3.example.com:8443", "a.txt", "docs"},
		{"FILE-DOCS.S3.EXAMPLE.COM", "a.txt", "docs"},
		{"file-docs.s3.example.com", docs + "/a.txt", "below"},
		{"file-docs.s3.example.com", "../keep/a.txt", "NoSuchKey"},
		{"file-keep.s3.example.com", docs + "/a.txt", "NoSuchKey"},
		{"file-docs.s3.example.com.", docs + "/a.txt", "docs"},
		{"a.file-docs.s3.example.com", "a.txt", "NoSuchBucket"},
		{".s3.example.com", "a.txt", "InvalidRequest"},
		{"file-docss3.example.com", docs + "/a.txt", "docs"},
		{"file-docs.other.example.com", docs + "/a.txt", "docs"},
	} {
		a := f.do(t, call{method: http.MethodGet, key: tt.path, header: http.Header{"Host": {tt.host}}})
		if got := cmp.Or(a.Code, a.body); got != tt.want {
			t.Errorf("%s of %s: %d %s, want %s", tt.path, tt.host, a.status, got, tt.want)
		}
	}
}

// TestRefusedForms: a body in chunks that are not decoded is not stored, and the number of a part
// has no sign.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	framed := f.do(t, call{
		method: http.MethodPut, key: docs + "/a.txt", body: "5\r\nhello\r\n0\r\n\r\n", payload: "UNSIGNED-PAYLOAD",
		header: http.Header{"Content-Encoding": {"aws-chunked"}, "X-Amz-Decoded-Content-Length": {"5"}},
	})
	if framed.status != http.StatusBadRequest || f.get(t, docs, "a.txt") != "NoSuchKey" {
		t.Errorf("chunks without a signature of chunks: %d %s", framed.status, framed.body)
	}
	created := f.do(t, call{method: http.MethodPost, key: docs + "/b.txt", query: "uploads="})
	for number, want := range map[string]int{"1": http.StatusOK, "10000": http.StatusOK, "%2B1": 400, "-1": 400, "0": 400, "10001": 400, "": 400, "1.0": 400} {
		part := f.do(t, call{method: http.MethodPut, key: docs + "/b.txt", query: "partNumber=" + number + "&uploadId=" + created.uploadID(t), body: "x"})
		if part.status != want {
			t.Errorf("part %q: %d %s, want %d", number, part.status, part.body, want)
		}
	}
}
