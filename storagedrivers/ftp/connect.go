package ftp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/textproto"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// aliveTimeout is how long an idle connection may take to show that it is alive.
const aliveTimeout = 5 * time.Second

// connect dials, logs in and finds the root. ctx bounds only this, not the life of the connection.
func (d *driver) connect(ctx context.Context) (*conn, error) {
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	c := &conn{connect: d.connect, cut: cut}
	stop := context.AfterFunc(ctx, cut)
	err := guard.Call(func() error { return c.login(life, d.config, &d.pasv) })
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cut()
		return nil, fmt.Errorf("connecting to %s: %w", d.config.Address, operationError(ctx, err))
	}
	return c, nil
}

// login opens the control connection, which ends with life. pasv is set if data connections are
// opened by PASV alone.
func (c *conn) login(life context.Context, config Config, pasv *atomic.Bool) error {
	tlsConfig := config.tls()
	dialer := network.Dialer{Timeout: config.timeout()}
	raw, err := dialer.DialContext(life, "tcp", config.Address)
	if err != nil {
		return err
	}
	context.AfterFunc(life, func() { _ = raw.Close() })
	if c.control, err = readGreeting(life, raw, config.TLS, tlsConfig); err != nil {
		if isUnknownCommand(err) {
			err = storagedrivers.WithCause(err, storagedrivers.NoTLS)
		}
		return withTLSAdvice(config.TLS, err)
	}
	options := []jftp.DialOption{
		jftp.DialWithDialFunc(c.dialFunc(life, dialer, tlsConfig, pasv)), jftp.DialWithWritingMDTM(true),
	}
	if tlsConfig != nil {
		options = append(options, jftp.DialWithTLS(tlsConfig))
	}
	if c.ftp, err = jftp.Dial(config.Address, options...); err != nil {
		return err
	}
	if err = c.ftp.Login(config.User, config.Password); err != nil {
		if c.control.isForeign(err) {
			return storagedrivers.WithCause(fmt.Errorf("%w: logging in: %w", errNot, err), notFTP)
		}
		err = withTLSAdvice(config.TLS, fmt.Errorf("logging in as %q: %w", config.User, c.control.replies.reply(err)))
		if errors.Is(mapError(err), fs.ErrPermission) {
			err = storagedrivers.WithCause(err, wrongLogin)
		}
		return err
	}
	c.base, err = c.findBase(config.Root)
	return err
}

// dialFunc returns the dial function for the library. Its first call returns the control
// connection, further calls dial data connections. All end with life.
func (c *conn) dialFunc(
	life context.Context, dialer network.Dialer, tlsConfig *tls.Config, pasv *atomic.Bool,
) func(network, address string) (net.Conn, error) {
	control, cut, first := c.control, c.cut, true
	return func(_, address string) (net.Conn, error) {
		if first {
			first = false
			return control, nil
		}
		raw, err := control.dialData(life, dialer, address, pasv)
		if err != nil {
			return nil, err
		}
		data := &dataConn{Conn: raw, raw: raw, control: control, cut: cut}
		data.forget = context.AfterFunc(life, func() { _ = raw.Close() })
		if tlsConfig != nil {
			data.Conn = tls.Client(raw, tlsConfig)
		}
		return data, nil
	}
}

// dialData opens a data connection to the address of a reply to EPSV. If that leads nowhere, as
// behind a firewall that reads only PASV, it opens one by PASV, and sets pasv. The host in the
// reply to PASV does not count: it is often a private address.
func (c *control) dialData(life context.Context, dialer network.Dialer, address string, pasv *atomic.Bool) (net.Conn, error) {
	err := errNoPASV
	if !pasv.Load() {
		var raw net.Conn
		soon, cancel := context.WithTimeout(life, dialer.Timeout/4) // so that time for PASV is left
		defer cancel()
		if raw, err = dialer.DialContext(soon, "tcp", address); err == nil || life.Err() != nil {
			return raw, err
		}
	}
	reply, refused := c.command(jftp.StatusPassiveMode, "PASV")
	port := passivePort.FindStringSubmatch(reply)
	host, _, invalid := net.SplitHostPort(address)
	if refused != nil || invalid != nil || port == nil {
		return nil, err
	}
	high, _ := strconv.Atoi(port[1]) // digits
	low, _ := strconv.Atoi(port[2])
	raw, err := dialer.DialContext(life, "tcp", net.JoinHostPort(host, strconv.Itoa(high<<8+low)))
	if err == nil {
		pasv.Store(true)
	}
	return raw, err
}

var (
	// passivePort matches the reply to PASV: "Entering Passive Mode (192,0,2,1,4,210)."
	passivePort = regexp.MustCompile(`\d+,\d+,\d+,\d+,(\d{1,3}),(\d{1,3})`)
	errNoPASV   = fmt.Errorf("%w: the server does not answer PASV", storagedrivers.ErrUnavailable)
)

var errWantsTLS = fmt.Errorf("%w: the server requires TLS: set tls explicit", fs.ErrPermission)

