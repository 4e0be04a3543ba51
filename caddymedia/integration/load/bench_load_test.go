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
	copy(c.number, fmt.Sprintf("%08d", lastName.Add(1)))
	request := make(net.Buffers, 0, len(c.body)+2)
	request = append(append(append(request, c.head), c.body...), c.tail)
	_, sendErr := request.WriteTo(c.conn)
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return errors.Join(sendErr, err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode/100 != 2 || resp.Close) {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return errors.Join(sendErr, err, resp.Body.Close())
}
