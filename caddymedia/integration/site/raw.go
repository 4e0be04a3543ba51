package site

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

// ReadAnswer reads an answer from a connection.
func ReadAnswer(t *testing.T, conn net.Conn) *Reply {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return &Reply{resp.StatusCode, resp.Proto, resp.Header, string(body)}
}
