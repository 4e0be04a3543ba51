package ftp

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/test"
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
	// listed, if set, returns another listing than the folder's.
	listed func(listing string) string
	// after, if set, returns the reply to a command in place of another one.
	after func(command, reply string) string
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
	if s.fake.after != nil {
		reply = s.fake.after(command, reply)
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

// transfer runs the commands that need a data connection.
func (s *session) transfer(command, argument string) string {
	rest := s.rest
	s.rest = 0
	if s.passive == nil {
		return "425 no EPSV"
	}
	defer func() {
		s.passive.Close()
		s.passive = nil
	}()
	cut := int64(-1)
	if s.fake.cutData != nil {
		cut = s.fake.cutData(command, argument)
	}
	if command == "STOR" {
		return s.receive(argument, cut)
	}
	if command == "RETR" {
		return s.send(argument, rest, cut)
	}
	listing, ok := s.listing(command, argument)
	if !ok {
		return refusal
	}
	s.reply("150 here it comes")
	return s.give(strings.NewReader(listing), -1)
}

func (s *session) receive(argument string, cut int64) string {
	file, err := os.Create(s.local(s.virtual(argument)))
	if err != nil {
		return "553 Could not create file."
	}
	defer file.Close()
	s.reply("150 send")
	data, err := s.accept()
	if err != nil {
		return err.Error()
	}
	if !s.fake.lingers {
		defer data.Close()
	}
	var from io.Reader = data
	if cut >= 0 {
		from = io.LimitReader(data, cut)
	}
	if _, err := io.Copy(file, from); err != nil {
		return "426 broken"
	}
	if cut >= 0 {
		return "226 all here, or so" // the worst that a server can do
	}
	return "226 got it"
}

func (s *session) send(argument string, rest, cut int64) string {
	file, err := os.Open(s.local(s.virtual(argument)))
	if err != nil {
		return "550 Failed to open file."
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil || !stat.Mode().IsRegular() {
		return "550 Failed to open file."
	}
	if _, err := file.Seek(rest, io.SeekStart); err != nil {
		return "554 no"
	}
	s.reply("150 here it comes")
	return s.give(file, cut)
}

// give sends r over the data connection.
func (s *session) give(r io.Reader, cut int64) string {
	data, err := s.accept()
	if err != nil {
		return err.Error()
	}
	defer data.Close()
	if cut >= 0 {
		r = io.LimitReader(r, cut)
	}
	_, err = io.Copy(data, r)
	if err == nil {
		err = data.Close() // before the reply
	}
	if err != nil || cut >= 0 {
		return "426 broken"
	}
	return "226 sent"
}

var errNoData = errors.New("425 no data connection")

// accept waits for the client's data connection.
func (s *session) accept() (net.Conn, error) {
	listener := s.passive.(*net.TCPListener)
	if err := listener.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	raw, err := listener.Accept()
	if err != nil {
		return nil, errNoData
	}
	data := &tracked{Conn: raw, forget: s.fake.track(raw)}
	if s.secure {
		data.Conn = tls.Server(raw, s.fake.tls)
	}
	if s.fake.rude {
		data.end = raw.Close
	}
	return data, nil
}

// tracked is a data connection that the fake can close.
type tracked struct {
	net.Conn
	forget func()
	end    func() error // replaces Close
}

func (c *tracked) Close() error {
	defer c.forget()
	if c.end != nil {
		return c.end()
	}
	return c.Conn.Close()
}

// listing returns the lines of a folder; those of LIST are in the format of the session.
func (s *session) listing(command, argument string) (string, bool) {
	var lines bytes.Buffer
	line := func(stat os.FileInfo, name string) {
		if command == "MLSD" {
			fmt.Fprintf(&lines, "%s%s\r\n", factsOf(stat), name)
		} else {
			fmt.Fprintf(&lines, "%s\r\n", lineOf(stat, name))
		}
	}
	folder := s.virtual(argument)
	hidden := command == "MLSD"
	if command == "LIST" {
		if argument == "-a" && s.fake.plain {
			return "", true // there is no such file
		}
		folder, hidden = s.folder, argument == "-a"
	}
	entries, err := os.ReadDir(s.local(folder))
	if err != nil || command == "MLSD" && !s.fake.facts {
		return "", false
	}
	if stat, err := os.Stat(s.local(folder)); err == nil && hidden {
		line(stat, ".")
		line(stat, "..")
	}
	for _, entry := range entries {
		stat, err := entry.Info()
		if err == nil && (hidden || entry.Name()[0] != '.') {
			line(stat, entry.Name())
		}
	}
	if s.fake.listed != nil {
		return s.fake.listed(lines.String()), true
	}
	return lines.String(), true
}

func factsOf(stat os.FileInfo) string {
	kind := "file"
	if stat.IsDir() {
		kind = "dir"
	}
	modified := stat.ModTime().UTC().Format("20060102150405.000")
	return fmt.Sprintf("Type=%s;Size=%d;Modify=%s; ", kind, stat.Size(), modified)
}

// lineOf returns a line of LIST.
func lineOf(stat os.FileInfo, name string) string {
	kind := "-"
	if stat.IsDir() {
		kind = "d"
	}
	when := stat.ModTime().UTC()
	stamp := when.Format("Jan _2 15:04")
	if time.Since(when) > 180*24*time.Hour {
		stamp = when.Format("Jan _2  2006")
	}
	return fmt.Sprintf("%srw-r--r--    1 user     group    %8d %s %s", kind, stat.Size(), stamp, name)
}
