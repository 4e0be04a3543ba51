package upload

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	note := file("a.txt", "text")
	times := func(n int, p send) []send {
		parts := make([]send, n)
		for i := range parts {
			parts[i] = p
		}
		return parts
	}
	for _, c := range []struct {
		name    string
		limits  Limits
		parts   []send
		message string // empty: they pass
	}{
		{"as many files", Limits{MaxFiles: 3}, times(3, note), ""},
		{"too many files", Limits{MaxFiles: 3}, times(4, note), "more than 3 files"},
		{"as many fields", Limits{MaxFields: 3}, append(times(3, field("x", "")), note), ""},
		{"too many fields", Limits{MaxFields: 3}, append(times(4, field("x", "")), note), "more than 3 fields"},
		{"as large a field", Limits{MaxFieldSize: 5}, []send{field("x", "12345"), note}, ""},
		{"too large a field", Limits{MaxFieldSize: 5}, []send{field("x", "123456"), note}, "larger than 5 bytes"},
		{"too large an alias", Limits{MaxFieldSize: 5}, []send{field("alias", "content"), note}, "larger than 5 bytes"},
		{"as large a header", Limits{MaxPartHeader: 100}, []send{field(strings.Repeat("x", 100-41), ""), note}, ""},
		{"too large a header", Limits{MaxPartHeader: 100}, []send{field(strings.Repeat("x", 101-41), ""), note}, "header of a part"},
		{
			"no limit at all",
			Limits{MaxFiles: math.MaxInt, MaxFields: math.MaxInt, MaxFieldSize: math.MaxInt64, MaxPartHeader: math.MaxInt64},
			[]send{field("alias", "content"), note},
			"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			u := newUploader(newAlias(t, item.DefaultAlias, s))
			u.Limits = Limits{
				cmp.Or(c.limits.MaxFiles, u.Limits.MaxFiles), cmp.Or(c.limits.MaxFields, u.Limits.MaxFields),
				cmp.Or(c.limits.MaxFieldSize, u.Limits.MaxFieldSize), cmp.Or(c.limits.MaxPartHeader, u.Limits.MaxPartHeader),
			}
			_, failures := uploadForm(t, u, c.parts...)
			if c.message == "" {
				if failures != nil {
					t.Error(failures)
				}
				return
			}
			wantFailure(t, failures, item.TooLarge, "", c.message)
			wantContents(t, s, nil)
		})
	}
}

func TestMaxSize(t *testing.T) {
	t.Parallel()
	for name, alias := range map[string][]send{
		"default": nil, "before": {field("alias", "small")}, "behind": {},
	} {
		for size, fits := range map[int]bool{0: true, 9: true, 10: true, 11: false, 12: false, 500: false} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				t.Parallel()
				s := onMemory(t, nil)
				small, large := newAlias(t, "small", s), newAlias(t, "large", s)
				small.MaxSize, large.MaxSize = 10, 100
				u := newUploader(small, large)
				parts := append(alias, file("a.txt", strings.Repeat("x", size)))
				switch name {
				case "default":
					small.Name = item.DefaultAlias
					u = newUploader(small, large)
				case "behind":
					parts = append(parts, field("alias", "small"))
				}
				_, failures := uploadForm(t, u, parts...)
				if fits && failures != nil {
					t.Error(failures)
				}
				if !fits {
					limit := "larger than 10 bytes"
					if name != "before" && size > 100 {
						limit = "larger than 100 bytes" // nothing more was read
					}
					wantFailure(t, failures, item.TooLarge, "a.txt", limit)
					wantContents(t, s, nil)
				}
			})
		}
	}
}

