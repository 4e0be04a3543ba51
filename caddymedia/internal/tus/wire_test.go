package tus_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// digits is the item of the tests of this file.
const digits = "0123456789"

// TestHTTP1 sends requests with forged lengths and bodies over HTTP/1.1.
func TestHTTP1(t *testing.T) {
	t.Parallel()
	chunked := "Transfer-Encoding: chunked\n"
	for _, method := range []string{http.MethodPatch, http.MethodPost} {
		cases := []wireCase{
			{"all", "Content-Length: 5\n", digits[:5], false, 204, 5},
			{"a byte more", "Content-Length: 11\n", digits + "x", false, 413, 0},
			{"far more, not sent", "Content-Length: 9223372036854775807\n", "", false, 413, 0},
			{"less comes", "Content-Length: 10\n", digits[:5], true, 400, 5},
			{"more comes", "Content-Length: 5\n", digits, false, 204, 5},
			{"leading zeros", "Content-Length: 0005\n", digits[:5], false, 204, 5},
			{"twice the same", "Content-Length: 5\nContent-Length: 5\n", digits[:5], false, 204, 5},
			{"twice, different", "Content-Length: 5\nContent-Length: 6\n", digits[:6], false, 400, 0},
			{"list", "Content-Length: 5, 5\n", digits[:5], false, 400, 0},
			{"negative", "Content-Length: -5\n", digits[:5], false, 400, 0},
			{"sign", "Content-Length: +5\n", digits[:5], false, 400, 0},
			{"20 digits", "Content-Length: 10000000000000000000\n", digits, false, 400, 0},
			{"overflow", "Content-Length: 18446744073709551621\n", digits[:5], false, 400, 0},
			{"hexadecimal", "Content-Length: 0x5\n", digits[:5], false, 400, 0},
			{"chunked", chunked, "5\r\n01234\r\n0\r\n\r\n", false, 204, 5},
			{"chunked and a length", chunked + "Content-Length: 2\n", "5\r\n01234\r\n0\r\n\r\n", false, 204, 5},
			{"chunked, a byte more", chunked, "a\r\n" + digits + "\r\n1\r\nx\r\n0\r\n\r\n", false, 413, 0},
			{"chunked, far more", chunked, "a00000\r\n" + strings.Repeat(digits, 1<<20), false, 413, 0},
			{"chunked without an end", chunked, "5\r\n01234\r\n", true, 400, 5},
			{"chunked, cut", chunked, "6\r\n01234", true, 400, 5},
			{"chunked, no number", chunked, "5\r\n01234\r\nzz\r\n", false, 400, 5},
			{"chunked, overflow", chunked, "5\r\n01234\r\n10000000000000005\r\n56789\r\n0\r\n\r\n", false, 400, 5},
			{"chunked, negative", chunked, "5\r\n01234\r\n-5\r\n56789\r\n0\r\n\r\n", false, 400, 5},
			{"unknown coding", "Transfer-Encoding: gzip, chunked\n", "5\r\n01234\r\n0\r\n\r\n", false, 501, 0},
			{"asks first", "Expect: 100-continue\nContent-Length: 11\n", "", false, 413, 0},
			{"asks for something else", "Expect: 200-ok\nContent-Length: 5\n", digits[:5], false, 417, 0},
		}
		if method == http.MethodPatch {
			cases = append(cases, patchCases...)
		}
		onEach(t, method, func(t *testing.T, b backend) {
			s := b.site(t, nil)
			server := serve(t, s.handler, false)
			for i, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					c.check(t, s, method, fmt.Sprintf("%d.txt", i), func(target, header string) *reply {
						return c.http1(t, server, method, target, header)
					})
				})
			}
		})
	}
}

