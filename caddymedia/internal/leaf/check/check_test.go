package check

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// checkOf returns a check with a program and wide bounds.
func checkOf(program Program) *Check {
	return &Check{
		Name: "test", Program: program, Timeout: 10 * time.Second, MaxSize: 1 << 30, Turns: queue.New(queue.Options{Slots: 4}),
	}
}

func fileOf(content string) File {
	return File{
		Content: strings.NewReader(content), Size: int64(len(content)), Kind: "file", Alias: "docs", Filename: "sub/ä b.pdf",
		Type: "application/pdf", Account: "site", User: "alice",
	}
}

// clamd serves connections as a daemon does: answer gets the file, and returns what is sent back.
func clamd(t *testing.T, answer func(conn net.Conn)) *Clamd {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	serve(listener, answer)
	program, err := NewClamd("unix/" + socket)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// serve answers connections until the listener is closed.
func serve(listener net.Listener, answer func(conn net.Conn)) {
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answer(conn)
			}()
		}
	}()
}

// stream reads the file of a command INSTREAM.
func stream(conn io.Reader) (content []byte, err error) {
	command := make([]byte, len("zINSTREAM\x00"))
	if _, err = io.ReadFull(conn, command); err != nil || string(command) != "zINSTREAM\x00" {
		return nil, fmt.Errorf("command %q: %w", command, err)
	}
	for {
		var size uint32
		if err := binary.Read(conn, binary.BigEndian, &size); err != nil || size == 0 {
			return content, err
		}
		chunk := make([]byte, size)
		if _, err := io.ReadFull(conn, chunk); err != nil {
			return nil, err
		}
		content = append(content, chunk...)
	}
}

// TestClamd: each answer of the daemon, whole, half or none, is what it means, and the file arrives
// whole.
func TestClamd(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3*clamdChunk+17)
	for name, tt := range map[string]struct {
		content, answer string
		early           bool // it answers before the file is read
		want            Result
		message         string
	}{
		"clean":         {large, "stream: OK\x00", false, Accepted, ""},
		"empty":         {"", "stream: OK\x00", false, Accepted, ""},
		"malware":       {"x", "stream: Win.Test.EICAR_HDB-1 FOUND\x00", false, Refused, `the file contains malware: "Win.Test.EICAR_HDB-1"`},
		"too large":     {strings.Repeat("x", 8<<20), "INSTREAM size limit exceeded. ERROR\x00", true, TooLarge, ""},
		"failure":       {"x", "stream: Can't allocate memory ERROR\x00", false, Unanswered, "allocate"},
		"half":          {"x", "stream: O", false, Unanswered, "reading the answer"},
		"half malware":  {"x", "stream: Win.Test FOUN", false, Unanswered, "reading the answer"},
		"nothing":       {"x", "", false, Unanswered, "reading the answer"},
		"other":         {"x", "stream: NOT OK\x00", false, Unanswered, "answered"},
		"early OK":      {strings.Repeat("x", 8<<20), "stream: OK\x00", true, Unanswered, "sending"},
		"endless":       {"x", strings.Repeat("OK", clamdAnswer), false, Unanswered, "reading the answer"},
		"unknown order": {"x", "UNKNOWN COMMAND\x00", false, Unanswered, "UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []byte
			program := clamd(t, func(conn net.Conn) {
				if !tt.early {
					got, _ = stream(conn)
				}
				_, _ = io.WriteString(conn, tt.answer)
			})
			err := checkOf(program).Of(t.Context(), fileOf(tt.content))
			if result := ResultOf(err); result != tt.want || !strings.Contains(fmt.Sprint(err), tt.message) {
				t.Errorf("%s, %v", result, err)
			}
			if !tt.early && string(got) != tt.content {
				t.Errorf("the daemon got %d bytes of %d", len(got), len(tt.content))
			}
		})
	}
}

