package ftp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestTimes: MDTM is used even if FEAT does not announce it. A server without times reports a size
// and no time.
func TestTimes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server *fake
		timed  bool
	}{
		"not announced": {&fake{quiet: true}, true},
		"no command":    {&fake{quiet: true, lacks: "MDTM"}, false},
		"no number": {&fake{before: func(_ *session, command, _ string) string {
			return map[string]string{"MDTM": "213 yesterday"}[command]
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, tt.server.start(t).config())
			test.Must(t, put(t, d, "key", "content", create))
			info, err := d.Stat(t.Context(), "key")
			if err != nil || info.Size != 7 || info.ModTime.IsZero() == tt.timed || tt.timed && time.Since(info.ModTime) > time.Hour {
				t.Errorf("stat %+v, error %v", info, err)
			}
			holds(t, d, "key", "content")
		})
	}
}

// TestSizesOfListings: some servers omit the size of an empty file, others every size.
func TestSizesOfListings(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fake{
		"no command": {lacks: "SIZE"},
		"no number": {before: func(_ *session, command, _ string) string {
			return map[string]string{"SIZE": "213 File status"}[command]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.start(t)
			d := open(t, f.config())
			for key, content := range map[string]string{"a/empty": "", "a/key": "content"} {
				test.Must(t, put(t, d, key, content, create))
				test.Is(t, put(t, d, key, content, create), fs.ErrExist)
				holds(t, d, key, content)
			}
			for _, key := range []string{"a/missing", "b/missing", "a"} {
				_, err := d.Stat(t.Context(), key)
				test.Is(t, err, fs.ErrNotExist)
			}
		})
	}
}

// TestNoRestart: without REST the bytes before a range are read and dropped.
func TestNoRestart(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true, lacks: "REST"}).start(t)
	d := open(t, f.config())
	content := strings.Repeat("0123456789", 300_000)
	test.Must(t, put(t, d, "key", content, create))
	for _, rng := range []storagedrivers.Range{
		{Offset: 7, Length: 10}, {Offset: 7}, {Offset: 2_999_990}, {Offset: 1_000_001, Length: 1_500_000}, all,
	} {
		body, info, err := d.Open(t.Context(), "key", rng)
		test.Must(t, err)
		got, err := io.ReadAll(body)
		n, _ := rng.Within(info.Size)
		if want := content[rng.Offset : rng.Offset+n]; err != nil || string(got) != want {
			t.Errorf("%+v: %d bytes, error %v, want %d", rng, len(got), err, len(want))
		}
		test.Is(t, body.Close(), nil)
	}
}

// TestLongCommands: a server that does not understand a long line cannot hold the key.
func TestLongCommands(t *testing.T) {
	t.Parallel()
	for _, code := range []int{500, 501} {
		f := &fake{before: func(s *session, command, argument string) string {
			if len(argument) <= 255 {
				return ""
			}
			s.reply(fmt.Sprintf("%d '%s': command not understood", code, command)) // for the rest of the line
			return fmt.Sprintf("%d '%s': command not understood", code, command)
		}}
		f.start(t)
		d := open(t, f.config())
		long := strings.Repeat("x", 200) + "/" + strings.Repeat("y", 200)
		for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
			_, err := d.Put(t.Context(), long, strings.NewReader("content"), opts)
			test.Is(t, err, storagedrivers.ErrInvalidKey)
		}
		_, err := d.Stat(t.Context(), long)
		test.Is(t, err, storagedrivers.ErrInvalidKey)
		test.Is(t, put(t, d, "short", "content", create), nil)
	}
}

// TestFullDisk: the server reports the full disk after it has cut the data connection.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		"451 Error during write to file", "426 No space left on device; transfer aborted.", "451 Failure writing to local file.",
	} {
		var tries atomic.Int64
		f := &fake{facts: true}
		f.before = func(s *session, command, _ string) string {
			if command != "STOR" {
				return ""
			}
			tries.Add(1)
			s.reply("150 send")
			data, err := s.accept()
			if err != nil {
				return err.Error()
			}
			raw := data.(*tracked).Conn.(*net.TCPConn)
			_, _ = io.CopyN(io.Discard, raw, 1000)
			_ = raw.SetLinger(0) // a reset
			data.Close()
			return reply
		}
		f.start(t)
		s := storagedrivers.New("test", newFakeDriver(f.config()), storagedrivers.Options{})
		_, err := s.Put(t.Context(), "key", strings.NewReader(strings.Repeat("x", 20<<20)), create)
		test.Is(t, err, storagedrivers.ErrNoSpace)
		test.Equal(t, tries.Load(), 1, reply, "sent", "times")
		test.Is(t, s.Close(), nil)
	}
}

