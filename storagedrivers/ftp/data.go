package ftp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
)

// copyBuffer is how much of an upload is read at once.
const copyBuffer = 256 << 10

// dataConn is the connection of one transfer.
//
// After an upload it is not closed before the server has closed it: a TLS 1.3 server
// sends session tickets that nobody reads, and closing over unread bytes resets the
// connection, which costs the server the end of the upload.
type dataConn struct {
	net.Conn          // raw, or TLS on top of it
	raw      net.Conn // from network.Dialer
	forget   func() bool
	cut      func() // ends the control connection, too
	sent     bool   // something was written, or could have been
	failed   error  // what writing ended with
}

// newDataConn gives the data connection on raw, which is closed at the end of life.
func newDataConn(life context.Context, raw net.Conn, config *tls.Config, cut func()) *dataConn {
	c := &dataConn{Conn: raw, raw: raw, cut: cut}
	c.forget = context.AfterFunc(life, func() { _ = raw.Close() })
	if config != nil {
		c.Conn = tls.Client(raw, config)
	}
	return c
}

// Handshake is asked for where nothing is written: servers want to see it before the end
// of an empty file.
func (c *dataConn) Handshake() error {
	c.sent = true
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.Handshake() //nolint:noctx // the deadlines of raw bound it
	}
	return nil
}

// Read gives a part of a download. Some servers end TLS connections without saying so. What
// they reply in the end tells whether it was all.
func (c *dataConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.ErrUnexpectedEOF { //nolint:errorlint // package tls gives it bare
		err = io.EOF
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

// ReadFrom sends what r has, in larger pieces than io.Copy does.
func (c *dataConn) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{c}, r, make([]byte, copyBuffer))
}

// Close ends the transfer.
func (c *dataConn) Close() error {
	defer c.forget()
	if !c.sent {
		return c.Conn.Close()
	}
	err := c.failed
	if err == nil {
		err = c.drain()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.cut() // nobody should wait for a reply as well
	}
	return errors.Join(err, c.raw.Close())
}

// drain tells the server that this was all and waits until it closes. What else goes wrong
// than that it keeps silent is for the server to tell.
func (c *dataConn) drain() error {
	closeWrite(c.Conn)
	if c.Conn != c.raw {
		closeWrite(c.raw)
	}
	if _, err := io.Copy(io.Discard, c.Conn); errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the server may be gone already
	}
}
