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

	"github.com/caddymedia/media/caddymedia/internal/resumable"
)

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

// check sends the request, as one that adds bytes to an upload or as one that creates it. Afterwards
// the upload must have its offset and be able to continue; an upload that was not created must not
// have left anything.
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
	got := send(address, s.replaced(t, tusHeader+tusBody+header+c.header))
	if got.status != status && status != 0 {
		t.Errorf("status %d, want %d: %s", got.status, status, got.body)
	}
	if method == http.MethodPost {
		if address = got.header.Get(location); status != http.StatusCreated {
			if address != "" {
				t.Errorf("address %q", address)
			}
			s.nothingOpen(t)
			return
		}
	}
	for status == 0 { // the request may not have ended
		head := s.send(t, http.MethodHead, address, "", "")
		if c.offset, _ = strconv.Atoi(head.header.Get("Upload-Offset")); c.offset > most {
			t.Fatalf("offset %d, want at most %d", c.offset, most)
		}
		if s.patch(t, address, c.offset, digits[c.offset:], "").status == http.StatusNoContent {
			c.offset, status = len(digits), http.StatusNoContent
		}
	}
	s.offset(t, address, c.offset)
	s.patch(t, address, c.offset, digits[c.offset:], "").want(t, 204, "Media-Filename: "+filename)
	if content, _ := s.stored(t, "file/content/"+filename); content != digits {
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
	for key := range s.objects(t) {
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

// serveBegun returns a server of the site, and a channel that receives whenever a body was read from.
func (s *site) serveBegun(t *testing.T, h2 bool) (server *httptest.Server, begun <-chan bool) {
	t.Helper()
	read := make(chan bool, 100)
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = noticed{r.Body, read}
		s.handler.ServeHTTP(w, r)
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
	r.Header = s.request(t, http.MethodPatch, address, tusHeader+tusBody+"Upload-Offset: 0\n"+header, "").Header
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
	return &reply{r.StatusCode, r.Header, string(body)}
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
	got := &reply{header: http.Header{}}
	for err == nil {
		var frame http2.Frame
		if frame, err = framer.ReadFrame(); err != nil {
			break
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			got.status, _ = strconv.Atoi(frame.PseudoValue("status"))
			for _, field := range frame.RegularFields() {
				got.header.Add(field.Name, field.Value)
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