// TestEveryReplacementHasItsTime: replacements within one second get different times, so that size
// and time identify one generation. An object that must not be older than such a one is not.
func TestEveryReplacementHasItsTime(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fake{"facts": {facts: true, mfmt: true}, "lists": {mfmt: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.start(t)
			d := open(t, f.config())
			old := time.Now().Add(time.Hour).Truncate(time.Second) // as if its clock were wrong
			f.replace(t, "key", "content")
			test.Must(t, os.Chtimes(filepath.Join(f.root, "key"), old, old))
			for i := range 3 {
				info, err := d.Put(t.Context(), "key", strings.NewReader("content"), overwrite)
				if err != nil || !info.ModTime.After(old) {
					t.Errorf("replacement %d is of %v, the object before of %v, error %v", i, info.ModTime, old, err)
				}
				if stat, err := d.Stat(t.Context(), "key"); err != nil || stat != info {
					t.Errorf("stat %+v, error %v, want %+v", stat, err, info)
				}
				old = info.ModTime
			}
			opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, NotBefore: old}
			for range 2 {
				info, err := d.Put(t.Context(), "beside", strings.NewReader("content"), opts)
				if err != nil || info.ModTime.Before(old) {
					t.Errorf("the object beside it is of %v, want %v at least, error %v", info.ModTime, old, err)
				}
			}
		})
	}
}

// TestOtherServers: the error names a server of another protocol, without a time-out.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	for greeting, want := range map[string]struct {
		err   error
		words string
	}{
		"SSH-2.0-OpenSSH_9.2":                      {errSSH, "driver sftp"},
		"HTTP/1.1 400":                             {errNot, "no FTP server"},
		"\x15\x03\x01\x00":                         {errNot, "no FTP server"},
		"HTTP/1.1 400\r\n":                         {errNot, "a web server"},
		"+OK POP3 ready\r\n":                       {errNot, "a mail server"},
		"200 news\r\n":                             {errNot, "no FTP server"},
		"22x ready\r\n":                            {errNot, "no FTP server"},
		"220 mail ESMTP\r\n502 what\r\n":           {errNot, "no FTP server"},
		"220 mail ESMTP\r\n250 yes\r\n":            {errNot, "no FTP server"},
		"220-" + strings.Repeat("x", 2*maxReplies): {errNot, "without an end"},
		"220 ready\r\n331-" + strings.Repeat("x\r\n", maxReplies): {errNot, "without an end"},
		"421 Please reconnect using TLS security mechanisms.\r\n": {errWantsTLS, "tls explicit"},
		"220 ready\r\n530 SSL/TLS required\r\n":                   {errWantsTLS, "tls explicit"},
		"220 ready\r\n421 Too many users\r\n":                     {storagedrivers.ErrUnavailable, "Too many"},
		"120 soon\r\n220 ready\r\n530 no\r\n":                     {fs.ErrPermission, "logging in"},
	} {
		t.Run(greeting, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			test.Must(t, err)
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(conn, greeting)
					defer conn.Close()
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			d := open(t, Config{Address: listener.Addr().String(), User: "u", Timeout: options.Duration(time.Hour)})
			err = d.Check(ctx)
			test.Is(t, err, want.err)
			if err == nil || !strings.Contains(err.Error(), want.words) || ctx.Err() != nil {
				t.Errorf("error %v, want %q", err, want.words)
			}
			if errors.Is(err, storagedrivers.ErrUnavailable) != errors.Is(want.err, storagedrivers.ErrUnavailable) {
				t.Errorf("error %v, which decides whether it is repeated", err)
			}
			if errors.Is(want.err, errNot) {
				test.Equal(t, storagedrivers.CauseOf(err), notFTP)
			}
		})
	}
}

// FuzzWelcome: for any first bytes of a server, reading the greeting ends with a text or an error.
func FuzzWelcome(f *testing.F) {
	for _, greeting := range []string{
		"220 ready\r\n", "220-hello\r\n220 ready\r\n", "120 soon\r\n220 ready\r\n", "421 no\r\n", "SSH-2.0-x\r\n", "", "22", "220",
		"220-never ends\r\n", "\x16\x03\x01", "999 what\r\n",
	} {
		f.Add(greeting)
	}
	f.Fuzz(func(t *testing.T, greeting string) {
		c := &control{in: bufio.NewReader(strings.NewReader(greeting))}
		text, err := c.welcome()
		if err == nil && !strings.Contains(greeting, "220") {
			t.Errorf("%q is a greeting: %q", greeting, text)
		}
		if strings.HasPrefix(greeting, "SSH-") && !errors.Is(err, errSSH) {
			t.Errorf("error %v, want %v", err, errSSH)
		}
		if errors.Is(withTLSAdvice(tlsNone, err), storagedrivers.ErrUnavailable) {
			t.Errorf("error %v blames the network", err)
		}
	})
}

