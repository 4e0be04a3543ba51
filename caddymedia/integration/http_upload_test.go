package integration

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestUploadAnswer: the answer has exactly the documented keys, and an address that returns the
// bytes.
func TestUploadAnswer(t *testing.T) {
	withinOneDay()
	s := startSite(t, basic, "media")
	picture := jpegOf(t, 6, 4)
	r := s.uploadImage(t, file("Photo.JPG", picture))
	folder := time.Now().Format("06-01/02")
	want := `{"success":true,"result":[{"full_path":"` + s.url + `/static/img/content/` + folder +
		`/photo.jpg","filename":"` + folder + `/photo.jpg"}]}`
	if r.body != want {
		t.Errorf("answer %s\nwant %s", r.body, want)
	}
	if got := r.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q, want no-store", got)
	}
	if got := s.fetch(t, r.one(t).FullPath); got.status != http.StatusOK || got.body != picture {
		t.Errorf("got back %d, %d bytes", got.status, len(got.body))
	}
	if got := s.uploadFile(t, file("a.pdf", pdfDocument)).one(t); !strings.HasPrefix(got.FullPath, s.url+"/static/file/content/") {
		t.Errorf("full_path of a file: %s", got.FullPath)
	}
}

// TestUploadKinds: every type of picture, and the default types of a file alias, are accepted.
func TestUploadKinds(t *testing.T) {
	s := startSite(t, basic, "media")
	for ext, content := range samples(t) {
		for _, name := range []string{"one." + ext, "Two." + strings.ToUpper(ext)} {
			got := s.uploadFile(t, file(name, content))
			if ext == "svg" { // pictures that may be active are for image aliases
				got.failures(t, http.StatusUnsupportedMediaType)
			} else if r := s.fetch(t, got.one(t).FullPath); r.body != content {
				t.Errorf("%s: got back other bytes", name)
			}
		}
	}
	for _, ext := range []string{"jpg", "jpeg", "gif", "png", "svg"} {
		content := samples(t)[strings.Replace(ext, "jpeg", "jpg", 1)]
		got := s.uploadImage(t, file("one."+ext, content)).one(t)
		if r := s.fetch(t, got.FullPath); r.body != content {
			t.Errorf("%s: got back other bytes", ext)
		}
	}
}

// TestUploadOrder: results are in the order of the files, whatever the names of the parts are.
func TestUploadOrder(t *testing.T) {
	s := startSite(t, basic, "media")
	named := func(name, filename string) formPart {
		p := file(filename, gifOf(t))
		if filename == "" { // an input that was left empty
			p.content = ""
		}
		p.name = name
		return p
	}
	for name, parts := range map[string][]formPart{
		"files[]":      {named("files[]", "c.gif"), named("files[]", "a.gif"), named("files[]", "b.gif")},
		"files[index]": {named("files[2]", "c.gif"), named("files[0]", "a.gif"), named("files[x]", "b.gif")},
		"files":        {named("files", "c.gif"), named("files", "a.gif"), named("files", "b.gif")},
		"mixed":        {named("files", "c.gif"), named("files[3]", "a.gif"), named("files[]", "b.gif")},
		"fields between": {
			named("files[]", "c.gif"), field("sub_folder", "x"), named("files[]", "a.gif"), field("more", "x"), named("files[]", "b.gif"),
		},
		"empty inputs": {
			named("files[]", ""), named("files[]", "c.gif"), named("photo", ""), named("files[]", "a.gif"), named("files[]", "b.gif"), named("files", ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var order []string
			for _, item := range s.uploadImage(t, parts...).result(t) {
				order = append(order, regexp.MustCompile(`^.*/([abc])(-\d+)?\.gif$`).ReplaceAllString(item.Filename, "$1"))
			}
			if got := strings.Join(order, ""); got != "cab" {
				t.Errorf("order %s, want cab", got)
			}
		})
	}
}

// TestUploadFields: alias and sub_folder may be in the query or in the form, before or after the
// file. The form takes precedence; an empty value means unset.
func TestUploadFields(t *testing.T) {
	withinOneDay()
	s := startSite(t, basic+"storage other {\ndriver local $ROOT/other\nsub_folder_format %Y\n}\n"+
		"image_alias news {\nstorage other\n}", "media")
	picture := file("a.gif", gifOf(t))
	today, year := time.Now().Format("06-01/02"), time.Now().Format("2006")
	for _, c := range []struct {
		name, query string
		parts       []formPart
		want        string
	}{
		{"none", "", []formPart{picture}, "content/" + today},
		{"alias before", "", []formPart{field("alias", "news"), picture}, "news/" + year},
		{"alias behind", "", []formPart{picture, field("alias", "news")}, "news/" + year},
		{"both behind", "", []formPart{picture, field("sub_folder", "x"), field("alias", "news")}, "news/x"},
		{"both before", "", []formPart{field("sub_folder", "x"), field("alias", "news"), picture}, "news/x"},
		{"alias in the query", "?alias=news", []formPart{picture}, "news/" + year},
		{"both in the query", "?alias=news&sub_folder=a%2Fb", []formPart{picture}, "news/a/b"},
		{"form over query", "?alias=none&sub_folder=a", []formPart{picture, field("alias", "news"), field("sub_folder", "b")}, "news/b"},
		{"form over query, before", "?alias=none&sub_folder=a", []formPart{field("alias", "news"), field("sub_folder", "b"), picture}, "news/b"},
		{"empty in the form", "?alias=news&sub_folder=a", []formPart{field("alias", ""), field("sub_folder", ""), picture}, "news/a"},
		{"empty in the query", "?alias=&sub_folder=", []formPart{picture}, "content/" + today},
		{"empty everywhere", "?alias=&sub_folder=", []formPart{field("alias", ""), picture, field("sub_folder", "")}, "content/" + today},
		{"root", "", []formPart{picture, field("sub_folder", "/")}, "content"},
		{"slash at the end", "", []formPart{picture, field("sub_folder", "x/")}, "content/x"},
		{"sanitized", "", []formPart{picture, field("sub_folder", "Můj Výlet/Den 1")}, "content/muj-vylet/den-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.upload(t, "/api/upload/image"+c.query, c.parts...).one(t)
			address := s.url + "/static/img/" + c.want + "/"
			if !strings.HasPrefix(got.FullPath, address) || strings.Contains(strings.TrimPrefix(got.FullPath, address), "/") {
				t.Errorf("full_path %s, want it in %s", got.FullPath, address)
			}
			alias, _, _ := strings.Cut(c.want, "/")
			if got.FullPath != s.url+"/static/img/"+alias+"/"+got.Filename {
				t.Errorf("full_path %s is not the alias' address and filename %s", got.FullPath, got.Filename)
			}
			if r := s.fetch(t, got.FullPath); r.status != http.StatusOK {
				t.Errorf("fetching it: %d", r.status)
			}
		})
	}
}

