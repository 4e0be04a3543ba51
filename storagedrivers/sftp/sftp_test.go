package sftp

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pkgsftp "github.com/pkg/sftp"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) {
	drivertest.Waiting()
	goleak.VerifyTestMain(m)
}

// host is a server with a folder for each test.
type host struct {
	config Config
	folder string     // on this machine
	force  *abilities // the abilities to assume

	roots sync.Map // test name to folder below
}

// hostOf returns a host for a server of another process.
func hostOf(t testing.TB, s *servers.SSH) *host {
	t.Helper()
	config := Config{
		Address: s.Address, User: s.User, Password: s.Password, PrivateKey: s.KeyFile, HostKeys: []string{s.HostKey},
		Root: s.Root,
	}
	_, err := config.complete()
	test.Must(t, err)
	return &host{folder: s.Folder, config: config}
}

// newHost returns a server in this process.
func newHost(t testing.TB) *host {
	t.Helper()
	root := t.TempDir()
	return startServer(t, root).host(root, defaultConnections)
}

// host returns the host of a server whose files are in folder.
func (s *server) host(folder string, connections int) *host {
	return &host{folder: folder, config: Config{
		Address: s.address, User: testUser, Password: testPassword, HostKeys: s.hostKeys, Root: ".",
		Connections: connections, Timeout: options.Duration(network.DefaultTimeout),
	}}
}

// newRequestHost returns a server of files in this process.
func newRequestHost(t testing.TB, files servers.RequestFiles) *host {
	t.Helper()
	files.Folder = t.TempDir()
	return startServerOf(t, files.Serve).host(files.Folder, defaultConnections)
}

// driver returns a driver on the folder root below that of the host, until the end of the test.
func (h *host) driver(t testing.TB, root string) *driver {
	t.Helper()
	config := h.config
	config.Root = filepath.Join(config.Root, root)
	d, err := newDriver(config, slog.New(slog.DiscardHandler))
	test.Must(t, err)
	d.known.Store(h.force)
	d.kept.Least = 0 // listings go on in all folders
	t.Cleanup(func() { test.Is(t, d.Close(), nil) })
	return d
}

func (h *host) first(t *testing.T) storagedrivers.Driver {
	root := strings.NewReplacer("/", "-", " ", "_").Replace(t.Name()) + "/~objects"
	h.roots.Store(t.Name(), root)
	return h.driver(t, root)
}

func (h *host) root(t *testing.T) string {
	root, ok := h.roots.Load(t.Name())
	if !ok {
		t.Fatal("no folder was made yet")
	}
	return root.(string)
}

func (h *host) another(t *testing.T) storagedrivers.Driver { return h.driver(t, h.root(t)) }

// through returns a further driver, which reaches the host at another address.
func (h *host) through(t *testing.T, address string, timeout time.Duration) storagedrivers.Driver {
	other := host{config: h.config, force: h.force}
	other.config.Address, other.config.Timeout = address, options.Duration(timeout)
	return other.driver(t, h.root(t))
}

func (h *host) files(t *testing.T) []string {
	return test.Files(t, filepath.Join(h.folder, h.root(t)))
}

func (h *host) harness() drivertest.Harness {
	return drivertest.Harness{
		New: h.first, Another: h.another, Leftovers: h.files, Address: h.config.Address, Through: h.through, Later: h.later,
	}
}

// TestConformance: a host with everything, one whose handles are resolved by their paths, as with
// pkg/sftp's RequestServer, and without the race detector one without links and rename over files.
// TestExperiment has the others.
func TestConformance(t *testing.T) {
	for name, tt := range map[string]struct {
		host  func() *host
		force *abilities
		want  abilities
	}{
		"links":          {func() *host { return newHost(t) }, nil, abilities{true, true, true, true}},
		"no links":       {func() *host { return newHost(t) }, &abilities{exact: true, dates: true}, abilities{exact: true, dates: true}},
		"request server": {func() *host { return newRequestHost(t, servers.RequestFiles{}) }, nil, abilities{replace: true, dates: true}},
	} {
		t.Run(name, func(t *testing.T) {
			h := tt.host()
			h.force = tt.force
			d := h.driver(t, "first look")
			test.Is(t, d.Check(t.Context()), nil)
			test.Equal(t, d.abilities(), tt.want, "found out")
			harness := h.harness()
			harness.NoMemoryTest = true // the server is in this process
			harness.OtherSetting, harness.OtherServer = name != "links", name == "no links"
			drivertest.Run(t, harness)
		})
	}
}

func TestConformanceOpenSSH(t *testing.T) {
	harness := hostOf(t, servers.OpenSSH(t)).harness()
	harness.OtherServer = true
	drivertest.Run(t, harness)
}

func TestConformanceProFTPD(t *testing.T) {
	harness := hostOf(t, servers.ProFTPDOverSSH(t)).harness()
	harness.OtherServer = true
	drivertest.Run(t, harness)
}

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	all       = storagedrivers.Range{}
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