// withTLSAdvice adds advice if the server refuses connections without TLS. The reply often has the
// code of a server that is temporarily unavailable.
func withTLSAdvice(mode tlsMode, err error) error {
	reply, ok := errors.AsType[*textproto.Error](err)
	if mode == tlsNone && ok && wantsTLS.MatchString(reply.Msg) {
		return fmt.Errorf("%w: %w", errWantsTLS, err)
	}
	return err
}

var wantsTLS = regexp.MustCompile(`(?i)\b(tls|ssl|encrypt\w*)\b`)

// findBase returns the absolute path of the root, without a slash at its end. With absolute paths
// the start of a key is never an option or a home folder.
func (c *conn) findBase(root string) (string, error) {
	if !path.IsAbs(root) {
		home, err := c.ftp.CurrentDir()
		if err != nil {
			return "", fmt.Errorf("asking for the login folder: %w", err)
		}
		root = path.Join("/", strings.ReplaceAll(home, `""`, `"`), root)
	}
	return strings.TrimSuffix(path.Clean(root), "/"), nil
}

// alive reports whether an idle connection still answers.
func alive(ctx context.Context, c *conn) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	return c.run(ctx, c.ping) == nil
}

// closeConn closes a connection.
func closeConn(c *conn) {
	if !c.broken {
		_ = c.ftp.Quit() // politeness; the server may be gone
	}
	c.cut()
}

// control is the control connection below the library, up to the greeting and TLS. The library
// reads the greeting from it again.
//
// It also sends commands that the library does not have, between those of the library.
type control struct {
	net.Conn // raw, or TLS on top of it
	in       *bufio.Reader
	replies  replyLog
	upload   *dataConn   // the last one that was sent and waits for the server
	listing  *listingLog // gets what is received for a listing; otherwise nil
}

// listingLog is a listing as the server has sent it.
type listingLog struct {
	bytes.Buffer
	begun bool // the server has begun to send it
}

var (
	errSSH = storagedrivers.WithCause(errors.New("the server speaks SSH: use the driver sftp"), notFTP)
	errNot = storagedrivers.WithCause(errors.New("no FTP server answers at this address"), notFTP)
	// errEndless means that a reply is too long to be one.
	errEndless = fmt.Errorf("%w: a reply without an end", errNot)
)

// readGreeting reads the greeting of the server at raw and secures the connection.
func readGreeting(ctx context.Context, raw net.Conn, mode tlsMode, config *tls.Config) (*control, error) {
	c := &control{}
	c.setConn(raw)
	if mode == tlsImplicit {
		if err := c.secure(ctx, raw, config); err != nil {
			return nil, err
		}
	}
	text, err := c.welcome()
	if err != nil {
		return nil, err
	}
	if mode == tlsExplicit {
		if _, err := c.command(jftp.StatusAuthOK, "AUTH TLS"); err != nil {
			return nil, fmt.Errorf("asking for TLS: %w", err)
		}
		if c.in.Buffered() > 0 {
			return nil, errNot // sent before TLS by someone else
		}
		if err := c.secure(ctx, raw, config); err != nil {
			return nil, err
		}
	}
	greeting := "220 " + strings.ReplaceAll(text, "\n", " ") + "\r\n"
	c.in = bufio.NewReader(io.MultiReader(strings.NewReader(greeting), c.in))
	return c, nil
}

// setConn sets the connection for reading and writing.
func (c *control) setConn(conn net.Conn) {
	c.Conn = &boundedConn{Conn: conn}
	c.in = bufio.NewReader(c.Conn)
}

// boundedConn is a control connection. It fails if the replies to a command have too many bytes:
// the readers keep a reply in memory.
type boundedConn struct {
	net.Conn
	received int // since the last command
}

// maxReplies is the most bytes of the replies to one command.
const maxReplies = 1 << 20

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.received > maxReplies {
		return 0, errEndless
	}
	n, err := c.Conn.Read(p)
	c.received += n
	return n, err
}

func (c *boundedConn) Write(p []byte) (int, error) {
	c.received = 0
	return c.Conn.Write(p)
}

func (c *control) secure(ctx context.Context, raw net.Conn, config *tls.Config) error {
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return err
	}
	c.setConn(secured)
	return nil
}

// welcome reads the greeting. It checks the first bytes first, because those of another protocol
// need not end like a reply.
func (c *control) welcome() (string, error) {
	start, err := c.in.Peek(4)
	switch {
	case string(start) == "SSH-":
		return "", errSSH
	case network.Greeter(start) != "" && start[0] != '2':
		return "", fmt.Errorf("%w: it is %s", errNot, network.Greeter(start))
	case len(start) > 0 && (start[0] < '1' || start[0] > '5'):
		return "", fmt.Errorf("%w: it begins with %q", errNot, start)
	case err != nil:
		return "", fmt.Errorf("waiting for the greeting of an FTP server (one that waits for TLS needs tls implicit): %w", err)
	}
	for {
		code, text, err := textproto.NewReader(c.in).ReadResponse(0)
		if err == nil && code == jftp.StatusReady {
			return text, nil
		}
		if _, malformed := errors.AsType[textproto.ProtocolError](err); malformed || err == nil && code != statusSoon && code < refusals {
			return "", fmt.Errorf("%w: it begins with %q", errNot, start)
		}
		if err != nil {
			return "", err
		}
		if code != statusSoon {
			return "", &textproto.Error{Code: code, Msg: text}
		}
	}
}