// TestHTTP: the status decides, and only a short line of plain text is for the caller.
func TestHTTP(t *testing.T) {
	t.Parallel()
	const plain = "text/plain; charset=utf-8"
	for name, tt := range map[string]struct {
		status       int
		kind, answer string
		want         Result
		message      string
	}{
		"ok":         {200, plain, "no", Accepted, ""},
		"no content": {204, "", "", Accepted, ""},
		"refused":    {422, plain, "the picture shows a face\nand more", Refused, "the picture shows a face"},
		"html":       {400, "text/html", "<b>no</b>", Refused, "the file was refused by a check"},
		"no reason":  {403, plain, "", Refused, "the file was refused by a check"},
		"long":       {403, plain, strings.Repeat("x", 201), Refused, "the file was refused by a check"},
		"control":    {403, plain, "a\x1b[31mb", Refused, "the file was refused by a check"},
		"not UTF-8":  {403, plain, "\xff", Refused, "the file was refused by a check"},
		"redirect":   {302, "", "", Unanswered, ""},
		"failure":    {500, plain, "x", Unanswered, ""},
		"busy":       {503, plain, "x", Unanswered, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, header := "", http.Header(nil)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got, _ := io.ReadAll(r.Body)
				content, header = string(got), r.Header
				header.Set("Length", fmt.Sprint(r.ContentLength))
				w.Header().Set("Content-Type", tt.kind)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.answer)
			}))
			defer server.Close()
			program, err := NewHTTP(server.URL+"/judge", []string{"X-Key secret of  two words"})
			if err != nil {
				t.Fatal(err)
			}
			err = checkOf(program).Of(t.Context(), fileOf("what it is"))
			refused, _ := errors.AsType[*RefusedError](err)
			if result := ResultOf(err); result != tt.want || tt.want == Refused && refused.Message != tt.message {
				t.Errorf("%s, %v", result, err)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/pdf", "X-Kind": "file", "X-Alias": "docs", "X-Filename": "sub%2F%C3%A4%20b.pdf",
				"X-Account": "site", "X-User": "alice", "X-Key": "secret of  two words", "Length": "10",
			} {
				if got := header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if content != "what it is" {
				t.Errorf("the program got %q", content)
			}
		})
	}
}

// TestHTTPEarly: a program that answers before it has read the file, or closes the connection, does
// not have it read after the check has ended.
func TestHTTPEarly(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/close" {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusUnsupportedMediaType)
	}))
	defer server.Close()
	for path, want := range map[string]Result{"/": Refused, "/close": Unanswered} {
		program, err := NewHTTP(server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			var over atomic.Bool
			file := fileOf("")
			file.Content, file.Size = &watched{bytes.NewReader(make([]byte, 8<<20)), t, &over}, 8<<20
			if err := checkOf(program).Of(t.Context(), file); ResultOf(err) != want {
				t.Errorf("%s: %v", path, err)
			}
			over.Store(true)
		}
	}
}

// watched is a content that must not be read when the check is over.
type watched struct {
	io.ReadSeeker
	t    *testing.T
	over *atomic.Bool
}

func (w *watched) Read(p []byte) (int, error) {
	if w.over.Load() {
		w.t.Error("it is read after the end")
	}
	return w.ReadSeeker.Read(p)
}

// TestHTTPS: HTTP/2 is not used, which would go on to read a file after the answer.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Error(r.Proto)
		}
		w.WriteHeader(http.StatusUnsupportedMediaType)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	program, err := NewHTTP(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	file := fileOf("")
	file.Content, file.Size = &watched{bytes.NewReader(make([]byte, 8<<20)), t, &over}, 8<<20
	if err := checkOf(program).Of(t.Context(), file); ResultOf(err) != Unanswered {
		t.Errorf("a certificate of nobody: %v", err)
	}
	program.dialer = &tls.Dialer{Config: server.Client().Transport.(*http.Transport).TLSClientConfig}
	if err := checkOf(program).Of(t.Context(), file); ResultOf(err) != Refused {
		t.Error(err)
	}
	over.Store(true)
}

// TestHTTPCutReason: the caller gets no part of a reason.
func TestHTTPCutReason(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "20")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, "the pict")
	}))
	t.Cleanup(server.Close)
	program, err := NewHTTP(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = checkOf(program).Of(t.Context(), fileOf("x"))
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Message != "the file was refused by a check" {
		t.Error(err)
	}
}

