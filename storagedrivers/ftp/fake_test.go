package ftp

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
)

// fake is an FTP server on its own folder. It replies like vsftpd and proftpd, with hooks for
// faults. Its fields must be set before it is used.
type fake struct {
	address string
	root    string
	tls     *tls.Config // AUTH TLS is demanded
	facts   bool        // MLST and MLSD
	keep    bool        // renaming onto a file is refused
	plain   bool        // LIST takes no options
	rude    bool        // TLS data connections end without a goodbye
	lingers bool        // data connections of uploads are left to the client to close
	most    int         // control connections; 0 is any number
	mfmt    bool        // MFMT sets the time of a file
	lacks   string      // commands that it does not have
	quiet   bool        // FEAT is refused

	// before is called with every command. A non-empty reply replaces the command's.
	before func(s *session, command, argument string) (reply string)
	// lose reports whether the reply to a command is lost with the connection.
	lose func(command, argument string) bool
	// cutData returns the number of bytes after which a transfer is aborted; -1 for none.
	cutData func(command, argument string) int64

	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]struct{}
	logins   int // control connections
	sessions sync.WaitGroup
}

// start starts the server until the test ends.
func (f *fake) start(t *testing.T) *fake {
	t.Helper()
	f.root = t.TempDir()
	f.open = map[net.Conn]struct{}{}
	f.address = "127.0.0.1:0"
	f.listen(t)
	t.Cleanup(f.stop)
	return f
}

func (f *fake) listen(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", f.address)
	test.Must(t, err)
	f.listener, f.address = listener, listener.Addr().String()
	f.sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.sessions.Go(func() { f.serve(conn) })
		}
	})
}

// stop stops the server and closes all connections.
func (f *fake) stop() {
	f.listener.Close()
	f.hangUp()
	f.sessions.Wait()
}

// hangUp closes all connections.
func (f *fake) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.open {
		conn.Close()
	}
}

func (f *fake) track(conn net.Conn) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[conn] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, conn)
		conn.Close()
	}
}

// login counts a control connection, and reports whether it is allowed. logout ends it.
func (f *fake) login() (allowed bool, logout func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logins++
	return f.most == 0 || f.logins <= f.most, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logins--
	}
}

// session is one control connection.
type session struct {
	fake    *fake
	conn    net.Conn
	raw     net.Conn
	in      *bufio.Reader
	folder  string
	from    string // RNFR
	rest    int64
	passive net.Listener
	secure  bool
}

var errHungUp = errors.New("hung up")

func (f *fake) serve(conn net.Conn) {
	defer f.track(conn)()
	s := &session{fake: f, conn: conn, raw: conn, in: bufio.NewReader(conn), folder: "/"}
	defer func() {
		if s.passive != nil {
			s.passive.Close()
		}
	}()
	allowed, logout := f.login()
	defer logout()
	if !allowed {
		s.reply("421 Too many connections. Service temporarily unavailable.")
		return
	}
	s.reply("220-hello\r\n220 ready")
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return
		}
		command, argument, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if err := s.answer(strings.ToUpper(command), argument); err != nil {
			return
		}
	}
}

func (s *session) reply(text string) {
	fmt.Fprintf(s.conn, "%s\r\n", text)
}

// answer runs a command and returns its error.
func (s *session) answer(command, argument string) error {
	if s.fake.before != nil {
		if reply := s.fake.before(s, command, argument); reply != "" {
			s.reply(reply)
			return nil
		}
	}
	if s.fake.tls != nil && !s.secure && command != "AUTH" && command != "FEAT" {
		s.reply("530 TLS is needed")
		return nil
	}
	if strings.Contains(s.fake.lacks, command) {
		s.reply("502 Command not implemented.")
		return nil
	}
	reply, err := s.execute(command, argument)
	if err != nil {
		return err
	}
	if s.fake.lose != nil && s.fake.lose(command, argument) {
		return errHungUp
	}
	s.reply(reply)
	if command == "AUTH" && s.fake.tls != nil {
		s.conn, s.secure = tls.Server(s.raw, s.fake.tls), true
		s.in = bufio.NewReader(s.conn)
	}
	return nil
}