const (
	// statusSoon is the code of a reply that announces the greeting.
	statusSoon = 120
	// refusals are the codes from this one on.
	refusals = 400
)

// isForeign reports whether an error of logging in shows that the server does not know FTP: its
// replies are none, or do not fit.
func (c *control) isForeign(err error) bool {
	if _, malformed := errors.AsType[textproto.ProtocolError](err); malformed {
		return true
	}
	reply, ok := errors.AsType[*textproto.Error](c.replies.reply(err))
	return ok && (reply.Code < refusals || isUnknownCommand(reply)) || !ok && !network.Unreachable(err)
}

// command sends a command and returns the text of the reply, which must have the expected code.
func (c *control) command(expected int, line string) (string, error) {
	if strings.ContainsAny(line, "\r\n") {
		return "", jftp.ErrInvalidCommand
	}
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return "", err
	}
	_, text, err := textproto.NewReader(c.in).ReadResponse(expected)
	return text, err
}

// Read reads replies, the greeting first.
func (c *control) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.replies.add(p[:n])
	return n, err
}

// replyLog keeps the latest replies, because the library hides some of them.
type replyLog struct{ text []byte }

const replyLogBytes = 8 << 10

func (t *replyLog) add(p []byte) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - replyLogBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
}

// refusalLine matches a negative reply.
var refusalLine = regexp.MustCompile(`(?m)^([45]\d\d) ?(.*?)\r?$`)

// reply returns err with the code that the library has omitted.
func (t *replyLog) reply(err error) error {
	matches := refusalLine.FindAllSubmatch(t.text, -1)
	if _, ok := errors.AsType[*textproto.Error](err); ok || len(matches) == 0 || network.Unreachable(err) {
		return err
	}
	last := matches[len(matches)-1]
	code, _ := strconv.Atoi(string(last[1])) // three digits
	return &textproto.Error{Code: code, Msg: string(last[2])}
}

// copyBuffer is the size of the reads of an upload.
const copyBuffer = 256 << 10

// dataConn is the connection of one transfer.
//
// After an upload it is closed when the server has replied. A TLS 1.3 server sends session tickets
// that stay unread. Closing a connection with unread bytes resets it, and the server loses the end
// of the upload. The reply ends the upload, because some servers never close the connection.
type dataConn struct {
	net.Conn          // raw, or TLS on top of it
	raw      net.Conn // from network.Dialer
	control  *control
	forget   func() bool
	cut      func()        // ends the control connection, too
	sent     bool          // something was written, or could have been
	failed   error         // the error of writing
	drained  chan struct{} // closed when nothing more is read after an upload
}

// Handshake is called by the library if nothing is written: servers expect the handshake before the
// end of an empty file.
func (c *dataConn) Handshake() error {
	c.sent = true
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.Handshake() //nolint:noctx // the deadlines of raw bound it
	}
	return nil
}

// Read reads a part of a download. Some servers end TLS connections without a closing alert. Then
// their reply shows whether the file was complete.
func (c *dataConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.ErrUnexpectedEOF { //nolint:errorlint // package tls returns it unwrapped
		err = io.EOF
	}
	if c.control.listing != nil {
		c.control.listing.begun = true
		_, _ = c.control.listing.Write(p[:n]) // it never fails
	}
	return n, err
}

// Write sends a part of an upload.
func (c *dataConn) Write(p []byte) (int, error) {
	c.sent = true
	n, err := c.Conn.Write(p)
	c.failed = err
	return n, err
}

// ReadFrom sends r, in larger pieces than io.Copy.
func (c *dataConn) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{c}, r, make([]byte, copyBuffer))
}

// Close ends the transfer. After an upload, end closes the connection.
func (c *dataConn) Close() error {
	if !c.sent {
		defer c.forget()
		return c.Conn.Close()
	}
	if c.failed == nil {
		closeWrite(c.Conn)
		if c.Conn != c.raw {
			closeWrite(c.raw)
		}
		c.drained, c.control.upload = make(chan struct{}), c
		go func() {
			defer close(c.drained)
			_, _ = io.Copy(io.Discard, c.Conn) // the reply has the error
		}()
		return nil
	}
	defer c.forget()
	if errors.Is(c.failed, os.ErrDeadlineExceeded) {
		c.cut() // no reply will come
	}
	return errors.Join(c.failed, c.raw.Close())
}

// end closes the connection of an upload after the reply.
func (c *dataConn) end() {
	defer c.forget()
	_ = c.raw.Close() // the upload is over
	<-c.drained
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the server may be gone already
	}
}
