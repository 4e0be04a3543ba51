package sftp

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/internal/test"
)

const (
	testUser     = "somebody"
	testPassword = "a secret"
)

// server is an SSH server in this process, whose sessions speak SFTP.
type server struct {
	address  string
	hostKeys []string // as in authorized_keys

	config *ssh.ServerConfig
	serve  func(io.ReadWriteCloser) error // one session

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	wait  sync.WaitGroup
	max   int // connections at once; 0 is any number

	accepted atomic.Int32 // connections so far
}

// startServer starts a server that serves the files of the folder root. change is called before it
// listens.
func startServer(t testing.TB, root string, change ...func(*server)) *server {
	t.Helper()
	return startServerOf(t, func(channel io.ReadWriteCloser) error { return serveFolder(root, channel) }, change...)
}

// serveFolder serves the files of a folder for one session.
func serveFolder(root string, channel io.ReadWriteCloser) error {
	s, err := pkgsftp.NewServer(channel, pkgsftp.WithServerWorkingDirectory(root))
	if err != nil {
		return err
	}
	return s.Serve()
}

func startServerOf(t testing.TB, serve func(io.ReadWriteCloser) error, change ...func(*server)) *server {
	t.Helper()
	s := &server{serve: serve, conns: map[net.Conn]struct{}{}, config: &ssh.ServerConfig{
		PasswordCallback: func(conn ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if conn.User() != testUser || string(password) != testPassword {
				return nil, errors.New("wrong")
			}
			return nil, nil
		},
	}}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	test.Must(t, err)
	s.addHostKey(t, key)
	for _, f := range change {
		f(s)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	s.address = listener.Addr().String()
	s.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.wait.Go(func() { s.connection(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		s.mu.Lock()
		for conn := range s.conns {
			conn.Close()
		}
		s.mu.Unlock()
		s.wait.Wait()
	})
	return s
}

func (s *server) addHostKey(t testing.TB, key any) {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	test.Must(t, err)
	s.config.AddHostKey(signer)
	s.hostKeys = append(s.hostKeys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))))
}

func (s *server) connection(conn net.Conn) {
	defer conn.Close()
	s.mu.Lock()
	full := s.max > 0 && len(s.conns) >= s.max
	if !full {
		s.conns[conn] = struct{}{}
	}
	s.mu.Unlock()
	if full {
		return
	}
	s.accepted.Add(1)
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		sessions.Go(func() {
			for request := range requests {
				_ = request.Reply(request.Type == "subsystem", nil)
			}
		})
		sessions.Go(func() {
			_ = s.serve(channel)
			channel.Close()
		})
	}
}

// connected returns the number of connections.
func (s *server) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
