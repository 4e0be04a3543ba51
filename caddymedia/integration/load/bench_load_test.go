//go:build unix

package load_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
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
	head   []byte // up to the first byte of the file
	number []byte // the part of head that is the file's number
	body   [][]byte
	tail   []byte
}

// lastName numbers the uploads of all rounds.
var lastName atomic.Int64

// load uploads all files of a round and returns the time from the first byte sent to the last
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
		clients[i] = s.client(conn, payload, w.size)
	}
	var (
		left atomic.Int64
		wg   sync.WaitGroup
		errs = make([]error, w.clients)
	)
	left.Store(int64(w.files))
	start := time.Now()
	for i, c := range clients {
		wg.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				errs[i] = c.upload()
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
func (s server) client(conn net.Conn, payload [][]byte, size int) *client {
	c := &client{conn: conn, reader: bufio.NewReader(conn), body: payload}
	head, part := s.head, ""
	if s.resumable != "" {
		length := strconv.Itoa(size)
		c.create = []byte(s.resumable + "Host: " + s.addr + "\r\nContent-Length: 0\r\nUpload-Length: " + length + "\r\n\r\n")
		c.tail = []byte(s.head + "Host: " + s.addr + "\r\nContent-Length: " + length + "\r\n\r\n") // behind the address
		return c
	}
	if s.form {
		head += "Content-Type: multipart/form-data; boundary=" + boundary + "\r\n"
		part = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"" + firstName +
			"\"\r\nContent-Type: application/pdf\r\n\r\n"
		c.tail = []byte("\r\n--" + boundary + "--\r\n")
	}
	head += "Host: " + s.addr + "\r\nContent-Length: " + strconv.Itoa(len(part)+size+len(c.tail)) + "\r\n\r\n" + part
	c.head = []byte(head)
	at := bytes.Index(c.head, []byte(firstName)) + len("file-")
	c.number = c.head[at : at+8]
	return c
}

// upload sends one file and reads the answer.
func (c *client) upload() error {
	if c.create != nil {
		return c.uploadResumable()
	}
	copy(c.number, fmt.Sprintf("%08d", lastName.Add(1)))
	request := make(net.Buffers, 0, len(c.body)+2)
	request = append(append(append(request, c.head), c.body...), c.tail)
	_, err := c.exchange(request)
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
	_, err = c.exchange(append(net.Buffers{head, c.tail}, c.body...))
	return err
}

// exchange sends a request and returns the header of the answer, which must be a success.
func (c *client) exchange(request net.Buffers) (http.Header, error) {
	_, sendErr := request.WriteTo(c.conn)
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, errors.Join(sendErr, err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode/100 != 2 || resp.Close) {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return resp.Header, errors.Join(sendErr, err, resp.Body.Close())
}
