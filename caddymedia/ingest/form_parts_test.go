package ingest

import (
	"strings"
	"testing"
)

// TestPartHeaders: parts are refused if two parsers could read their bytes or names differently.
func TestPartHeaders(t *testing.T) {
	t.Parallel()
	const disposition = "Content-Disposition: form-data; name=files; "
	for _, c := range []struct {
		header  string
		reason  Reason
		message string // empty: it is stored
	}{
		{disposition + "filename=a.txt", 0, ""},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: Binary", 0, ""},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: quoted-printable", BadContent, "without one"},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: base64", BadContent, "without one"},
		{disposition + "filename=a.txt; filename*=UTF-8''a.txt", 0, ""},
		{disposition + "filename*=UTF-8''a.txt", 0, ""},
		{disposition + `filename="a filename*.txt"`, 0, ""},
		{disposition + "filename=a.txt; filename*=UTF-8''b.txt", BadRequest, "different names"},
		{disposition + "FileName*=UTF-8''b.txt; FILENAME=a.txt", BadRequest, "different names"},
		{disposition + `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?UTF-8?Q?=C3=A1.txt?="; filename*=UTF-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?iso-8859-1?q?=E1.txt?="; filename*=UTF-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''b.txt`, BadRequest, "different names"},
		{disposition + `filename="=?unknown?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`, BadRequest, "different names"},
		{disposition + "filename=a.txt; filename*0=b; filename*1=.txt", BadRequest, "different names"},
	} {
		t.Run(c.header, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			body := strings.NewReader("--x\r\n" + c.header + "\r\n\r\na=3Db\r\n--x--\r\n")
			items, failures := newUploader(newAlias(t, DefaultAlias, s)).Upload(t.Context(), Request{Kind: File}, Form(body, "x"))
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

// TestLongNames: long names are refused before their letters are folded, which is slow.
func TestLongNames(t *testing.T) {
	t.Parallel()
	a := newAlias(t, DefaultAlias, onMemory(t, nil))
	long := strings.Repeat("\ufdfa", maxName/3+1)
	for _, names := range [][2]string{{long + ".txt", "/"}, {"a.txt", long}} {
		_, err := a.filename(names[0], names[1], newUploader().Now())
		wantFailure(t, asFailures(err), BadRequest, "", "longer than")
	}
}

// TestLikelyAlias: likelyAlias returns only an alias that the account may use.
func TestLikelyAlias(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	u := newUploader(newAlias(t, DefaultAlias, s), newAlias(t, "b", s), newAlias(t, "c", s), newAlias(t, "d", s))
	only := func(names string) func(string) bool {
		return func(alias string) bool { return strings.Contains(names, alias) }
	}
	for _, c := range []struct {
		named, allowed, want string
	}{
		{"", "content b", DefaultAlias},
		{"d", "content b d", "d"},
		{"", "d c", "c"},
		{"nope", "d c", "c"},
		{"nope", "content d", DefaultAlias},
		{"b", "c", "c"},
		{"", "none", ""},
	} {
		b := u.newBatch(Request{Kind: File, Alias: c.named, Allows: only(c.allowed)})
		got := b.likelyAlias()
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.Name != c.want) {
			t.Errorf("%q of %q: %v", c.named, c.allowed, got)
		}
	}
}