// TestReplyLog: only the latest replies are kept.
func TestReplyLog(t *testing.T) {
	t.Parallel()
	var log replyLog
	for range 100 {
		log.add([]byte(strings.Repeat("220 hello\r\n", 100)))
	}
	log.add([]byte("530 no\r\n"))
	if err := log.reply(io.ErrShortBuffer); !hasCode(err, 530) || len(log.text) > replyLogBytes {
		t.Errorf("the last reply is %v, %d bytes are kept", err, len(log.text))
	}
}

// TestPASV: if the port of EPSV leads nowhere, PASV is tried, and remembered for the server.
func TestPASV(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	test.Must(t, closed.Close())
	var tried atomic.Int64
	f := &fake{facts: true, before: func(_ *session, command, _ string) string {
		if command == "EPSV" {
			tried.Add(1)
			return fmt.Sprintf("229 entering (|||%d|)", closed.Addr().(*net.TCPAddr).Port)
		}
		return ""
	}}
	d := open(t, f.start(t).config())
	test.Must(t, put(t, d, "key", "content", create))
	if !d.pasv.Load() || tried.Load() != 1 {
		t.Errorf("PASV is remembered: %t, after %d tries of EPSV", d.pasv.Load(), tried.Load())
	}
	holds(t, d, "key", "content")
	f.has(t, "key")
	without := open(t, (&fake{facts: true, before: func(s *session, command, argument string) string {
		if command == "PASV" {
			return "500 Unknown command."
		}
		return f.before(s, command, argument)
	}}).start(t).config())
	test.Is(t, put(t, without, "key", "content", create), storagedrivers.ErrUnavailable)
	if without.pasv.Load() {
		t.Error("PASV is remembered of a server without it")
	}
}

// TestOtherSuccess: success has another code on some servers.
func TestOtherSuccess(t *testing.T) {
	t.Parallel()
	other := map[string]*strings.Replacer{
		"STOR": strings.NewReplacer("226", "250"), "RETR": strings.NewReplacer("226", "250"), "LIST": strings.NewReplacer("226", "250"),
		"MLSD": strings.NewReplacer("226", "250"), "MKD": strings.NewReplacer("257", "250"), "DELE": strings.NewReplacer("250", "200"),
	}
	for _, facts := range []bool{false, true} {
		changed := map[string]bool{}
		f := &fake{facts: facts, after: func(command, reply string) string {
			if r := other[command]; r != nil {
				changed[command] = changed[command] || r.Replace(reply) != reply
				return r.Replace(reply)
			}
			return reply
		}}
		d := open(t, f.start(t).config())
		test.Must(t, put(t, d, "new/folder/key", "content", create))
		holds(t, d, "new/folder/key", "content")
		page, err := d.List(t.Context(), storagedrivers.ListOptions{Limit: 10})
		test.Must(t, err)
		test.Equal(t, len(page.Objects), 1, "objects are listed")
		test.Must(t, d.Delete(t.Context(), "new/folder/key", storagedrivers.DeleteOptions{}))
		test.Equal(t, len(changed), len(other)-1, "commands with other codes")
	}
}

// TestFolderWithSlash: the slash at the end of a listed folder is no part of its name.
func TestFolderWithSlash(t *testing.T) {
	t.Parallel()
	if got := newEntry(&jftp.Entry{Name: "folder/", Type: jftp.EntryTypeFolder}); got.name != "folder" || !got.folder {
		t.Errorf("got %+v", got)
	}
}

// TestUnknownFormat: a listing in an unknown format is an error, and not an empty folder.
func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	odd := func(listing string) string { return strings.ReplaceAll(listing, " user ", " ") } // a column is missing
	for _, plain := range []bool{false, true} {
		d := open(t, (&fake{listed: odd, plain: plain}).start(t).config())
		test.Must(t, put(t, d, "folder/key", "content", create))
		for _, prefix := range []string{"", "folder/"} {
			page, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix})
			test.Fails(t, err, "listed", fmt.Sprint(page))
			test.Equal(t, storagedrivers.CauseOf(err), unknownFormat)
		}
		err := d.Check(t.Context())
		test.Fails(t, err, "the check")
		test.Equal(t, storagedrivers.CauseOf(err), unknownFormat)
	}
}
