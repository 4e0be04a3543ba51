package http_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestUploadAnswer: the answer has exactly the documented keys, and an address that returns the
// bytes.
func TestUploadAnswer(t *testing.T) {
	site.AwaitOneDay()
	s := site.Start(t, site.Basic, "media")
	picture := sample.JPEG(t, 6, 4)
	r := s.UploadImage(t, site.File("Photo.JPG", picture))
	folder := time.Now().Format("06-01/02")
	want := `{"success":true,"result":[{"full_path":"` + s.URL + `/static/img/content/` + folder +
		`/photo.jpg","filename":"` + folder + `/photo.jpg"}]}`
	if r.Body != want {
		t.Errorf("answer %s\nwant %s", r.Body, want)
	}
	if got := r.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q, want no-store", got)
	}
	if got := s.Fetch(t, r.One(t).FullPath); got.Status != http.StatusOK || got.Body != picture {
		t.Errorf("got back %d, %d bytes", got.Status, len(got.Body))
	}
	if got := s.UploadFile(t, site.File("a.pdf", sample.PDF)).One(t); !strings.HasPrefix(got.FullPath, s.URL+"/static/file/content/") {
		t.Errorf("full_path of a file: %s", got.FullPath)
	}
}

// TestUploadKinds: every type of picture, and the default types of a file alias, are accepted.
func TestUploadKinds(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	for ext, content := range sample.All(t) {
		for _, name := range []string{"one." + ext, "Two." + strings.ToUpper(ext)} {
			got := s.UploadFile(t, site.File(name, content))
			if ext == "svg" { // pictures that may be active are for image aliases
				got.Failures(t, http.StatusUnsupportedMediaType)
			} else if r := s.Fetch(t, got.One(t).FullPath); r.Body != content {
				t.Errorf("%s: got back other bytes", name)
			}
		}
	}
	for _, ext := range []string{"jpg", "jpeg", "gif", "png", "svg"} {
		content := sample.All(t)[strings.Replace(ext, "jpeg", "jpg", 1)]
		got := s.UploadImage(t, site.File("one."+ext, content)).One(t)
		if r := s.Fetch(t, got.FullPath); r.Body != content {
			t.Errorf("%s: got back other bytes", ext)
		}
	}
}

