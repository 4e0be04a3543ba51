package upload

import (
	"bytes"
	"io"
	"mime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// FuzzForm: for any body, all files or none are stored, with bytes of the body only, without a
// panic.
func FuzzForm(f *testing.F) {
	whole := formBody(field("alias", "docs"), file("a.txt", "first"), field("sub_folder", "x/y"), file("b.txt", "second"))
	f.Add(whole, boundary)
	f.Add(whole[:len(whole)/2], boundary)
	f.Add(bytes.ReplaceAll(whole, []byte("\r\n"), []byte("\n")), boundary)
	f.Add([]byte("--\r\n\r\n----"), "")
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=files; filename*=UTF-8''%41.txt\r\n\r\nx\r\n--b--"), "b")
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=files; filename=a.txt\r\n"+
		"Content-Transfer-Encoding: quoted-printable\r\n\r\n=41=\r\n--b--"), "b")
	f.Add([]byte("--"+strings.Repeat("b", 5000)+"\r\n\r\n"), strings.Repeat("b", 5000))
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		first, second := onMemory(t, nil), onMemory(t, nil)
		u := newUploader(newAlias(t, item.DefaultAlias, first), newAlias(t, "docs", second))
		u.Limits = Limits{MaxFiles: 5, MaxFields: 5, MaxFieldSize: 100, MaxPartHeader: 1 << 10}
		read := func(body io.Reader) []Item {
			items, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, Form(body, boundary))
			checked(t, items, failures)
			return items
		}
		items := read(bytes.NewReader(body))
		stored := 0
		for _, s := range []map[string]string{contents(t, first), contents(t, second)} {
			stored += len(s)
			for key, value := range s {
				if !bytes.Contains(body, []byte(value)) && !bytes.Contains(body, []byte("quoted-printable")) {
					t.Errorf("%s holds %q, which is not in the body", key, value)
				}
			}
		}
		if stored != len(items) {
			t.Errorf("%d items are stored and %d returned", stored, len(items))
		}
		if len(body) < 4<<10 {
			if again := read(iotest.OneByteReader(bytes.NewReader(body))); len(again) != len(items) {
				t.Errorf("%d items of the body byte by byte, %d of it at once", len(again), len(items))
			}
		}
	})
}

// FuzzFormFilename: an accepted header has the name that the standard library finds in it, but for
// the encodings of senders, its folders and Latin letters, which the library does not decode.
func FuzzFormFilename(f *testing.F) {
	for _, params := range []string{
		`filename="a %22b%22.txt"`, `filename=a.txt; filename*=UTF-8''%C3%A1.txt`, `filename="?.jpg"; filename*="UTF-8''%C4%9B.jpg"`,
		`filename*=iso-8859-1'en'%E1.txt`, `filename*0=a; filename*1=.txt`, `filename="\"; filename*=\\"; x=y`,
		`FILENAME = a.txt ; filename* = utf-8''a.TXT`, `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`,
	} {
		f.Add("form-data; name=files; " + params)
	}
	decoded := func(name string) string { return (&part{filename: name}).baseName() }
	f.Fuzz(func(t *testing.T, header string) {
		got, err := FormFilename(header)
		_, params, parseErr := mime.ParseMediaType(header)
		switch want := params["filename"]; {
		case err != nil && got != "":
			t.Errorf("%q with the error %v", got, err)
		case err == nil && parseErr != nil:
			t.Errorf("a header is accepted: %v", parseErr)
		case err != nil || strings.Contains(strings.ToLower(header), "iso-8859-1"):
		case got != decoded(want) && got != decoded(unescape.Replace(want)):
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