// TestUploadMalformed: a problem of the whole request is reported as one error without a name.
func TestUploadMalformed(t *testing.T) {
	s := startSite(t, basic, "media")
	picture := file("a.gif", gifOf(t))
	unnamed := file("", gifOf(t))
	cut := func(n int) string { b := form(picture); return b[:len(b)-n] }
	header := merged(s.credentials(t), formType)
	for _, c := range []struct {
		name, query, body string
		header            http.Header
		want              int
	}{
		{name: "no parts", body: form(), want: 400},
		{name: "empty body", want: 400},
		{name: "fields alone", body: form(field("alias", "content"), field("files[]", "x")), want: 400},
		{name: "empty file input alone", body: form(file("", "")), want: 400},
		{name: "file without a name", body: form(unnamed), want: 400},
		{name: "unknown alias", body: form(picture, field("alias", "none")), want: 400},
		{name: "unknown alias before", body: form(field("alias", "none"), picture), want: 400},
		{name: "unknown alias in the query", query: "?alias=none", body: form(picture), want: 400},
		{name: "alias in capitals", body: form(picture, field("alias", "Content")), want: 400},
		{name: "alias twice", body: form(field("alias", "content"), picture, field("alias", "content")), want: 400},
		{name: "alias twice, one empty", body: form(field("alias", ""), picture, field("alias", "content")), want: 400},
		{name: "sub_folder twice", body: form(field("sub_folder", "a"), field("sub_folder", "a"), picture), want: 400},
		{name: "alias twice in the query", query: "?alias=content&alias=content", body: form(picture), want: 400},
		{name: "cut in a file", body: cut(60), want: 400},
		{name: "cut in a header", body: cut(len(form(picture)) - 50), want: 400},
		{name: "cut before the end", body: cut(len("--\r\n")), want: 400},
		{name: "no form", body: "just text", want: 400},
		{name: "other type", body: "{}", header: headers("Content-Type", "application/json"), want: 415},
		{name: "urlencoded", body: "alias=content", header: urlencoded, want: 415},
		{name: "no boundary", body: form(picture), header: headers("Content-Type", "multipart/form-data"), want: 400},
		{name: "long boundary", body: form(picture), header: headers("Content-Type", "multipart/form-data; boundary="+strings.Repeat("x", 71)), want: 400},
		{name: "part is no form-data", body: strings.Replace(form(picture), "form-data;", "attachment;", 1), want: 400},
		{name: "part without disposition", body: strings.Replace(form(picture), "Content-Disposition", "X", 1), want: 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := header
			if c.header != nil {
				h = merged(s.credentials(t), c.header)
			}
			got := s.do(t, http.MethodPost, "/api/upload/image"+c.query, h, c.body).failures(t, c.want)
			if len(got) != 1 || got[0].Filename != "" {
				t.Errorf("errors %+v, want one without a file name", got)
			}
		})
	}
	other := picture
	other.name = "photo"
	if got := s.uploadImage(t, other).failures(t, http.StatusBadRequest); len(got) != 1 || got[0].Filename != "a.gif" {
		t.Errorf("a file in a part of another name: %+v", got)
	}
	s.wantNothing(t)
}

// TestUploadWhatComesAfter: text before the first boundary and after the last one is not part of
// the form (RFC 2046, section 5.1.1). The last line break may be missing.
func TestUploadWhatComesAfter(t *testing.T) {
	s := startSite(t, basic, "media")
	header := merged(s.credentials(t), formType)
	body := form(file("a.gif", gifOf(t)))
	for name, b := range map[string]string{
		"preamble":      "This is a form.\r\n" + body,
		"epilogue":      body + "That was a form.\r\n",
		"long epilogue": body + strings.Repeat("That was a form.\r\n", 20_000),
		"no line break": strings.TrimSuffix(body, "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			s.do(t, http.MethodPost, "/api/upload/image", header, b).one(t)
		})
	}
}
