package check

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Clamd is the daemon of ClamAV. Each file has a connection of its own, on which it is sent in
// chunks by the command INSTREAM, see clamd(8).
type Clamd struct {
	network, address string
}

// NewClamd returns the daemon at an address: "unix/" and the path of its socket, or a host and a
// port.
func NewClamd(address string) (*Clamd, error) {
	if socket, ok := strings.CutPrefix(address, "unix/"); ok {
		if socket == "" {
			return nil, errors.New("the path of the socket is missing")
		}
		return &Clamd{"unix", socket}, nil
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(address, "tcp/"))
	if err != nil || host == "" || port == "" {
		return nil, errors.New("neither host:port nor unix/ and the path of a socket")
	}
	return &Clamd{"tcp", net.JoinHostPort(host, port)}, nil
}

const (
	clamdChunk  = 64 << 10
	clamdAnswer = 4 << 10 // the most of an answer that is read
)

// Ask implements [Program].
func (c *Clamd) Ask(ctx context.Context, f File) (err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, c.network, c.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer endsWith(ctx, conn)()
	sent := send(conn, f.Content)
	// It answers before the end, and closes the connection, if the file is larger than its
	// StreamMaxLength. Then sending fails.
	answer, err := bufio.NewReader(io.LimitReader(conn, clamdAnswer)).ReadString(0)
	if err != nil {
		return errors.Join(sent, fmt.Errorf("reading the answer: %w", err))
	}
	return verdict(answer, sent)
}

// endsWith ends what waits for a connection when ctx ends, until stop is called.
func endsWith(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// send sends a file as chunks, each after its length in four bytes, and an empty one.
func send(conn net.Conn, content io.Reader) error {
	if _, err := io.WriteString(conn, "zINSTREAM\x00"); err != nil {
		return fmt.Errorf("sending the file: %w", err)
	}
	chunk := make([]byte, 4+clamdChunk)
	for {
		n, err := io.ReadFull(content, chunk[4:])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		binary.BigEndian.PutUint32(chunk, uint32(n))
		if _, err := conn.Write(chunk[:4+n]); err != nil {
			return fmt.Errorf("sending the file: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

// verdict returns the result of [Clamd.Ask] for an answer, and the error of sending.
func verdict(answer string, sent error) error {
	answer = strings.TrimPrefix(strings.TrimRight(answer, "\x00\n"), "stream: ")
	signature, isFound := strings.CutSuffix(answer, " FOUND")
	switch {
	case isFound:
		return &RefusedError{Message: "the file contains malware", Detail: fmt.Sprintf("%.200q", signature)}
	case answer == "OK" && sent == nil:
		return nil
	case strings.HasPrefix(answer, "INSTREAM size limit exceeded"):
		return ErrTooLarge
	}
	return errors.Join(sent, fmt.Errorf("clamd answered %.200q", answer))
}