// TestHTTPConnections: what a program has answered counts, also if it then closes the connection
// with most of the file unread, or does not end its answer. No file gets a connection on which
// another one was sent, and which may be at its end.
func TestHTTPConnections(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size         int64
		drains, ends bool
		answer       string
		want         Result
		message      string
	}{
		"closes early":   {8 << 20, false, true, "422 No\r\nContent-Type: text/plain\r\n\r\nno\n", Refused, "no"},
		"closes idle":    {9, true, true, "204 Yes\r\n\r\n", Accepted, ""},
		"never ends":     {9, true, false, "422 No\r\nContent-Type: text/plain\r\n\r\nn", Refused, "the file was refused by a check"},
		"never ends yes": {9, true, false, "200 Yes\r\nContent-Length: 9\r\n\r\n", Accepted, ""},
		"continues":      {9, true, true, "103 Early Hints\r\n\r\nHTTP/1.1 422 No\r\n\r\n", Refused, "the file was refused by a check"},
		"endless":        {9, true, false, "200 Yes\r\nX: " + strings.Repeat("x", 1<<20), Unanswered, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			serve(listener, func(conn net.Conn) {
				reader := bufio.NewReader(conn)
				req, err := http.ReadRequest(reader)
				if err == nil && tt.drains {
					_, err = io.Copy(io.Discard, req.Body)
				}
				if err == nil {
					_, err = io.WriteString(conn, "HTTP/1.1 "+tt.answer)
				}
				if err == nil && tt.drains {
					_, _ = reader.Peek(1) // of the next file
				}
			})
			program, err := NewHTTP("http://"+listener.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			c, times := checkOf(program), 10
			if !tt.ends {
				c.Timeout, times = 5*time.Second, 1 // it is waited for
			}
			for range times {
				file := fileOf("")
				file.Content, file.Size = bytes.NewReader(make([]byte, tt.size)), tt.size
				err := c.Of(t.Context(), file)
				if refused, _ := errors.AsType[*RefusedError](err); ResultOf(err) != tt.want || refused != nil && refused.Message != tt.message {
					t.Errorf("%s: %v", ResultOf(err), err)
				}
			}
		})
	}
}

// stuck is a program that waits for the end of the context.
type stuck struct{ asked atomic.Int32 }

func (s *stuck) Ask(ctx context.Context, _ File) error {
	s.asked.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

// TestBounds: a file over the size is not sent, a program that hangs has no answer in time, also
// for those that wait for their turn, and the end of a request is that of its check.
func TestBounds(t *testing.T) {
	t.Parallel()
	program := &stuck{}
	c := checkOf(program)
	c.MaxSize, c.Timeout, c.Turns = 3, 20*time.Millisecond, queue.New(queue.Options{Slots: 1})
	if err := c.Of(t.Context(), fileOf("four")); ResultOf(err) != TooLarge || program.asked.Load() != 0 {
		t.Errorf("%v, asked %d times", err, program.asked.Load())
	}
	done := make(chan error)
	for range 5 {
		go func() { done <- c.Of(context.Background(), fileOf("yes")) }()
	}
	for range 5 {
		if err := <-done; ResultOf(err) != Unanswered || !errors.Is(err, errTimeout) {
			t.Error(err)
		}
	}
	c.Timeout = time.Hour
	ended, cancel := context.WithCancel(t.Context())
	go func() { done <- c.Of(ended, fileOf("yes")) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// slow is a content that is fetched when it is first read.
type slow struct {
	io.ReadSeeker
	fetched bool
}

func (s *slow) Read(p []byte) (int, error) {
	if !s.fetched {
		time.Sleep(time.Hour)
		s.fetched = true
	}
	return s.ReadSeeker.Read(p)
}

// TestSlowContent: the time to fetch a file from its storage is none of the check.
func TestSlowContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := fileOf("x")
		file.Content = &slow{ReadSeeker: file.Content}
		if err := checkOf(scanner{limit: 1}).Of(t.Context(), file); err != nil {
			t.Error(err)
		}
	})
}

// broken is a content that cannot be read, but for its last byte.
type broken struct{ *strings.Reader }

var errBroken = errors.New("broken")

func (b broken) Read(p []byte) (int, error) {
	if b.Len() == 1 {
		return b.Reader.Read(p)
	}
	return 0, errBroken
}

// TestUnreadable: content that cannot be read is no fault of the program, and ends the check at
// once.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	judge, err := NewHTTP(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	daemon := clamd(t, func(conn net.Conn) { _, _ = stream(conn) })
	for _, program := range []Program{judge, daemon} {
		file := fileOf("")
		file.Content, file.Size = broken{strings.NewReader("bytes")}, 5
		c := checkOf(program)
		c.Timeout = time.Hour
		err := c.Of(t.Context(), file)
		if content, ok := errors.AsType[*ContentError](err); !ok || !errors.Is(content, errBroken) {
			t.Errorf("%T: %v", program, err)
		}
	}
}