// TestRefusedPartsAreNotReadToTheirEnd: at most the size limit of a file is skipped of refused
// parts.
func TestRefusedPartsAreNotReadToTheirEnd(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	a := newAlias(t, item.DefaultAlias, s)
	a.MaxSize = 1000
	u := newUploader(a)
	for _, name := range []string{"large.txt", "script.php"} {
		body := bytes.NewReader(formBody(field("alias", item.DefaultAlias), file(name, strings.Repeat("x", 10<<20))))
		_, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, Form(body, boundary))
		if len(failures) != 1 || failures[0].Filename != name {
			t.Errorf("%s: %v", name, failures)
		}
		if read := int(body.Size()) - body.Len(); read > 2000+2*readerSize {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
	wantContents(t, s, nil)
}

// pieces returns a body in pieces, like a connection, and counts its bytes.
type pieces struct {
	r     io.Reader
	piece int
	read  int
}

func (p *pieces) Read(b []byte) (int, error) {
	n, err := p.r.Read(b[:min(len(b), p.piece)])
	p.read += n
	return n, err
}

// TestHugePartHeader: a huge header is refused before much of it is read.
func TestHugePartHeader(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 1<<20)
	for name, header := range map[string]string{
		"one line":               "X: " + huge + "\r\n",
		"file name":              "Content-Disposition: form-data; name=\"files[]\"; filename=\"" + huge + ".txt\"\r\n",
		"many lines":             strings.Repeat("a: b\r\n", 1<<20/6),
		"one line folded":        "X: " + strings.Repeat("x\r\n ", 1<<18) + "\r\n",
		"never ends":             huge,
		"lines before the parts": strings.Repeat("x\r\n", 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			start := "--boundary\r\n"
			if name == "lines before the parts" {
				start = ""
			}
			rest := start + header + "\r\ntext\r\n--boundary--\r\n"
			for place, before := range map[string][]byte{
				"first": nil, "second": bytes.TrimSuffix(formBody(file("a.txt", "text")), []byte("--boundary--\r\n")),
			} {
				if place == "second" && start == "" {
					continue
				}
				body := &pieces{r: io.MultiReader(bytes.NewReader(before), strings.NewReader(rest)), piece: 4 << 10}
				_, failures := uploadBody(t, newUploader(newAlias(t, item.DefaultAlias, s)), body, Upload{Request: Request{Kind: item.File}})
				wantFailure(t, failures, item.TooLarge, "", "header of a part")
				if body.read > 64<<10 {
					t.Errorf("%s: %d bytes were read", place, body.read)
				}
			}
			wantContents(t, s, nil)
		})
	}
}

// TestMemoryOfForms: parts that are not stored, and header lines, use no memory and no files:
// CVE-2022-41725 and CVE-2023-24536.
func TestMemoryOfForms(t *testing.T) { // not parallel: it measures memory
	const part = "--boundary\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n"
	lines := "--boundary\r\n" + strings.Repeat("a:\r\n", 3000) + strings.TrimPrefix(part, "--boundary\r\n")
	for name, c := range map[string]struct {
		body      io.Reader
		allocated uint64
		read      int
	}{
		"one field of 1 GiB":   {io.MultiReader(strings.NewReader(part), io.LimitReader(endless("x"), 1<<30)), 4 << 20, 1 << 20},
		"a million of fields":  {io.LimitReader(endless(part+"\r\n"), 1<<26), 4 << 20, 1 << 20},
		"a million of no file": {io.LimitReader(endless(strings.Replace(part, "x", `files[]"; filename="`, 1)+"\r\n"), 1<<26), 4 << 20, 1 << 20},
		"many header lines":    {io.LimitReader(endless(lines+"\r\n"), 1<<28), 64 << 20, 4 << 20},
	} {
		u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)))
		counted := &pieces{r: c.body, piece: 32 << 10}
		took := allocated(func() {
			_, failures := uploadBody(t, u, counted, Upload{Request: Request{Kind: item.File}})
			wantFailure(t, failures, item.TooLarge, "", "")
		})
		if took > c.allocated || counted.read > c.read {
			t.Errorf("%s: %d bytes were read and %d allocated", name, counted.read, took)
		}
	}
}

// endless returns a reader that repeats s.
func endless(s string) io.Reader {
	chunk := strings.Repeat(s, 1+4096/len(s))
	r := strings.NewReader("")
	return readFunc(func(p []byte) (int, error) {
		if r.Len() == 0 {
			r.Reset(chunk)
		}
		return r.Read(p)
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
