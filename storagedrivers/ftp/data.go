package ftp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
)

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

// newDataConn returns a data connection on raw, which is closed at the end of life.
func newDataConn(life context.Context, raw net.Conn, config *tls.Config, control *control, cut func()) *dataConn {
	c := &dataConn{Conn: raw, raw: raw, control: control, cut: cut}
	c.forget = context.AfterFunc(life, func() { _ = raw.Close() })
	if config != nil {
		c.Conn = tls.Client(raw, config)
	}
	return c
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
