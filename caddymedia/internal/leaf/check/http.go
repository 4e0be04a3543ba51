package check

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// HTTP is a program that gets each file by a POST, and answers by its status: 2xx accepts the file,
// 4xx refuses it, and everything else, redirects too, is no answer.
type HTTP struct {
	address string
	header  http.Header
	client  *http.Client
}

// NewHTTP returns the program at an address. lines are headers that it gets too: a name, a space,
// and a value.
func NewHTTP(address string, lines []string) (*HTTP, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, errors.New("not an address of http or https")
	}
	header := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		if !httpguts.ValidHeaderFieldName(name) || value == "" || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errors.New("a header is a name and a value")
		}
		header.Add(name, value)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // that is what it is
	transport.Proxy = nil
	return &HTTP{address, header, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Ask implements [Program].
func (h *HTTP) Ask(ctx context.Context, f File) error {
	body := &body{Reader: f.Content, closed: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address, body)
	if err != nil {
		return err
	}
	req.ContentLength = f.Size
	if f.Size == 0 {
		req.Body = http.NoBody
		close(body.closed)
	}
	req.Header = h.header.Clone()
	for name, value := range map[string]string{
		"Content-Type": f.Type, "X-Kind": f.Kind, "X-Alias": f.Alias, "X-Filename": f.Filename, "X-Account": f.Account, "X-User": f.User,
	} {
		if name != "Content-Type" {
			value = url.PathEscape(value)
		}
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := h.client.Do(req)
	if err == nil {
		err = answered(resp)
		_ = resp.Body.Close() // its bytes are read, or of no interest
	}
	<-body.closed // the transport may read it a little longer
	return err
}

// body tells when the transport does not read it any more.
type body struct {
	io.Reader
	closed chan struct{}
	once   sync.Once
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// answered returns the result of [HTTP.Ask] for a response.
func answered(resp *http.Response) error {
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return &RefusedError{Message: reason(resp), Detail: resp.Status}
	}
	return fmt.Errorf("the check answered %.100s", resp.Status)
}

const (
	maxReason = 200     // bytes
	maxAnswer = 4 << 10 // bytes that are read of an answer
)

// reason returns the first line of a text that refuses a file.
func reason(resp *http.Response) string {
	line := ""
	if mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && mediaType == "text/plain" {
		line, _ = bufio.NewReader(io.LimitReader(resp.Body, maxAnswer)).ReadString('\n') // what could be read counts
	}
	line = strings.TrimSpace(line)
	if len(line) > maxReason || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
		line = ""
	}
	return cmp.Or(line, "the file was refused by a check")
}
