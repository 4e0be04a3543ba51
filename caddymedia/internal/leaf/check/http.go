package check

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// HTTP is a program that gets each file by a POST, and answers by its status: 2xx accepts the file,
// 4xx refuses it, and everything else, redirects too, is no answer. Each file has a connection of
// its own, of HTTP/1.1: what is sent is not read after [HTTP.Ask], a program may refuse a file
// before it has read it, and no connection is used that the program is about to close.
type HTTP struct {
	address *url.URL
	header  http.Header
	dialer  interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	}
}

// NewHTTP returns the program at an address. lines are headers that it gets too: a name, a space,
// and a value.
func NewHTTP(address string, lines []string) (*HTTP, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" || ports[parsed.Scheme] == "" {
		return nil, errors.New("not an address of http or https")
	}
	h := &HTTP{parsed, http.Header{}, &net.Dialer{}}
	if parsed.Scheme == "https" {
		h.dialer = &tls.Dialer{}
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		if !httpguts.ValidHeaderFieldName(name) || value == "" || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errors.New("a header is a name and a value")
		}
		h.header.Add(name, value)
	}
	return h, nil
}

// ports of the schemes of addresses.
var ports = map[string]string{"http": "80", "https": "443"}

// Ask implements [Program].
func (h *HTTP) Ask(ctx context.Context, f File) error {
	req, err := h.request(ctx, f)
	if err != nil {
		return err
	}
	conn, err := h.dialer.DialContext(ctx, "tcp", net.JoinHostPort(h.address.Hostname(), cmp.Or(h.address.Port(), ports[h.address.Scheme])))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer endsWith(ctx, conn)()
	// It may answer before the end, and close the connection. Then sending fails.
	sent := req.Write(conn)
	answer := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	for {
		resp, err := http.ReadResponse(answer, req) //nolint:bodyclose // the end of the connection is that of the body
		if err != nil {
			return errors.Join(sent, fmt.Errorf("reading the answer: %w", err))
		}
		if resp.StatusCode >= 200 { // otherwise it is not the last one
			return answered(resp)
		}
	}
}

// request returns the request about a file.
func (h *HTTP) request(ctx context.Context, f File) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address.String(), f.Content)
	if err != nil {
		return nil, err
	}
	req.Close = true
	if req.ContentLength = f.Size; f.Size == 0 {
		req.Body = http.NoBody
	}
	if user := h.address.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	maps.Copy(req.Header, h.header)
	for name, value := range map[string]string{
		"X-Kind": f.Kind, "X-Alias": f.Alias, "X-Filename": f.Filename, "X-Account": f.Account, "X-User": f.User,
	} {
		if value != "" {
			req.Header.Set(name, url.PathEscape(value))
		}
	}
	if f.Type != "" {
		req.Header.Set("Content-Type", f.Type)
	}
	return req, nil
}

// answered returns the result of [HTTP.Ask] for a response.
func answered(resp *http.Response) error {
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return &RefusedError{Message: reason(resp), Detail: resp.Status}
	}
	return fmt.Errorf("the check answered %.100s", resp.Status)
}

const (
	maxReason = 200      // bytes
	maxAnswer = 64 << 10 // bytes that are read of an answer
)

// reason returns the first line of a text that refuses a file. A line that is cut says nothing.
func reason(resp *http.Response) string {
	line := ""
	if mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && mediaType == "text/plain" {
		if line, err = bufio.NewReader(resp.Body).ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
	}
	line = strings.TrimSpace(line)
	if len(line) > maxReason || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
		line = ""
	}
	return cmp.Or(line, "the file was refused by a check")
}
