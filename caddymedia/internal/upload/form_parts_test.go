package upload

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// TestPartHeaders: parts are refused if two parsers could read their bytes or names differently.
func TestPartHeaders(t *testing.T) {
	t.Parallel()
	const disposition = "Content-Disposition: form-data; name=files; "
	for _, c := range []struct {
		header  string
		reason  item.Reason
		message string // empty: it is stored
	}{
		{disposition + "filename=a.txt", 0, ""},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: Binary", 0, ""},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: quoted-printable", item.BadContent, "without one"},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: base64", item.BadContent, "without one"},
		{disposition + "filename=a.txt; filename*=UTF-8''a.txt", 0, ""},
		{disposition + "filename*=UTF-8''a.txt", 0, ""},
		{disposition + `filename="a filename*.txt"`, 0, ""},
		{disposition + "filename=a.txt; filename*=UTF-8''b.txt", 0, ""},
		{disposition + "filename=a.txt; filename*=UTF-8''a.TXT", 0, ""},
		{disposition + "filename=a.txt; filename*=UTF-8''a.pdf", item.BadRequest, "different extensions"},
		{disposition + "filename=a; filename*=UTF-8''a.txt", item.BadRequest, "different extensions"},
		{disposition + "FileName*=UTF-8''b.pdf; FILENAME=a.txt", item.BadRequest, "different extensions"},
		{disposition + `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?UTF-8?Q?=C3=A1.txt?="; filename*=UTF-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?iso-8859-1?q?=E1.txt?="; filename*=UTF-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''b.pdf`, item.BadRequest, "different extensions"},
		{disposition + `filename="=?unknown?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`, item.BadRequest, "different extensions"},
		{disposition + "filename*=UTF-8''a.txt; filename*=UTF-8''a.txt", item.BadRequest, "one filename*"},
		{disposition + "filename*=UTF-8''a.txt; filename*=UTF-8''b.txt", item.BadRequest, "no valid"},
		{disposition + "filename=a.txt; filename*0=b; filename*1=.txt", item.BadRequest, "one filename*"},
		{disposition + "filename*0=b; filename*1=.txt", item.BadRequest, "one filename*"},
		{disposition + "filename=a.txt; filename*=a.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename=a.txt; filename*=UTF-8'a.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename=a.txt; filename*=UTF-8''%zz.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename*=UTF-8''%E1.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename*=koi8-r''%C1.txt", item.BadRequest, "UTF-8''"},
		{"", item.BadRequest, "no valid"},
		{"Content-Type: text/plain", item.BadRequest, "no valid"},
		{"Content-Disposition: ", item.BadRequest, "no valid"},
		{"Content-Disposition: attachment; name=files; filename=a.txt", item.BadRequest, "no valid"},
		{disposition + "filename=a.txt; filename=b.txt", item.BadRequest, "no valid"},
		{disposition + `filename="a.txt`, item.BadRequest, "no valid"},
		{"no header", item.BadRequest, "no valid"},
		{"Content-Disposition form-data", item.BadRequest, "no valid"},
	} {
		t.Run(c.header, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			body := strings.NewReader(strings.Replace("--x\r\n"+c.header+"\r\n\r\na=3Db\r\n--x--\r\n", "--x\r\n\r\n\r\n", "--x\r\n\r\n", 1))
			items, failures := newUploader(newAlias(t, item.DefaultAlias, s)).Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, Form(body, "x"))
			if c.message != "" {
				wantFailure(t, failures, c.reason, "", c.message)
				wantContents(t, s, nil)
				return
			}
			if failures != nil || len(items) != 1 {
				t.Fatalf("%v %v", items, failures)
			}
			wantContents(t, s, map[string]string{"file/content/" + items[0].Filename: "a=3Db"})
		})
	}
}

// TestEscapedNames: the escapes of browsers and curl in a file name are undone, nothing else. An
// extended name has its own encoding, and counts.
func TestEscapedNames(t *testing.T) {
	t.Parallel()
	for parameter, want := range map[string]string{
		`filename="a %22b%22 & c.txt"`:                               `a "b" & c.txt`,
		`filename="a \"b\" & c.txt"`:                                 `a "b" & c.txt`,
		`filename="a%20b%2520%2522.txt"`:                             `a%20b%2520%2522.txt`,
		`filename*=UTF-8''a%2522.txt`:                                `a%22.txt`,
		`filename="a%22.txt"; filename*=UTF-8''a%22.txt`:             `a".txt`,
		`filename="a%0D%0A%22.php"; filename*=UTF-8''a%0D%0A%22.php`: "a\r\n\".php",
		// as Apache HttpClient sends a name beyond ASCII
		`filename="???.jpg"; filename*="UTF-8''%C4%9B%C5%A1%C4%8D.jpg"`: "ěšč.jpg",
		`filename="?.jpg"; filename*=UTF-8''%C4%9B.jpg`:                 "ě.jpg",
		`filename*=utf-8'cs'%C4%9B.jpg; filename=e.JPG`:                 "ě.jpg",
		`filename*=ISO-8859-1''%E1+%20.jpg`:                             "á+ .jpg",
		`filename="; filename*=UTF-8''b.txt"`:                           "; filename*=UTF-8''b.txt",
		`filename="\"; filename*=%22.txt"; x="y"`:                       `"; filename*=".txt`,
		`filename="a%0d%0ab.txt"`:                                       `a%0d%0ab.txt`,
		`filename="a%0D%0Ab.txt"`:                                       "a\r\nb.txt",
	} {
		t.Run(parameter, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReader("--x\r\nContent-Disposition: form-data; name=files; " + parameter + "\r\n\r\nx\r\n--x--\r\n")
			f := newForm(body, "x", newUploader().Limits, 0)
			defer f.close()
			if p, err := f.next(); err != nil || p.filename != want {
				t.Errorf("got %+v, %v, want %q", p, err, want)
			}
		})
	}
}

// TestLikelyAlias: likelyAlias returns only an alias that the account may use.
func TestLikelyAlias(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	u := newUploader(newAlias(t, item.DefaultAlias, s), newAlias(t, "b", s), newAlias(t, "c", s), newAlias(t, "d", s))
	only := func(names string) func(string) bool {
		return func(alias string) bool { return strings.Contains(names, alias) }
	}
	for _, c := range []struct {
		named, allowed, want string
	}{
		{"", "content b", item.DefaultAlias},
		{"d", "content b d", "d"},
		{"", "d c", "c"},
		{"nope", "d c", "c"},
		{"nope", "content d", item.DefaultAlias},
		{"b", "c", "c"},
		{"", "none", ""},
	} {
		b := u.newUpload(Upload{Request: Request{Kind: item.File, Alias: c.named, Allows: only(c.allowed)}})
		got := b.likelyAlias()
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.Name != c.want) {
			t.Errorf("%q of %q: %v", c.named, c.allowed, got)
		}
	}
}