// TestAddresses: what is no address is refused.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"unix//run/clamd.ctl": true, "127.0.0.1:3310": true, "tcp/[::1]:3310": true, "localhost:3310": true,
		"": false, "unix/": false, "localhost": false, ":3310": false, "localhost:": false, "/run/clamd.ctl": false,
	} {
		if _, err := NewClamd(address); (err == nil) != ok {
			t.Errorf("clamd %q: %v", address, err)
		}
	}
	for address, ok := range map[string]bool{"http://localhost/x": true, "https://a:9": true, "": false, "ftp://a": false, "http:///x": false, "a": false} {
		if _, err := NewHTTP(address, nil); (err == nil) != ok {
			t.Errorf("http %q: %v", address, err)
		}
	}
	for _, line := range []string{"", "X-Key", "X-Key ", "X Key: a\nb", "X-Ké a"} {
		if _, err := NewHTTP("http://a", []string{line}); err == nil {
			t.Errorf("header %q is accepted", line)
		}
	}
}

// FuzzVerdict: no answer of a daemon but OK accepts a file.
func FuzzVerdict(f *testing.F) {
	for _, answer := range []string{"stream: OK\x00", "OK", "stream: a FOUND\x00", " FOUND", "INSTREAM size limit exceeded. ERROR\x00", "\x00", "stream: x: OK"} {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		result := ResultOf(verdict(answer, nil))
		trimmed := strings.TrimRight(answer, "\x00\n")
		if accepted := trimmed == "OK" || trimmed == "stream: OK"; accepted != (result == Accepted) {
			t.Errorf("%q: %s", answer, result)
		}
		if ResultOf(verdict(answer, io.ErrClosedPipe)) == Accepted {
			t.Errorf("%q accepts half a file", answer)
		}
	})
}

// scanner finds the test file in files up to a size, and in archives if it looks there.
type scanner struct {
	limit    int
	archives bool
}

func (s scanner) Ask(_ context.Context, f File) error {
	content, err := io.ReadAll(f.Content)
	found := string(content) == eicar || s.archives && bytes.Contains(content, []byte("eicar.com"))
	switch {
	case err == nil && len(content) > s.limit:
		return ErrTooLarge
	case err == nil && found:
		return &RefusedError{Message: "found"}
	}
	return err
}

// TestProbe: what a scanner does not find, or does not take, is a failed step, and of another
// program a note. A program that does not answer is asked once.
func TestProbe(t *testing.T) {
	t.Parallel()
	answering := func(s scanner) *Clamd {
		return clamd(t, func(conn net.Conn) {
			content, err := stream(conn)
			file := fileOf(string(content))
			switch err = errors.Join(err, s.Ask(t.Context(), file)); ResultOf(err) {
			case Accepted:
				_, _ = io.WriteString(conn, "stream: OK\x00")
			case Refused:
				_, _ = io.WriteString(conn, "stream: Eicar FOUND\x00")
			case TooLarge:
				_, _ = io.WriteString(conn, "INSTREAM size limit exceeded. ERROR\x00")
			case Unanswered:
			}
		})
	}
	for name, tt := range map[string]struct {
		program Program
		want    string // of the steps
	}{
		"scanner":     {answering(scanner{1 << 30, true}), "+ + + +"},
		"no archives": {answering(scanner{1 << 30, false}), "+ + - -"},
		"low limit":   {answering(scanner{1 << 20, true}), "+ + + -"},
		"silent":      {clamd(t, func(net.Conn) {}), "-"},
		"judge":       {scanner{1 << 30, false}, "+ + ? ?"},
		"limited":     {scanner{1 << 20, false}, "+ + ? -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			c := checkOf(tt.program)
			for _, step := range c.Probe(t.Context()).Steps {
				switch {
				case step.Err != nil && storagedrivers.CauseOf(step.Err) == "" && name != "silent":
					t.Errorf("no cause of %v", step.Err)
				case step.Err != nil:
					got = append(got, "-")
				case step.Note != "":
					got = append(got, "?")
				default:
					got = append(got, "+")
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if state := c.State(); state.Asked.IsZero() || (state.Err != nil) != (name == "silent") {
				t.Errorf("%+v", state)
			}
		})
	}
}
