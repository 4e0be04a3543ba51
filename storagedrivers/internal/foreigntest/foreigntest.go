// Package foreigntest tests drivers whose address is that of a server of another protocol. Begin
// with [Run]. Package cloudtest does so for services over HTTP.
package foreigntest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// protocols are what servers of several protocols send.
var protocols = []string{
	"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 19\r\n\r\n<html>Log in</html>",
	"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "<!DOCTYPE html>\n<html>\n<p>Log in</p>\n</html>\n",
	"220 mail.example.org ESMTP Postfix\r\n", "220-mail.example.org\r\n220 ESMTP\r\n", "554 no service\r\n",
	"250 mail.example.org\r\n", "502 5.5.2 Error: command not recognized\r\n", "220-mail.example.org\r\n",
	"+OK POP3 ready\r\n", "* OK [CAPABILITY IMAP4rev1] ready\r\n", "* BYE\r\n", "-ERR wrong number of arguments\r\n",
	"SSH-2.0-OpenSSH_9.2\r\n", "SSH-1.99-x\r\nInvalid\r\n", "SSH-2.0-", "220 ProFTPD ready\r\n", "331 password\r\n", "999 what\r\n",
	"RFB 003.008\n", "200 news.example.org ready\r\n", "\x15\x03\x01\x00\x02\x02\x46", "\x16\x03\x03\x00\x7a\x02\x00\x00\x76",
	"J\x00\x00\x00\x0a8.0.36\x00\x08\x00\x00\x00", "\xff\xfd\x18\xff\xfd\x20login: ", "{\"error\":\"not found\"}\n",
	"AMQP\x00\x00\x09\x01", "\x00\x00\x00\x00", "\r\n", "\n\n\n", "\x00", "22", "SSH",
}

// Answers returns n answers: those of servers of several protocols, and such answers that are
// changed at random, in the same way each time.
func Answers(n int) []string {
	random := rand.New(rand.NewPCG(50, 50)) // the same each time
	any := func() string { return protocols[random.IntN(len(protocols))] }
	answers := append(slices.Clone(protocols), "")
	for len(answers) < n {
		b := []byte(any())
		for range 1 + random.IntN(4) {
			at := random.IntN(len(b) + 1)
			switch random.IntN(5) {
			case 0:
				b = b[:at]
			case 1:
				b = slices.Insert(b, at, byte(random.IntN(256)))
			case 2:
				b = slices.Insert(b, at, []byte(any())...)
			case 3:
				b = slices.Delete(b, at, min(len(b), at+1+random.IntN(8)))
			default:
				b = append(b, b[at:]...)
			}
		}
		answers = append(answers, string(b))
	}
	return answers
}

// server sends one answer at the beginning of each connection, and after each message of the
// client. It closes a silent connection.
type server struct {
	address string
	answer  atomic.Pointer[string]
}

func start(t *testing.T) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	s := &server{address: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// silence is how long a connection may be silent.
const silence = 30 * time.Millisecond

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	for range 20 {
		_, _ = conn.Write([]byte(*s.answer.Load()))
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		if _, err := conn.Read(make([]byte, 4096)); err != nil {
			return
		}
	}
}

// Run tests that none of n answers of other servers is believed: each operation ends with an error
// that says nothing about an object.
func Run(t *testing.T, n int, open func(t *testing.T, address string) storagedrivers.Driver) {
	const workers = 8
	answers := Answers(n)
	for worker := range workers {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			d := open(t, s.address)
			for i := worker; i < len(answers); i += workers {
				s.answer.Store(&answers[i])
				for j, op := range operations {
					if i >= len(protocols) && (i/workers)%len(operations) != j {
						continue // each changed answer to one operation
					}
					var err error
					test.Within(t, test.Soon, op.name, func() {
						err = guard.Call(func() error { return op.call(t.Context(), d) })
					})
					isObject := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist)
					if err == nil || err.Error() == "" || isObject || errors.Is(err, guard.ErrPanic) {
						t.Errorf("%s with the answer %q: %v", op.name, answers[i], err)
					}
				}
			}
		})
	}
}

var operations = []struct {
	name string
	call func(context.Context, storagedrivers.Driver) error
}{
	{"check", func(ctx context.Context, d storagedrivers.Driver) error { return d.Check(ctx) }},
	{"list", func(ctx context.Context, d storagedrivers.Driver) error {
		_, err := d.List(ctx, storagedrivers.ListOptions{Limit: 10})
		return err
	}},
	{"stat", func(ctx context.Context, d storagedrivers.Driver) error {
		_, err := d.Stat(ctx, "key")
		return err
	}},
	{"open", func(ctx context.Context, d storagedrivers.Driver) error {
		body, _, err := d.Open(ctx, "key", storagedrivers.Range{Length: -1})
		if err == nil {
			err = body.Close()
		}
		return err
	}},
	{"put", func(ctx context.Context, d storagedrivers.Driver) error {
		_, err := d.Put(ctx, "key", strings.NewReader("content"), storagedrivers.PutOptions{})
		return err
	}},
	{"delete", func(ctx context.Context, d storagedrivers.Driver) error {
		return d.Delete(ctx, "key", storagedrivers.DeleteOptions{})
	}},
}
