package redact

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStrict(t *testing.T) {
	t.Parallel()
	const (
		odd = "p\"a s/s\\<&>"
		key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQAAAAAAAAAB\n-----END OPENSSH PRIVATE KEY-----\n"
		sas = "BlobEndpoint=https://example.com/;SharedAccessSignature=sv=2024-01-01&sig=c2lnbmF0dXJlLW9mLWEtc2Fz%3D"
		con = "AccountName=media;AccountKey=QWNjb3VudEtleUZvclRlc3RzT25seQ==;EndpointSuffix=core.windows.net"
	)
	for _, c := range []struct {
		name, text string
		secrets    []string
		want       string
	}{
		{"nothing secret", "all is well", nil, "all is well"},
		{"another secret", "all is well", []string{"secret"}, "all is well"},
		{"empty ones", "all is well", []string{"", " ", "\n"}, "all is well"},
		{"plain", "login with hunter22 failed: hunter22", []string{"hunter22"}, "login with *** failed: ***"},
		{"quoted", fmt.Sprintf("login with %q", odd), []string{odd}, `login with "***"`},
		{"in a query", "https://x/?p=" + url.QueryEscape(odd), []string{odd}, "https://x/?p=***"},
		{"in a path", "https://x/" + url.PathEscape(odd), []string{odd}, "https://x/***"},
		{"in JSON", `{"p":"p\"a s/s\\\u003c\u0026\u003e"}`, []string{odd}, `{"p":"***"}`},
		{"one in another", "secret and secret-two", []string{"secret", "secret-two"}, "*** and ***"},
		{"the longer one first", "abcdef", []string{"bcde", "abcdef"}, "***"},
		{"with a line break behind", "is hunter22.", []string{"hunter22\n"}, "is ***."},
		{"line of a key", "bad base64: b3BlbnNzaC1rZXktdjEAAAAA", []string{key}, "bad base64: ***"},
		{"frame of a key", "no -----END OPENSSH PRIVATE KEY-----", []string{key}, "no -----END OPENSSH PRIVATE KEY-----"},
		{"key of a connection string", "bad key QWNjb3VudEtleUZvclRlc3RzT25seQ==", []string{con}, "bad key ***"},
		{"host of a connection string", "no host core.windows.net", []string{con}, "no host core.windows.net"},
		{"signature", "GET https://example.com/c?sig=c2lnbmF0dXJlLW9mLWEtc2Fz%3D", []string{sas}, "GET https://example.com/c?sig=***"},
		{"as a user of an address", "ftp://u" + (&url.URL{User: url.UserPassword("", "a:b,c@d;e/f?")}).User.String() + "@x", []string{"a:b,c@d;e/f?"}, "ftp://u:***@x"},
		{"as a path of several parts", (&url.URL{Path: "/a:b,c;e/f?"}).String(), []string{"a:b,c;e/f?"}, "/***"},
		{"in a query with small digits", "?p=p%22a+s%2fs%5c%3c%26%3e", []string{odd}, "?p=***"},
		{"an address in quotes", fmt.Sprintf("Get %q: refused", "http://x/?p="+url.PathEscape(odd)), []string{odd}, `Get "http://x/?p=***": refused`},
		{"an error in an error", fmt.Sprintf("%q", fmt.Sprintf("login with %q", odd)), []string{odd}, `"login with \"***\""`},
		{"line breaks in quotes", fmt.Sprintf("login with %q", "one\ntwo\tthree"), []string{"one\ntwo\tthree"}, `login with "***"`},
		{"letters in ASCII", fmt.Sprintf("login with %+q", "schlüssel😀"), []string{"schlüssel😀"}, `login with "***"`},
		{"letters in JSON in ASCII", `{"p":"schl\u00fcssel\ud83d\ude00"}`, []string{"schlüssel😀"}, `{"p":"***"}`},
		{"in JSON of others", `{"p":"p\"a s\/s\\<&>"}`, []string{odd}, `{"p":"***"}`},
		{"in XML", "<Error>p&quot;a s/s\\&lt;&amp;&gt;</Error>", []string{odd}, "<Error>***</Error>"},
		{"in XML by numbers", "<Error>p&#34;a s/s\\&#x3c;&#38;&gt;</Error>", []string{odd}, "<Error>***</Error>"},
		{"in hex", fmt.Sprintf("%q", "ab\x01\xffcd"), []string{"ab\x01\xffcd"}, `"***"`},
		{"password of an address", "AUTH hunter:22 failed", []string{"redis://user:hunter%3A22@host/0"}, "AUTH *** failed"},
		{"password without a user", `AUTH "hunter/22" failed`, []string{"redis://:hunter%2F22@host:6379/0"}, `AUTH "***" failed`},
		{"password beside its user", "user:hunter22 refused", []string{"https://user:hunter22@proxy.example"}, "user:*** refused"},
		{"short one", "a cat", []string{"cat"}, "a ***"},
		{"short one in words", "permission denied for the path /srv/p1", []string{"p", "é"}, "permission denied for the path /srv/p1"},
		{"short one in quotes", `login with "p", "a"`, []string{"p"}, `login with "***", "a"`},
		{"short one that is not there", "a dog", []string{"cat"}, "a dog"},
		{"short one beside a long one", "hunter22 has a cat", []string{"cat", "hunter22"}, "*** has a ***"},
	} {
		if got := New(c.secrets...).Strict(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestText: short secrets stay, unlike with Strict.
func TestText(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\n-----END KEY-----\n"
	for name, test := range map[string]struct{ secret, text, want string }{
		"itself":      {"p&ss word", "user:p&ss word@host", "user:***@host"},
		"in quotes":   {`p"ss\`, `"p\"ss\\"`, `"***"`},
		"in a query":  {"p&ss word", "?key=p%26ss+word", "?key=***"},
		"in a path":   {"p&ss word/", "/p&ss%20word%2F", "/***"},
		"trimmed":     {"password\n", "of password.", "of ***."},
		"of a key":    {key, "bad MC4CAQAwBQYDK2VwBCIEIA", "bad ***"},
		"by chance":   {"a", "all is well", "all is well"},
		"none":        {"", "all is well", "all is well"},
		"other words": {"password", "pass the word", "pass the word"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := New(test.secret).Text(test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzText hides a secret in each spelling that errors use, and in each spelling inside another.
func FuzzText(f *testing.F) {
	for _, secret := range []string{`p"a s/s\<&>`, `C:\new\x41`, "%41%2541", "&amp;lt;", `\ud83d\u0041`, "a+b c", "\xff\x00é😀", `\`, "%", "&#;"} {
		f.Add(secret)
	}
	writers := []func(string) string{
		func(s string) string { return s },
		strconv.Quote, strconv.QuoteToASCII, url.QueryEscape, url.PathEscape, html.EscapeString,
		func(s string) string { return url.UserPassword("", s).String() },
		func(s string) string { b, _ := json.Marshal(s); return string(b) },
	}
	f.Fuzz(func(t *testing.T, secret string) {
		if !utf8.ValidString(secret) { // which JSON cannot write
			return
		}
		secret = "hunter" + secret + "jkq"
		for i, write := range writers {
			for j, again := range writers {
				text := "before " + again("in "+write(secret)+" it") + " behind"
				got := New(secret).Text(text)
				if strings.Contains(got, "hunter") || strings.Contains(got, "jkq") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") {
					t.Errorf("%d in %d: %q became %q", i, j, text, got)
				}
			}
		}
	})
}