func (s *session) execute(command, argument string) (string, error) {
	switch command {
	case "AUTH":
		return "234 go ahead", nil
	case "USER":
		return "331 password?", nil
	case "PASS":
		if argument != "secret" {
			return "530 Login incorrect.", nil
		}
		return "230 welcome", nil
	case "FEAT":
		if s.fake.quiet {
			return "500 Unknown command.", nil
		}
		features := []string{"211-Features:", " EPSV", " MDTM", " REST STREAM", " SIZE", " UTF8"}
		if s.fake.facts {
			features = append(features, " MLST type*;size*;modify*;")
		}
		if s.fake.mfmt {
			features = append(features, " MFMT")
		}
		return strings.Join(append(features, "211 End"), "\r\n"), nil
	case "MFMT":
		return s.setTime(argument), nil
	case "TYPE", "OPTS", "PBSZ", "PROT", "NOOP":
		return "200 fine", nil
	case "PWD":
		return fmt.Sprintf("257 %q is where you are", s.folder), nil
	case "QUIT":
		return "", errHungUp
	case "EPSV":
		return s.enterPassive()
	case "PASV":
		if _, err := s.enterPassive(); err != nil {
			return "", err
		}
		port := s.passive.Addr().(*net.TCPAddr).Port
		return fmt.Sprintf("227 Entering Passive Mode (10,255,255,1,%d,%d).", port>>8, port&255), nil
	case "REST":
		_, err := fmt.Sscan(argument, &s.rest)
		return "350 restarting", err
	case "STOR", "RETR", "LIST", "MLSD":
		return s.transfer(command, argument), nil
	default:
		return s.name(command, s.virtual(argument)), nil
	}
}

func (s *session) enterPassive() (string, error) {
	if s.passive != nil {
		s.passive.Close()
	}
	var err error
	if s.passive, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return "", err
	}
	return fmt.Sprintf("229 entering (|||%d|)", s.passive.Addr().(*net.TCPAddr).Port), nil
}

// virtual returns the absolute path of an argument.
func (s *session) virtual(argument string) string {
	if !path.IsAbs(argument) {
		argument = s.folder + "/" + argument
	}
	return path.Clean(argument)
}

func (s *session) local(virtual string) string { return filepath.Join(s.fake.root, virtual) }

const refusal = "550 Failed." // as terse as vsftpd

// name runs the commands that need no transfer.
func (s *session) name(command, virtual string) string {
	file := s.local(virtual)
	stat, err := os.Stat(file)
	switch command {
	case "CWD":
		if err != nil || !stat.IsDir() {
			return refusal
		}
		s.folder = virtual
		return "250 there"
	case "SIZE", "MDTM":
		if err != nil || !stat.Mode().IsRegular() {
			return refusal
		}
		if command == "SIZE" {
			return fmt.Sprintf("213 %d", stat.Size())
		}
		return "213 " + stat.ModTime().UTC().Format("20060102150405")
	case "MLST":
		if err != nil || !s.fake.facts {
			return refusal
		}
		return fmt.Sprintf("250-Listing\r\n %s%s\r\n250 End", factsOf(stat), virtual)
	case "MKD":
		return done("257 made", os.Mkdir(file, 0o755))
	case "RMD":
		if err == nil && !stat.IsDir() {
			return refusal
		}
		return done("250 removed", os.Remove(file))
	case "DELE":
		if err == nil && stat.IsDir() {
			return refusal
		}
		return done("250 deleted", os.Remove(file))
	case "RNFR":
		s.from = file
		return done("350 to?", err)
	case "RNTO":
		if err == nil && s.fake.keep {
			return refusal
		}
		return done("250 renamed", os.Rename(s.from, file))
	}
	return "502 unknown"
}

func (s *session) setTime(argument string) string {
	stamp, name, _ := strings.Cut(argument, " ")
	when, err := time.Parse("20060102150405", stamp)
	if err == nil {
		err = os.Chtimes(s.local(s.virtual(name)), when, when)
	}
	return done("213 modified", err)
}

func done(reply string, err error) string {
	if err != nil {
		return refusal
	}
	return reply
}
