package s3api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/testservice"
	"github.com/caddymedia/media/storagedrivers"
)

// ways store bytes under a key of a bucket, each in its own way. The source of a copy is an object that no check has seen.
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
		id := created.element(t, "UploadId")
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

// element returns the text of an element of the answer.
func (a answer) element(t *testing.T, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(a.body, "<"+name+">")
	text, _, ok := strings.Cut(rest, "</")
	if !ok {
		t.Fatalf("%d %s has no %s", a.status, a.body, name)
	}
	return text
}

// formVerdict uploads a file by a form: the folder of the key is the sub folder. It returns the status, and the key of the item.
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

// TestGateOfForms: a form, a put, a multipart upload and a copy have the same verdict about a name and bytes. S3 has one
// refusal more: that of another name than the key.
func TestGateOfForms(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
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
	samples, long := testservice.Samples, strings.Repeat("x", 2<<10)
	for _, c := range []struct{ alias, key, content string }{
		{"content", "a.txt", ""}, {"content", "A B.txt", "x"}, {"content", "a.exe", "x"}, {"content", "a", "x"}, {"content", "x/y/a.txt", "x"}, {"content", "X/a.txt", "x"},
		{"content", "a.txt", "\x7fELF\x02\x01\x01\x00"}, {"docs", "a.txt", "\x7fELF\x02\x01\x01\x00"}, {"docs", "a", "\x7fELF\x02\x01\x01\x00"},
		{"content", "a.pdf", "<!doctype html><script>1</script>"}, {"content", "a.svg", samples["svg"]}, {"docs", "a.svg", samples["svg"]},
		{"docs", "a.html", "<script>1</script>"}, {"web", "a.html", "<script>1</script>"}, {"content", "a.txt", "<?php phpinfo();"}, {"content", "a.phtml", "x"},
		{"docs", "a.png", "no image"}, {"docs", "a.pdf", samples["png"]}, {"small", "a.txt", "ten bytes!"}, {"small", "a.txt", "eleven byte"},
		{"large", "a.txt", long[:1<<10]}, {"large", "a.txt", long[:1<<10+1]}, {"docs", "a/x.php/b.txt", "x"}, {"docs", "a.PHP", "x"},
	} {
		check(item.File, c.alias, c.key, c.content)
	}
	for _, c := range []struct{ alias, key, content string }{
		{"content", "a.png", samples["png"]}, {"content", "a.jpg", samples["png"]}, {"content", "a.jpeg", samples["jpg"]}, {"content", "a.jpg", samples["jpg"]},
		{"content", "a.jfif", samples["jpg"]}, {"content", "a.PNG", samples["png"]}, {"exact", "a.PNG", samples["png"]}, {"content", "a.png", ""},
		{"content", "a.png", "<html>"}, {"content", "a.pdf", samples["pdf"]}, {"content", "a.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>"},
		{"keep", "a.svg", samples["svg"]}, {"nosvg", "a.svg", samples["svg"]}, {"few", "a.png", testservice.PNGOf(4, 3)}, {"few", "b.png", testservice.PNGOf(3, 3)},
		{"tiny", "a.jpg", samples["jpg"]}, {"content", "a.png", testservice.PNGBomb(1<<16, 1<<16)}, {"content", "a.png", samples["png"][:40]},
		{"pictures", "a.png", samples["png"]}, {"pictures", "a.png.webp", samples["png"]}, {"pictures", "a@thumb.png", samples["png"]}, {"content", "x.php.png", samples["png"]},
	} {
		check(item.Image, c.alias, c.key, c.content)
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

// TestWholeObjects: a piece of a file is never stored as a file, and a compressed one, which would be served as what it is not,
// neither.
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
