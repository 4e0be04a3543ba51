package fetch

import (
	"net/url"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 10_000)
	tests := []struct{ disposition, path, want string }{
		// The address, decoded once.
		{"", "/pictures/photo.jpg", "photo.jpg"},
		{"", "/pictures/", ""},
		{"", "", ""},
		{"", "/a%20b%C3%A4.jpg", "a bä.jpg"},
		{"", "/a%2520b.jpg", "a%20b.jpg"},
		{"", "/a%2F..%2fb.jpg", "b.jpg"},
		{"", "/a%5Cb.jpg", "b.jpg"},
		{"", "/a;b=c.jpg", "a;b=c.jpg"},
		// The name from the server comes first, and its extended form before the plain one.
		{`attachment; filename="photo.jpg"`, "/x.png", "photo.jpg"},
		{`inline; filename=photo.jpg`, "/x.png", "photo.jpg"},
		{`ATTACHMENT; FileName="photo.jpg"`, "/x.png", "photo.jpg"},
		{`attachment; filename="plain.jpg"; filename*=UTF-8''n%C3%A4me.jpg`, "/x.png", "näme.jpg"},
		{`attachment; filename*=utf-8'de'n%C3%A4me.jpg; filename="plain.jpg"`, "/x.png", "näme.jpg"},
		{`attachment; filename*=koi8-r''%C1.jpg; filename="plain.jpg"`, "/x.png", "plain.jpg"},
		{`attachment; filename*=UTF-8''%2525.jpg`, "/x.png", "%25.jpg"},
		{`attachment; filename*0="long-"; filename*1="name.jpg"`, "/x.png", "long-name.jpg"},
		{`attachment; filename="a \"b\".jpg"`, "/x.png", `a "b".jpg`},
		{"attachment; filename=\"n\u00e4me.jpg\"", "/x.png", "näme.jpg"},
		{`attachment; filename="%41.jpg"`, "/x.png", "%41.jpg"},
		// As senders encode it.
		{`attachment; filename="=?UTF-8?B?xYhlLmpwZw==?="`, "/x.png", "ňe.jpg"},
		{`attachment; filename="=?utf-8?B?Li4vYS8/LmpwZw==?="`, "/x.png", "?.jpg"},
		{"attachment; filename=\"\xe9.jpg\"", "/x.png", "é.jpg"},
		{"", "/a/%E9.jpg", "é.jpg"},
		// Only its last segment.
		{`attachment; filename="../../etc/passwd"`, "/x.png", "passwd"},
		{`attachment; filename="/etc/passwd"`, "/x.png", "passwd"},
		{`attachment; filename="C:\dir\photo.jpg"`, "/x.png", "photo.jpg"},
		{`attachment; filename*=UTF-8''..%2F..%5Cphoto.jpg`, "/x.png", "photo.jpg"},
		// An invalid header is ignored.
		{`attachment`, "/x.png", "x.png"},
		{`attachment; filename=""`, "/x.png", "x.png"},
		{`attachment; filename="dir/"`, "/x.png", "x.png"},
		{`attachment; filename="a.jpg`, "/x.png", "x.png"},
		{`attachment; filename=a b.jpg`, "/x.png", "x.png"},
		{`attachment; filename="a.jpg"; filename="b.jpg"`, "/x.png", "x.png"},
		{`filename="a.jpg"`, "/x.png", "x.png"},
		{`attachment; filename*=UTF-8''%zz.jpg`, "/x.png", "x.png"},
		// Longer than any stored name, but bounded.
		{"attachment; filename=" + long, "/x.png", long[:maxName]},
		{"", "/" + long, long[:maxName]},
	}
	for _, tt := range tests {
		at, err := url.Parse("http://example.test" + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := name(tt.disposition, at); got != tt.want {
			t.Errorf("name(%.60q, %.60q) = %.60q, want %.60q", tt.disposition, tt.path, got, tt.want)
		}
	}
}