// patchCases are headers of PATCH with another meaning than a length of the body.
var patchCases = []wireCase{
	{"offset with a sign", "Content-Length: 1\nUpload-Offset: +0\n", "0", false, 400, 0},
	{"negative offset", "Content-Length: 1\nUpload-Offset: -0\n", "0", false, 400, 0},
	{"offset of 20 digits", "Content-Length: 1\nUpload-Offset: 18446744073709551616\n", "0", false, 409, 0},
	{"largest offset", "Content-Length: 1\nUpload-Offset: 9223372036854775807\n", "0", false, 409, 0},
	{"offset with leading zeros", "Content-Length: 1\nUpload-Offset: 000\n", "0", false, 204, 1},
	{"offset twice", "Content-Length: 1\nUpload-Offset: 0\nUpload-Offset: 0\n", "0", false, 400, 0},
	{"another length", "Content-Length: 1\nUpload-Length: 11\n", "0", false, 400, 0},
	{"length with leading zeros", "Content-Length: 1\nUpload-Length: 0010\n", "0", false, 204, 1},
	{"length of 20 digits", "Content-Length: 1\nUpload-Length: 18446744073709551626\n", "0", false, 400, 0},
	{"length twice", "Content-Length: 1\nUpload-Length: 10\nUpload-Length: 10\n", "0", false, 400, 0},
	{"negative length", "Content-Length: 1\nUpload-Length: -10\n", "0", false, 400, 0},
	{"checksum twice", "Content-Length: 1\n" + sha1Of("0") + sha1Of("0"), "0", false, 400, 0},
	{"credentials twice", "Content-Length: 1\nAuthorization: Bearer $TOKEN\n", "0", false, 401, 0},
	{"version twice", "Content-Length: 1\nTus-Resumable: 1.0.0\n", "0", false, 412, 0},
	{"another method", "Content-Length: 1\nX-HTTP-Method-Override: HEAD\n", "0", false, 200, 0},
	{"another method, lower case", "Content-Length: 1\nX-HTTP-Method-Override: head\n", "0", false, 405, 0},
	{"two other methods", "Content-Length: 1\nX-HTTP-Method-Override: PATCH\nX-HTTP-Method-Override: DELETE\n", "0", false, 405, 0},
	{"another method, with a larger body", "Content-Length: 1000000\nX-HTTP-Method-Override: HEAD\n", "0", false, 200, 0},
	{"another method, asks first", "Expect: 100-continue\nContent-Length: 1\nX-HTTP-Method-Override: GET\n", "", false, 200, 0},
	{"trailer", "Transfer-Encoding: chunked\nTrailer: Upload-Offset\n", "1\r\n0\r\n0\r\nUpload-Offset: 5\r\n\r\n", false, 204, 1},
}

// TestUnusedBody: a body of a request that has no use for one changes nothing.
func TestUnusedBody(t *testing.T) {
	t.Parallel()
	chunked := "Transfer-Encoding: chunked\n"
	bodies := []wireCase{
		{name: "short", header: "Content-Length: 5\n", body: digits[:5]},
		{name: "chunked", header: chunked, body: "5\r\n01234\r\n0\r\n\r\n"},
		{name: "chunked, malformed", header: chunked, body: "zz\r\n"},
		{name: "cut", header: "Content-Length: 10\n", body: digits[:5], cut: true},
		{name: "large", header: "Content-Length: 10485760\n", body: strings.Repeat(digits, 1<<20)},
		{name: "not sent", header: "Content-Length: 9223372036854775807\n"},
		{name: "asks first", header: "Expect: 100-continue\nContent-Length: 5\n"},
		{name: "offset", header: "Content-Length: 5\nUpload-Offset: 0\nUpload-Length: 5\n" + sha1Of(digits[:5]), body: digits[:5]},
	}
	onEach(t, "HTTP/1.1", func(t *testing.T, b backend) {
		s := b.site(t, nil)
		server := serve(t, s.handler, false)
		for _, c := range bodies {
			t.Run(c.name, func(t *testing.T) {
				address := s.create(t, len(digits), aText)
				s.patch(t, address, 0, digits[:3], "").want(t, 204, "")
				for method, status := range map[string]int{http.MethodOptions: 204, http.MethodHead: 200, http.MethodGet: 200} {
					got := c.http1(t, server, method, address, s.replaced(t, tusHeader+tusBody+c.header))
					got.want(t, status, "")
					s.offset(t, address, 3)
				}
				c.http1(t, server, http.MethodDelete, address, s.replaced(t, tusHeader+tusBody+c.header)).want(t, 204, "")
				if left := s.objects(t); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	})
}

// TestHTTP2 sends requests with forged lengths over HTTP/2.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	cases := append([]wireCase{
		{"all", "content-length: 5\n", digits[:5], false, 204, 5},
		{"without a length", "", digits[:5], false, 204, 5},
		{"leading zeros", "content-length: 0005\n", digits[:5], false, 204, 5},
		{"a byte more", "content-length: 11\n", digits + "x", false, 413, 0},
		{"a byte more without a length", "", digits + "x", false, 413, 0},
		{"far more, not sent", "content-length: 9223372036854775807\n", "", true, 413, 0},
		{"less comes", "content-length: 10\n", digits[:5], false, 400, 5},
		{"cut", "", digits[:5], true, 0, 5},
	}, patchCases[:len(patchCases)-1]...)
	for _, length := range []string{"2", "0", "-5", "+5", "0x5", "10000000000000000000", "18446744073709551621", "5, 5", "2\ncontent-length: 5"} {
		cases = append(cases, wireCase{"content-length " + length, "content-length: " + length + "\n", digits[:5], false, 0, 0})
	}
	onEach(t, "PATCH", func(t *testing.T, b backend) {
		s := b.site(t, nil)
		server := serve(t, s.handler, true)
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				c.check(t, s, http.MethodPatch, fmt.Sprintf("%d.txt", i), func(target, header string) *reply {
					return c.http2(t, server, http.MethodPatch, target, header)
				})
			})
		}
	})
}
