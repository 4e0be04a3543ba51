package ftp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// control is the control connection below the library, up to the greeting and TLS. The library
// reads the greeting from it again.
//
// It also sends commands that the library does not have, between those of the library.
type control struct {
	net.Conn // raw, or TLS on top of it
	in       *bufio.Reader
	greeting io.Reader // the part that the library has not read
	said     tail
	upload   *dataConn // the last one that was sent and waits for the server
}

var (
	errSSH = errors.New("the server speaks SSH: use the driver sftp")
	errNot = errors.New("this is no FTP server")
)

// greet reads the greeting of the server at raw and secures the connection.
func greet(ctx context.Context, raw net.Conn, mode TLSMode, config *tls.Config) (*control, error) {
	c := &control{}
	c.on(raw)
	if mode == TLSImplicit {
		if err := c.secure(ctx, raw, config); err != nil {
			return nil, err
		}
	}
	text, err := c.welcome()
	if err != nil {
		return nil, err
	}
	c.greeting = strings.NewReader("220 " + strings.ReplaceAll(text, "\n", " ") + "\r\n")
	if mode != TLSExplicit {
		return c, nil
	}
	if _, err := c.command(jftp.StatusAuthOK, "AUTH TLS"); err != nil {
		return nil, fmt.Errorf("asking for TLS: %w", err)
	}
	if c.in.Buffered() > 0 {
		return nil, errNot // said before TLS by someone else
	}
	return c, c.secure(ctx, raw, config)
}

// on sets the connection for reading and writing.
func (c *control) on(conn net.Conn) { c.Conn, c.in = conn, bufio.NewReader(conn) }

func (c *control) secure(ctx context.Context, raw net.Conn, config *tls.Config) error {
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return err
	}
	c.on(secured)
	return nil
}

// welcome reads the greeting. It checks the first bytes first, because those of another protocol
// need not end like a reply.
func (c *control) welcome() (string, error) {
	start, err := c.in.Peek(4)
	switch {
	case string(start) == "SSH-":
		return "", errSSH
	case len(start) > 0 && (start[0] < '1' || start[0] > '5'):
		return "", fmt.Errorf("%w: it begins with %q", errNot, start)
	case err != nil:
		return "", fmt.Errorf("waiting for the greeting of an FTP server (one that waits for TLS needs tls implicit): %w", err)
	}
	for {
		code, text, err := textproto.NewReader(c.in).ReadResponse(0)
		if err != nil || code == jftp.StatusReady {
			return text, err
		}
		if code != statusSoon {
			return "", &textproto.Error{Code: code, Msg: text}
		}
	}
}

// statusSoon is the code of a reply that announces the greeting.
const statusSoon = 120

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
	if c.greeting != nil {
		n, err := c.greeting.Read(p)
		if err == nil {
			return n, nil
		}
		c.greeting = nil
	}
	n, err := c.in.Read(p)
	c.said.add(p[:n])
	return n, err
}

// endUpload closes the data connection of an upload after the reply.
func (c *control) endUpload() {
	if c.upload != nil {
		c.upload.end()
		c.upload = nil
	}
}

// tail keeps the latest replies, because the library hides some of them.
type tail struct{ said []byte }

const tailBytes = 8 << 10

func (t *tail) add(p []byte) {
	t.said = append(t.said, p...)
	if extra := len(t.said) - tailBytes; extra > 0 {
		t.said = append(t.said[:0], t.said[extra:]...)
	}
}

func (t *tail) reset() { t.said = t.said[:0] }

// refusalLine matches a negative reply.
var refusalLine = regexp.MustCompile(`(?m)^([45]\d\d) ?(.*?)\r?$`)

// reply returns err with the code that the library has omitted.
func (t *tail) reply(err error) error {
	matches := refusalLine.FindAllSubmatch(t.said, -1)
	if _, ok := errors.AsType[*textproto.Error](err); ok || len(matches) == 0 || network.Unreachable(err) {
		return err
	}
	last := matches[len(matches)-1]
	code, _ := strconv.Atoi(string(last[1])) // three digits
	return &textproto.Error{Code: code, Msg: string(last[2])}
}

// opening matches the usual reply to RETR: "150 Opening BINARY mode data connection for name (1234
// bytes)."
var opening = regexp.MustCompile(`(?m)^1[25][05][ -].*\((\d+) bytes\)`)

// opened returns the size of the file that was opened last, or -1.
func (t *tail) opened() int64 {
	match := opening.FindSubmatch(t.said)
	if match == nil {
		return -1
	}
	size, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil {
		return -1
	}
	return size
}
