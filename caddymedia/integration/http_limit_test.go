package integration

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
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
	s := startSite(t, basic+limits, "media")
	text := func(size int) formPart { return file("a.txt", strings.Repeat("x", size)) }
	withHeader := func(size int) formPart {
		p := text(1)
		p.header = "X-More: " + strings.Repeat("x", size) + "\r\n"
		return p
	}
	many := func(n int, p formPart) []formPart {
		parts := make([]formPart, n)
		for i := range parts {
			parts[i] = p
		}
		return parts
	}
	one := []formPart{text(1)}
	for _, c := range []struct {
		name  string
		parts []formPart
		want  int
	}{
		{"files", many(3, text(1)), 200},
		{"a file more", many(4, text(1)), 413},
		{"fields", append(many(4, field("x", "")), one...), 200},
		{"a field more", append(many(5, field("x", "")), one...), 413},
		{"a field more, behind", append(one, many(5, field("x", ""))...), 413},
		{"field", append([]formPart{field("x", strings.Repeat("x", 100))}, one...), 200},
		{"larger field", append([]formPart{field("x", strings.Repeat("x", 101))}, one...), 413},
		{"larger alias", append([]formPart{field("alias", strings.Repeat("x", 101))}, one...), 413},
		{"huge field", append([]formPart{field("x", strings.Repeat("x", 50<<10))}, one...), 413},
		{"part header", []formPart{withHeader(850)}, 200},
		{"larger part header", []formPart{withHeader(1000)}, 413},
		{"huge part header", []formPart{withHeader(50 << 10)}, 413},
		{"many part headers", []formPart{{name: "files[]", file: true, filename: "a.txt", header: strings.Repeat("A: b\r\n", 5000)}}, 413},
		{"file", []formPart{text(10 << 10)}, 200},
		{"larger file", []formPart{text(10<<10 + 1)}, 413},
		{"larger body", many(3, text(25<<10)), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.uploadFile(t, c.parts...)
			if c.want == http.StatusOK {
				r.result(t)
				return
			}
			before := len(files(t, s.root))
			r.failures(t, c.want)
			if after := len(files(t, s.root)); after != before {
				t.Errorf("%d files, want %d as before", after, before)
			}
		})
	}
}

// TestLimitOfAlias: the limit of the final alias applies, whether it is larger or smaller than that
// of the alias first assumed for the file.
func TestLimitOfAlias(t *testing.T) {
	s := startSite(t, basic+"file_alias small {\nmax_size 10B\n}\nfile_alias large {\nmax_size 1KiB\n}\nlimits {\nmax_file_size 100B\n}", "media")
	for alias, limit := range map[string]int{"small": 10, "content": 100, "large": 1024} {
		for size, want := range map[int]int{limit: 200, limit + 1: 413} {
			for _, first := range []bool{true, false} {
				parts := []formPart{field("alias", alias), file("a.txt", strings.Repeat("x", size))}
				if !first {
					parts[0], parts[1] = parts[1], parts[0]
				}
				r := s.uploadFile(t, parts...)
				if r.status != want {
					t.Errorf("%s, %d bytes, alias first %t: %d %s", alias, size, first, r.status, r.body)
				}
				if want == http.StatusRequestEntityTooLarge {
					if got := r.failures(t, want)[0]; got.Filename != "a.txt" || !strings.Contains(got.Message, fmt.Sprint(limit)) {
						t.Errorf("failure %+v, want one that names the limit", got)
					}
				}
			}
		}
	}
}

// TestChunkedBody: a body of unknown length is accepted up to the limit.
func TestChunkedBody(t *testing.T) {
	s := startSite(t, basic+limits, "media")
	header := merged(s.credentials(t), formType)
	send := func(body string) *reply {
		t.Helper()
		r := s.request(t, http.MethodPost, "/api/upload/file", header, struct{ io.Reader }{strings.NewReader(body)})
		if r.ContentLength > 0 {
			t.Fatal("the length is declared")
		}
		return s.send(t, s.client, r)
	}
	send(form(file("a.txt", "x"))).one(t)
	before := len(files(t, s.root))
	for _, body := range []string{
		strings.Repeat("\r\n", 40<<10) + form(file("a.txt", "x")), // bytes outside of parts count as well
		form(field("x", strings.Repeat("x", 70<<10))),
		form(file("a.txt", strings.Repeat("x", 70<<10))),
	} {
		send(body).failures(t, http.StatusRequestEntityTooLarge)
	}
	if after := len(files(t, s.root)); after != before {
		t.Errorf("%d files, want %d as before", after, before)
	}
}

// TestTooManyPixels: a picture is refused after reading its header; the message has the size and
// the limit.
func TestTooManyPixels(t *testing.T) {
	s := startSite(t, basic+limits+"image_alias few {\nmax_pixels 10\n}", "media")
	s.uploadImage(t, file("a.png", pngOf(t, 40, 25))).one(t)
	for _, p := range []formPart{
		file("a.png", pngOf(t, 41, 25)), file("a.jpg", jpegOf(t, 41, 25)), file("a.png", pngBomb(50_000, 50_000)), file("a.png", pngBomb(1<<31-1, 1<<31-1)),
	} {
		got := s.uploadImage(t, p).failures(t, http.StatusRequestEntityTooLarge)
		if !strings.Contains(got[0].Message, "pixels") || got[0].Filename != p.filename {
			t.Errorf("failure %+v", got[0])
		}
	}
	s.uploadImage(t, field("alias", "few"), file("a.png", pngOf(t, 4, 3))).failures(t, http.StatusRequestEntityTooLarge)
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