// TestUploadOrder: results are in the order of the files, whatever the names of the parts are.
func TestUploadOrder(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	named := func(name, filename string) site.Part {
		p := site.File(filename, sample.GIF(t))
		if filename == "" { // an input that was left empty
			p.Content = ""
		}
		p.Name = name
		return p
	}
	for name, parts := range map[string][]site.Part{
		"files[]":      {named("files[]", "c.gif"), named("files[]", "a.gif"), named("files[]", "b.gif")},
		"files[index]": {named("files[2]", "c.gif"), named("files[0]", "a.gif"), named("files[x]", "b.gif")},
		"files":        {named("files", "c.gif"), named("files", "a.gif"), named("files", "b.gif")},
		"mixed":        {named("files", "c.gif"), named("files[3]", "a.gif"), named("files[]", "b.gif")},
		"fields between": {
			named("files[]", "c.gif"), site.Field("sub_folder", "x"), named("files[]", "a.gif"), site.Field("more", "x"), named("files[]", "b.gif"),
		},
		"empty inputs": {
			named("files[]", ""), named("files[]", "c.gif"), named("photo", ""), named("files[]", "a.gif"), named("files[]", "b.gif"), named("files", ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var order []string
			for _, item := range s.UploadImage(t, parts...).Result(t) {
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
	site.AwaitOneDay()
	s := site.Start(t, site.Basic+"storage other {\ndriver local $ROOT/other\nsub_folder_format %Y\n}\n"+
		"image_alias news {\nstorage other\n}", "media")
	picture := site.File("a.gif", sample.GIF(t))
	today, year := time.Now().Format("06-01/02"), time.Now().Format("2006")
	for _, c := range []struct {
		name, query string
		parts       []site.Part
		want        string
	}{
		{"none", "", []site.Part{picture}, "content/" + today},
		{"alias before", "", []site.Part{site.Field("alias", "news"), picture}, "news/" + year},
		{"alias behind", "", []site.Part{picture, site.Field("alias", "news")}, "news/" + year},
		{"both behind", "", []site.Part{picture, site.Field("sub_folder", "x"), site.Field("alias", "news")}, "news/x"},
		{"both before", "", []site.Part{site.Field("sub_folder", "x"), site.Field("alias", "news"), picture}, "news/x"},
		{"alias in the query", "?alias=news", []site.Part{picture}, "news/" + year},
		{"both in the query", "?alias=news&sub_folder=a%2Fb", []site.Part{picture}, "news/a/b"},
		{"form over query", "?alias=none&sub_folder=a", []site.Part{picture, site.Field("alias", "news"), site.Field("sub_folder", "b")}, "news/b"},
		{"form over query, before", "?alias=none&sub_folder=a", []site.Part{site.Field("alias", "news"), site.Field("sub_folder", "b"), picture}, "news/b"},
		{"empty in the form", "?alias=news&sub_folder=a", []site.Part{site.Field("alias", ""), site.Field("sub_folder", ""), picture}, "news/a"},
		{"empty in the query", "?alias=&sub_folder=", []site.Part{picture}, "content/" + today},
		{"empty everywhere", "?alias=&sub_folder=", []site.Part{site.Field("alias", ""), picture, site.Field("sub_folder", "")}, "content/" + today},
		{"root", "", []site.Part{picture, site.Field("sub_folder", "/")}, "content"},
		{"slash at the end", "", []site.Part{picture, site.Field("sub_folder", "x/")}, "content/x"},
		{"sanitized", "", []site.Part{picture, site.Field("sub_folder", "Můj Výlet/Den 1")}, "content/muj-vylet/den-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.Upload(t, "/api/upload/image"+c.query, c.parts...).One(t)
			address := s.URL + "/static/img/" + c.want + "/"
			if !strings.HasPrefix(got.FullPath, address) || strings.Contains(strings.TrimPrefix(got.FullPath, address), "/") {
				t.Errorf("full_path %s, want it in %s", got.FullPath, address)
			}
			alias, _, _ := strings.Cut(c.want, "/")
			if got.FullPath != s.URL+"/static/img/"+alias+"/"+got.Filename {
				t.Errorf("full_path %s is not the alias' address and filename %s", got.FullPath, got.Filename)
			}
			if r := s.Fetch(t, got.FullPath); r.Status != http.StatusOK {
				t.Errorf("fetching it: %d", r.Status)
			}
		})
	}
}

// TestUploadMalformed: a problem of the whole request is reported as one error without a name.
func TestUploadMalformed(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	picture := site.File("a.gif", sample.GIF(t))
	unnamed := site.File("", sample.GIF(t))
	cut := func(n int) string { b := site.Form(picture); return b[:len(b)-n] }
	header := site.Merged(s.Credentials(t), site.FormType)
	for _, c := range []struct {
		name, query, body string
		header            http.Header
		want              int
	}{
		{name: "no parts", body: site.Form(), want: 400},
		{name: "empty body", want: 400},
		{name: "fields alone", body: site.Form(site.Field("alias", "content"), site.Field("files[]", "x")), want: 400},
		{name: "empty file input alone", body: site.Form(site.File("", "")), want: 400},
		{name: "file without a name", body: site.Form(unnamed), want: 400},
		{name: "unknown alias", body: site.Form(picture, site.Field("alias", "none")), want: 400},
		{name: "unknown alias before", body: site.Form(site.Field("alias", "none"), picture), want: 400},
		{name: "unknown alias in the query", query: "?alias=none", body: site.Form(picture), want: 400},
		{name: "alias in capitals", body: site.Form(picture, site.Field("alias", "Content")), want: 400},
		{name: "alias twice", body: site.Form(site.Field("alias", "content"), picture, site.Field("alias", "content")), want: 400},
		{name: "alias twice, one empty", body: site.Form(site.Field("alias", ""), picture, site.Field("alias", "content")), want: 400},
		{name: "sub_folder twice", body: site.Form(site.Field("sub_folder", "a"), site.Field("sub_folder", "a"), picture), want: 400},
		{name: "alias twice in the query", query: "?alias=content&alias=content", body: site.Form(picture), want: 400},
		{name: "cut in a file", body: cut(60), want: 400},
		{name: "cut in a header", body: cut(len(site.Form(picture)) - 50), want: 400},
		{name: "cut before the end", body: cut(len("--\r\n")), want: 400},
		{name: "no form", body: "just text", want: 400},
		{name: "other type", body: "{}", header: site.Headers("Content-Type", "application/json"), want: 415},
		{name: "urlencoded", body: "alias=content", header: urlencoded, want: 415},
		{name: "no boundary", body: site.Form(picture), header: site.Headers("Content-Type", "multipart/form-data"), want: 400},
		{name: "long boundary", body: site.Form(picture), header: site.Headers("Content-Type", "multipart/form-data; boundary="+strings.Repeat("x", 71)), want: 400},
		{name: "part is no form-data", body: strings.Replace(site.Form(picture), "form-data;", "attachment;", 1), want: 400},
		{name: "part without disposition", body: strings.Replace(site.Form(picture), "Content-Disposition", "X", 1), want: 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := header
			if c.header != nil {
				h = site.Merged(s.Credentials(t), c.header)
			}
			got := s.Do(t, http.MethodPost, "/api/upload/image"+c.query, h, c.body).Failures(t, c.want)
			if len(got) != 1 || got[0].Filename != "" {
				t.Errorf("errors %+v, want one without a file name", got)
			}
		})
	}
	other := picture
	other.Name = "photo"
	if got := s.UploadImage(t, other).Failures(t, http.StatusBadRequest); len(got) != 1 || got[0].Filename != "a.gif" {
		t.Errorf("a file in a part of another name: %+v", got)
	}
	s.WantNothing(t)
}

// TestUploadWhatComesAfter: text before the first boundary and after the last one is not part of
// the form (RFC 2046, section 5.1.1). The last line break may be missing.
func TestUploadWhatComesAfter(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	body := site.Form(site.File("a.gif", sample.GIF(t)))
	for name, b := range map[string]string{
		"preamble":      "This is a form.\r\n" + body,
		"epilogue":      body + "That was a form.\r\n",
		"long epilogue": body + strings.Repeat("That was a form.\r\n", 20_000),
		"no line break": strings.TrimSuffix(body, "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, http.MethodPost, "/api/upload/image", header, b).One(t)
		})
	}
}
