package http_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

const limits = `limits {
	max_body 64KiB
	max_files 3
	max_fields 4
	max_field_size 100B
	max_part_header 1KiB
	max_image_size 20KiB
	max_file_size 10KiB
	max_pixels 1000
}
`

// TestLimits: each limit, at its value and just above.
func TestLimits(t *testing.T) {
	s := site.Start(t, site.Basic+limits, "media")
	text := func(size int) site.Part { return site.File("a.txt", strings.Repeat("x", size)) }
	withHeader := func(size int) site.Part {
		p := text(1)
		p.Header = "X-More: " + strings.Repeat("x", size) + "\r\n"
		return p
	}
	many := func(n int, p site.Part) []site.Part {
		parts := make([]site.Part, n)
		for i := range parts {
			parts[i] = p
		}
		return parts
	}
	one := []site.Part{text(1)}
	for _, c := range []struct {
		name  string
		parts []site.Part
		want  int
	}{
		{"files", many(3, text(1)), 200},
		{"a file more", many(4, text(1)), 413},
		{"fields", append(many(4, site.Field("x", "")), one...), 200},
		{"a field more", append(many(5, site.Field("x", "")), one...), 413},
		{"a field more, behind", append(one, many(5, site.Field("x", ""))...), 413},
		{"field", append([]site.Part{site.Field("x", strings.Repeat("x", 100))}, one...), 200},
		{"larger field", append([]site.Part{site.Field("x", strings.Repeat("x", 101))}, one...), 413},
		{"larger alias", append([]site.Part{site.Field("alias", strings.Repeat("x", 101))}, one...), 413},
		{"huge field", append([]site.Part{site.Field("x", strings.Repeat("x", 50<<10))}, one...), 413},
		{"part header", []site.Part{withHeader(850)}, 200},
		{"larger part header", []site.Part{withHeader(1000)}, 413},
		{"huge part header", []site.Part{withHeader(50 << 10)}, 413},
		{"many part headers", []site.Part{{Name: "files[]", File: true, Filename: "a.txt", Header: strings.Repeat("A: b\r\n", 5000)}}, 413},
		{"file", []site.Part{text(10 << 10)}, 200},
		{"larger file", []site.Part{text(10<<10 + 1)}, 413},
		{"larger body", many(3, text(25<<10)), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.UploadFile(t, c.parts...)
			if c.want == http.StatusOK {
				r.Result(t)
				return
			}
			before := len(site.Files(t, s.Root))
			r.Failures(t, c.want)
			if after := len(site.Files(t, s.Root)); after != before {
				t.Errorf("%d files, want %d as before", after, before)
			}
		})
	}
}

// TestLimitOfAlias: the limit of the final alias applies, whether it is larger or smaller than that
// of the alias first assumed for the file.
func TestLimitOfAlias(t *testing.T) {
	s := site.Start(t, site.Basic+"file_alias small {\nmax_size 10B\n}\nfile_alias large {\nmax_size 1KiB\n}\nlimits {\nmax_file_size 100B\n}", "media")
	for alias, limit := range map[string]int{"small": 10, "content": 100, "large": 1024} {
		for size, want := range map[int]int{limit: 200, limit + 1: 413} {
			for _, first := range []bool{true, false} {
				parts := []site.Part{site.Field("alias", alias), site.File("a.txt", strings.Repeat("x", size))}
				if !first {
					parts[0], parts[1] = parts[1], parts[0]
				}
				r := s.UploadFile(t, parts...)
				if r.Status != want {
					t.Errorf("%s, %d bytes, alias first %t: %d %s", alias, size, first, r.Status, r.Body)
				}
				if want == http.StatusRequestEntityTooLarge {
					if got := r.Failures(t, want)[0]; got.Filename != "a.txt" || !strings.Contains(got.Message, fmt.Sprint(limit)) {
						t.Errorf("failure %+v, want one that names the limit", got)
					}
				}
			}
		}
	}
}

// TestChunkedBody: a body of unknown length is accepted up to the limit.
func TestChunkedBody(t *testing.T) {
	s := site.Start(t, site.Basic+limits, "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	send := func(body string) *site.Reply {
		t.Helper()
		r := s.Request(t, http.MethodPost, "/api/upload/file", header, struct{ io.Reader }{strings.NewReader(body)})
		if r.ContentLength > 0 {
			t.Fatal("the length is declared")
		}
		return s.Send(t, s.Client, r)
	}
	send(site.Form(site.File("a.txt", "x"))).One(t)
	before := len(site.Files(t, s.Root))
	for _, body := range []string{
		strings.Repeat("\r\n", 40<<10) + site.Form(site.File("a.txt", "x")), // bytes outside of parts count as well
		site.Form(site.Field("x", strings.Repeat("x", 70<<10))),
		site.Form(site.File("a.txt", strings.Repeat("x", 70<<10))),
	} {
		send(body).Failures(t, http.StatusRequestEntityTooLarge)
	}
	if after := len(site.Files(t, s.Root)); after != before {
		t.Errorf("%d files, want %d as before", after, before)
	}
}

// TestTooManyPixels: a picture is refused after reading its header; the message has the size and
// the limit.
func TestTooManyPixels(t *testing.T) {
	s := site.Start(t, site.Basic+limits+"image_alias few {\nmax_pixels 10\n}", "media")
	s.UploadImage(t, site.File("a.png", sample.PNG(t, 40, 25))).One(t)
	for _, p := range []site.Part{
		site.File("a.png", sample.PNG(t, 41, 25)), site.File("a.jpg", sample.JPEG(t, 41, 25)), site.File("a.png", pngBomb(50_000, 50_000)), site.File("a.png", pngBomb(1<<31-1, 1<<31-1)),
	} {
		got := s.UploadImage(t, p).Failures(t, http.StatusRequestEntityTooLarge)
		if !strings.Contains(got[0].Message, "pixels") || got[0].Filename != p.Filename {
			t.Errorf("failure %+v", got[0])
		}
	}
	s.UploadImage(t, site.Field("alias", "few"), site.File("a.png", sample.PNG(t, 4, 3))).Failures(t, http.StatusRequestEntityTooLarge)
}

// pngBomb returns a small file that claims to be a large picture.
func pngBomb(width, height uint32) string {
	chunk := func(kind string, data []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		b = append(append(b, kind...), data...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	head = append(head, 8, 0, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head)...)
	b = append(b, chunk("IDAT", []byte("x\x9c\x03\x00\x00\x00\x00\x01"))...)
	return string(append(b, chunk("IEND", nil)...))
}
