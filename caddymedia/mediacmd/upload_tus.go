package mediacmd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tusVersion is the version of the protocol, https://tus.io/protocols/resumable-upload.
const tusVersion = "1.0.0"

// resumableAddress returns the endpoint of resumable uploads of a kind.
func (c *uploadClient) resumableAddress(kind string) *url.URL {
	return c.server.JoinPath("api/upload", kind, "resumable")
}

// offersResumable reports whether the service has resumable uploads. It asks once for each kind.
func (c *uploadClient) offersResumable(ctx context.Context, kind string) bool {
	c.offersMu.Lock()
	defer c.offersMu.Unlock()
	if offers, known := c.offers[kind]; known {
		return offers
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodOptions, c.resumableAddress(kind).String(), http.NoBody)
	if err != nil {
		return false
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return false // the form reports it
	}
	defer resp.Body.Close()
	offers := resp.StatusCode/100 == 2 && slices.Contains(strings.Split(resp.Header.Get("Tus-Version"), ","), tusVersion)
	if c.offers == nil {
		c.offers = map[string]bool{}
	}
	c.offers[kind] = offers
	return offers
}

// tus sends a request of the protocol and returns the answer, whose body is read. The error is a
// *refusedError for an answer other than success. An expired token is renewed once.
func (c *uploadClient) tus(ctx context.Context, method, address string, body func() io.Reader, header map[string]string) (http.Header, []byte, error) {
	token, err := c.currentToken(ctx)
	for renewed := false; err == nil; renewed = true {
		var answer http.Header
		var content []byte
		answer, content, err = c.tusOnce(ctx, method, address, token, body, header)
		refused, ok := err.(*refusedError) //nolint:errorlint // it is never wrapped
		if !ok || refused.status != http.StatusUnauthorized || renewed {
			return answer, content, err
		}
		token, err = c.renew(ctx, token)
	}
	return nil, nil, err
}

func (c *uploadClient) tusOnce(
	ctx context.Context, method, address, token string, body func() io.Reader, header map[string]string,
) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set(headerKey, c.apiKey)
	r.Header.Set(headerToken, token)
	r.Header.Set("Tus-Resumable", tusVersion)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if body != nil {
		r.Body = io.NopCloser(body())
		r.ContentLength, _ = strconv.ParseInt(header["Content-Length"], 10, 64) // written by the caller
		r.Header.Del("Content-Length")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, nil, sendingError(ctx, err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, nil, &refusedError{resp.StatusCode, messageOf(resp, content), resp.Header.Get("Retry-After")}
	}
	return resp.Header, content, nil
}

// create creates a resumable upload. It returns its state.
func (c *uploadClient) create(ctx context.Context, u upload, size int64) (uploadState, error) {
	var metadata []string
	for _, pair := range [][2]string{{"filename", filepath.Base(u.File)}, {"alias", u.Alias}, {"sub_folder", u.SubFolder}} {
		if pair[1] != "" {
			metadata = append(metadata, pair[0]+" "+base64.StdEncoding.EncodeToString([]byte(pair[1])))
		}
	}
	var state uploadState
	endpoint := c.resumableAddress(u.Kind)
	err := c.patiently(ctx, func() error {
		header, _, err := c.tus(ctx, http.MethodPost, endpoint.String(), nil, map[string]string{
			"Upload-Length": strconv.FormatInt(size, 10), "Upload-Metadata": strings.Join(metadata, ","),
		})
		if err != nil {
			return err
		}
		location, err := endpoint.Parse(header.Get("Location"))
		if err != nil || location.Host != endpoint.Host || location.Scheme != endpoint.Scheme || header.Get("Location") == "" {
			return notOfTheService()
		}
		state = uploadState{Address: location.EscapedPath(), ExpiresAt: expiryOf(header)}
		return nil
	})
	return state, err
}

func expiryOf(header http.Header) int64 {
	at, err := http.ParseTime(header.Get("Upload-Expires"))
	if err != nil {
		return 0
	}
	return at.Unix()
}

func notOfTheService() error {
	return &refusedError{status: http.StatusOK, message: "the answer is not that of a media service"}
}

// offset returns the number of bytes that the service has, and when the upload expires.
func (c *uploadClient) offset(ctx context.Context, address string) (offset, expires int64, err error) {
	header, _, err := c.tus(ctx, http.MethodHead, address, nil, nil)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusGone {
		_, err = c.result(ctx, address) // it says why
	}
	if err != nil {
		return 0, 0, err
	}
	if offset, err = strconv.ParseInt(header.Get("Upload-Offset"), 10, 64); err != nil || offset < 0 {
		return 0, 0, notOfTheService()
	}
	return offset, expiryOf(header), nil
}

// result returns the item of an upload that has all its bytes.
func (c *uploadClient) result(ctx context.Context, address string) (uploaded, error) {
	_, content, err := c.tus(ctx, http.MethodGet, address, nil, nil)
	if err != nil {
		return uploaded{}, err
	}
	var answer struct{ Result []uploaded }
	if json.Unmarshal(content, &answer) != nil || len(answer.Result) != 1 {
		return uploaded{}, notOfTheService()
	}
	return answer.Result[0].printable(), nil
}
