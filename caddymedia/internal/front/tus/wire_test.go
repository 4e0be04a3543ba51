package tus_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
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
			server := serve(t, s.Handler, false)
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
		server := serve(t, s.Handler, false)
		for _, c := range bodies {
			t.Run(c.name, func(t *testing.T) {
				address := s.create(t, len(digits), aText)
				s.patch(t, address, 0, digits[:3], "").Want(t, 204, "")
				for method, status := range map[string]int{http.MethodOptions: 204, http.MethodHead: 200, http.MethodGet: 200} {
					got := c.http1(t, server, method, address, s.Replaced(t, tusHeader+tusBody+c.header))
					got.Want(t, status, "")
					s.offset(t, address, 3)
				}
				c.http1(t, server, http.MethodDelete, address, s.Replaced(t, tusHeader+tusBody+c.header)).Want(t, 204, "")
				if left := s.Objects(t); len(left) > 0 {
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
		server := serve(t, s.Handler, true)
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				c.check(t, s, http.MethodPatch, fmt.Sprintf("%d.txt", i), func(target, header string) *reply {
					return c.http2(t, server, http.MethodPatch, target, header)
				})
			})
		}
	})
}

// wireCase is a request as it is on the wire, to an upload of 10 bytes.
type wireCase struct {
	name   string
	header string // lines "Name: value"
	body   string // as it is on the wire
	cut    bool   // the connection, or the stream, ends without the end of the body
	status int    // of PATCH; 0: perhaps none
	offset int    // afterwards; at most, if the status is 0
}

// patience bounds each exchange on the wire.
const patience = 5 * time.Second

// check sends the request, as one that adds bytes to an upload or as one that creates it.
// Afterwards the upload must have its offset and be able to continue; an upload that was not
// created must not have left anything.
func (c wireCase) check(t *testing.T, s *site, method, filename string, send func(target, header string) *reply) {
	t.Helper()
	header, address := metadata("filename", filename)+"Upload-Length: 10\n", resumablePath
	status, most := c.status, c.offset
	switch {
	case method == http.MethodPatch:
		address = s.create(t, len(digits), metadata("filename", filename))
		if header = "Upload-Offset: 0\n"; strings.Contains(c.header, "Upload-Offset:") || strings.Contains(c.header, "upload-offset:") {
			header = ""
		}
	case status == http.StatusNoContent, c.offset > 0:
		status = http.StatusCreated
	}
	got := send(address, s.Replaced(t, tusHeader+tusBody+header+c.header))
	if got.Status != status && status != 0 {
		t.Errorf("status %d, want %d: %s", got.Status, status, got.Body)
	}
	if method == http.MethodPost {
		if address = got.Header.Get(location); status != http.StatusCreated {
			if address != "" {
				t.Errorf("address %q", address)
			}
			s.nothingOpen(t)
			return
		}
	}
	for status == 0 { // the request may not have ended
		head := s.send(t, http.MethodHead, address, "", "")
		if c.offset, _ = strconv.Atoi(head.Header.Get("Upload-Offset")); c.offset > most {
			t.Fatalf("offset %d, want at most %d", c.offset, most)
		}
		if s.patch(t, address, c.offset, digits[c.offset:], "").Status == http.StatusNoContent {
			c.offset, status = len(digits), http.StatusNoContent
		}
	}
	s.offset(t, address, c.offset)
	s.patch(t, address, c.offset, digits[c.offset:], "").Want(t, 204, "Media-Filename: "+filename)
	if content, _ := s.Stored(t, "file/content/"+filename); content != digits {
		t.Errorf("the item is %q", content)
	}
	s.nothingOpen(t)
}

// nothingOpen checks that the storage has nothing of unfinished uploads.
func (s *site) nothingOpen(t *testing.T) {
	t.Helper()
	if left := s.open(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// open returns the keys of everything of unfinished uploads.
func (s *site) open(t *testing.T) []string {
	t.Helper()
	var keys []string
	for key := range s.Objects(t) {
		if strings.HasPrefix(key, resumable.Folder+"/") && !strings.HasPrefix(key, resumable.Folder+"/done/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// serve returns a server for HTTP/2 or HTTP/1.1.
func serve(t *testing.T, handler http.Handler, h2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	if server.EnableHTTP2 = h2; h2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

// serveBegun returns a server of the site, and a channel that receives whenever a body was read
// from.
func (s *site) serveBegun(t *testing.T, h2 bool) (server *httptest.Server, begun <-chan bool) {
	t.Helper()
	read := make(chan bool, 100)
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = noticed{r.Body, read}
		s.Handler.ServeHTTP(w, r)
	}), h2), read
}

// noticed is a body that sends to a channel after each Read of bytes.
type noticed struct {
	io.ReadCloser
	read chan<- bool
}

func (b noticed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.read <- true
	}
	return n, err
}

// silentPatch sends five digits to an upload, and then nothing more. The status of the response is
// sent to ended.
func (s *site) silentPatch(t *testing.T, server *httptest.Server, address, header string) (ended <-chan int) {
	t.Helper()
	body, client := io.Pipe()
	t.Cleanup(func() { client.Close() })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL+address, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = s.Request(t, http.MethodPatch, address, tusHeader+tusBody+"Upload-Offset: 0\n"+header, "").Header
	status := make(chan int, 1)
	go func() {
		w, err := server.Client().Do(r)
		if err != nil {
			t.Error(err)
			close(status)
			return
		}
		defer w.Body.Close()
		status <- w.StatusCode
	}()
	if _, err := client.Write([]byte(digits[:5])); err != nil {
		t.Fatal(err)
	}
	return status
}

// http1 sends the request over HTTP/1.1.
func (c wireCase) http1(t *testing.T, server *httptest.Server, method, target, header string) *reply {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go func() { // the server may answer before it has read everything
		_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n%s", method, target, strings.ReplaceAll(header, "\n", "\r\n"), c.body)
		if c.cut {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &reply{Status: r.StatusCode, Header: r.Header, Body: string(body)}
}

// http2 sends the request over HTTP/2. Without a response the status is 0.
func (c wireCase) http2(t *testing.T, server *httptest.Server, method, target, header string) *reply {
	t.Helper()
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	head := fmt.Sprintf(":method: %s\n:scheme: https\n:authority: x\n:path: %s\n", method, target)
	for line := range strings.Lines(head + header) {
		at := 1 + strings.Index(line[1:], ":")
		_ = encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(line[:at]), Value: strings.TrimSpace(line[at+1:])})
	}
	_, err = io.WriteString(conn, http2.ClientPreface)
	for _, write := range []func() error{
		func() error { return framer.WriteSettings() },
		func() error {
			return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
		},
		func() error { return framer.WriteData(1, !c.cut, []byte(c.body)) },
		func() error {
			if !c.cut || c.status != 0 {
				return nil
			}
			return framer.WriteRSTStream(1, http2.ErrCodeCancel)
		},
	} {
		if err == nil {
			err = write()
		}
	}
	got := &reply{Header: http.Header{}}
	for err == nil {
		var frame http2.Frame
		if frame, err = framer.ReadFrame(); err != nil {
			break
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			got.Status, _ = strconv.Atoi(frame.PseudoValue("status"))
			for _, field := range frame.RegularFields() {
				got.Header.Add(field.Name, field.Value)
			}
			return got
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return got
		case *http2.SettingsFrame:
			if c.cut && c.status == 0 && !frame.IsAck() {
				return got
			}
		}
	}
	t.Fatal(err)
	return nil
}
