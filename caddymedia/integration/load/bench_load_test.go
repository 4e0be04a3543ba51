//go:build linux

package load_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// boundary separates the parts of a form.
const boundary = "----------------------------9f1c2ab87d3e"

// firstName has room for the number of each upload. Requests differ only in this number.
const firstName = "file-00000000.pdf"

// client sends requests on one connection. It competes with the servers for processor time and so
// does as little as possible: only the file's name changes in prepared bytes.
type client struct {
	conn   net.Conn
	reader *bufio.Reader
	create []byte // the request that creates a resumable upload; nil for one request

	request [][]byte // in pieces; without its first line after a create
	numbers [][]byte // the parts of request that are numbers of files
}

// lastName numbers the uploads of all rounds.
var lastName atomic.Int64

// load sends all requests of a round and returns the time from the first byte sent to the last
// answer.
func (s server) load(b *testing.B, w workload, payload [][]byte) time.Duration {
	b.Helper()
	clients := make([]*client, w.clients)
	for i := range clients {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		clients[i] = s.client(conn, payload, w)
	}
	var (
		left atomic.Int64
		wg   sync.WaitGroup
		errs = make([]error, w.clients)
	)
	left.Store(int64(w.files / max(w.parts, 1)))
	start := time.Now()
	for i, c := range clients {
		wg.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				errs[i] = c.send()
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		b.Fatalf("%s: %v", s.name, err)
	}
	return took
}

// client prepares the constant parts of requests.
func (s server) client(conn net.Conn, payload [][]byte, w workload) *client {
	c := &client{conn: conn, reader: bufio.NewReader(conn)}
	head := s.head + "Host: " + s.addr + "\r\n"
	if s.resumable != "" {
		length := strconv.Itoa(w.size)
		c.create = []byte(s.resumable + "Host: " + s.addr + "\r\nContent-Length: 0\r\nUpload-Length: " + length + "\r\n\r\n")
		c.request = append([][]byte{[]byte(head + "Content-Length: " + length + "\r\n\r\n")}, payload...)
		return c
	}
	if !s.form {
		c.add(head + "Content-Length: " + strconv.Itoa(w.size) + "\r\n\r\n")
		c.request = append(c.request, payload...)
		return c
	}
	const part = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"" + firstName +
		"\"\r\nContent-Type: application/pdf\r\n\r\n"
	const end = "--" + boundary + "--\r\n"
	parts := max(w.parts, 1)
	length := parts*(len(part)+w.size+len("\r\n")) + len(end)
	c.add(head + "Content-Type: multipart/form-data; boundary=" + boundary + "\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n")
	for range parts {
		c.add(part)
		c.request = append(append(c.request, payload...), []byte("\r\n"))
	}
	c.add(end)
	return c
}

// add appends a piece to the request, with a number of its own if it has the name of a file.
func (c *client) add(piece string) {
	c.request = append(c.request, []byte(piece))
	if at := strings.Index(piece, firstName); at >= 0 {
		at += len("file-")
		c.numbers = append(c.numbers, c.request[len(c.request)-1][at:at+8])
	}
}

// send sends one request and reads the answer.
func (c *client) send() error {
	if c.create != nil {
		return c.uploadResumable()
	}
	for _, number := range c.numbers {
		copy(number, fmt.Sprintf("%08d", lastName.Add(1)))
	}
	_, err := c.exchange(slices.Clone(c.request))
	return err
}

// uploadResumable creates an upload and sends the file.
func (c *client) uploadResumable() error {
	header, err := c.exchange(net.Buffers{c.create})
	if err != nil {
		return err
	}
	address, err := url.Parse(header.Get("Location"))
	if err != nil {
		return err
	}
	head := []byte("PATCH " + address.Path + " HTTP/1.1\r\n")
	_, err = c.exchange(append(net.Buffers{head}, c.request...))
	return err
}

// exchange sends a request and returns the header of the answer, which must be a success.
func (c *client) exchange(request net.Buffers) (http.Header, error) {
	_, sendErr := request.WriteTo(c.conn)
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, errors.Join(sendErr, err)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err == nil && (resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotModified || resp.Close) {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return resp.Header, errors.Join(sendErr, err, resp.Body.Close())
}
