package mediahttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/media"
)

// limited is a site with low limits.
func limited(t *testing.T) *site {
	t.Helper()
	return newSite(t, media.Limits{
		MaxBody: 30 << 10, MaxImageSize: 20 << 10, MaxFileSize: 10 << 10, MaxPixels: 1000,
		MaxFiles: 3, MaxFields: 4, MaxFieldSize: 100, MaxPartHeader: 1 << 10,
	})
}

func times(n int, p part) []part {
	parts := make([]part, n)
	for i := range parts {
		parts[i] = p
	}
	return parts
}

// TestLimits: each limit, at its value and just above.
func TestLimits(t *testing.T) {
	t.Parallel()
	text := func(size int) part { return file("a.txt", strings.Repeat("x", size)) }
	withHeader := func(lines string) part {
		p := text(1)
		p.Header = lines
		return p
	}
	for _, c := range []struct {
		name   string
		parts  []part
		status int
	}{
		{"files", times(3, text(1)), 200},
		{"a file more", times(4, text(1)), 413},
		{"fields", append(times(4, field("x", "")), text(1)), 200},
		{"a field more", append(times(5, field("x", "")), text(1)), 413},
		{"a field more, behind", append([]part{text(1)}, times(5, field("x", ""))...), 413},
		{"field", []part{field("x", strings.Repeat("x", 100)), text(1)}, 200},
		{"larger field", []part{field("x", strings.Repeat("x", 101)), text(1)}, 413},
		{"larger alias", []part{field("alias", strings.Repeat("x", 101)), text(1)}, 413},
		{"huge field", []part{field("x", strings.Repeat("x", 25<<10)), text(1)}, 413},
		{"part header", []part{withHeader("X-More: " + strings.Repeat("x", 850) + "\r\n")}, 200},
		{"larger part header", []part{withHeader("X-More: " + strings.Repeat("x", 1000) + "\r\n")}, 413},
		{"huge part header", []part{withHeader("X-More: " + strings.Repeat("x", 25<<10) + "\r\n")}, 413},
		{"many part headers", []part{withHeader(strings.Repeat("A: b\r\n", 5000))}, 413},
		{"file", []part{text(10 << 10)}, 200},
		{"larger file", []part{text(10<<10 + 1)}, 413},
		{"body", times(2, text(10<<10)), 200},
		{"larger body", times(3, text(10<<10)), 413},
		{"many fields", times(1500, field("x", "")), 413},
		{"many files", times(1500, file("a.txt", "")), 413},
		{"many empty inputs", times(1500, file("", "")), 413},
		{"many unknown files", times(1500, part{Name: "x", IsFile: true}), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := limited(t)
			for _, length := range []int64{int64(len(form(c.parts...))), -1} {
				r := s.Request(t, http.MethodPost, filePath, multipart+bearer, form(c.parts...))
				r.ContentLength = length
				if length < 0 {
					r.Body = io.NopCloser(strings.NewReader(form(c.parts...)))
				}
				if got := s.Send(t, r); got.Status != c.status {
					t.Errorf("length %d: %d %s, want %d", length, got.Status, got.Body, c.status)
				} else if c.status != http.StatusOK {
					got.Refused(t, c.status, "")
				}
			}
		})
	}
	t.Run("bytes outside of parts", func(t *testing.T) {
		t.Parallel()
		s := limited(t)
		r := s.Request(t, http.MethodPost, filePath, multipart+bearer, strings.Repeat("\r\n", 40<<10)+form(text(1)))
		r.ContentLength = -1
		s.Send(t, r).Refused(t, http.StatusRequestEntityTooLarge, "", "")
	})
}

// TestLimitOfAlias: the limit of the final alias applies, whether it is larger or smaller than that
// of the alias assumed before. The message names it.
func TestLimitOfAlias(t *testing.T) {
	t.Parallel()
	roomy := func(t *testing.T) *site {
		t.Helper()
		return newSite(t, media.Limits{MaxFileSize: 100})
	}
	for alias, limit := range map[string]int{"small": 10, "content": 100, "large": 1024} {
		for _, size := range []int{limit, limit + 1} {
			for _, first := range []bool{true, false} {
				c := uploadCase{
					Name:  fmt.Sprint(alias, size, first),
					Parts: []part{field("alias", alias), file("a.txt", strings.Repeat("x", size))}, Want: []string{"file/" + alias + "/a.txt"},
				}
				if size > limit {
					c.Status, c.Want, c.Has = http.StatusRequestEntityTooLarge, []string{"a.txt"}, bytesize.Format(int64(limit))
				}
				if !first {
					c.Parts[0], c.Parts[1] = c.Parts[1], c.Parts[0]
				}
				c.Run(t, roomy)
			}
		}
	}
}

// TestTooManyPixels: a picture is refused by its header.
func TestTooManyPixels(t *testing.T) {
	t.Parallel()
	refused := func(p part, more ...part) uploadCase {
		return uploadCase{Name: p.Filename, Parts: append(more, p), Status: 413, Want: []string{p.Filename}, Has: "pixels"}.Image()
	}
	runUploads(t, limited, []uploadCase{
		uploadCase{Name: "limit", Parts: []part{file("a.png", pngOf(40, 25))}, Want: []string{"img/content/a.png"}}.Image(),
		refused(file("a.png", pngOf(41, 25))),
		refused(file("bomb.png", pngBomb(50_000, 50_000))),
		refused(file("bomb-2.png", pngBomb(1<<31-1, 1<<31-1))),
		refused(file("few.png", pngOf(4, 3)), field("alias", "few")),
	})
}
