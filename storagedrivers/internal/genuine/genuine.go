// Package genuine refuses successful replies that a server of another kind has sent: the login
// page of a network, a proxy, or a web server at a mistyped endpoint. The libraries of the
// services take such a page for an empty listing, or crash. It judges no errors, which are those
// of the driver. Begin with [Service].
package genuine

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// Service recognizes the replies of a kind of service.
type Service struct {
	// Name of the service in the cause of an error: "S3 service".
	Name string
	// Sent reports whether the service has sent a successful reply. Its error is that of reading
	// it.
	Sent func(*http.Response) (bool, error)
}

// Transport returns a transport that passes on only replies of the service. Others are an error
// with a cause that matches storagedrivers.ErrUnavailable: the service itself may be healthy.
func (s Service) Transport(base Transport) Transport { return &transport{base, s} }

// Transport is an http.RoundTripper with connections.
type Transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

type transport struct {
	Transport
	service Service
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(request)
	if err != nil || response.StatusCode/100 != 2 {
		return response, err
	}
	sent, err := t.service.Sent(response)
	if err == nil && !sent {
		err = t.service.Foreign(fmt.Sprintf(
			"status %d with the content type %q", response.StatusCode, response.Header.Get("Content-Type")))
	}
	if err != nil {
		_ = response.Body.Close() // the first error counts
		return nil, err
	}
	return response, nil
}

// Foreign returns the error of a reply that the service has not sent.
func (s Service) Foreign(reply string) error {
	err := fmt.Errorf("%w: not a reply of the service: %s", storagedrivers.ErrUnavailable, reply)
	return storagedrivers.WithCause(err, storagedrivers.Cause("No "+s.Name+
		" answers at this endpoint, but another server. Check the endpoint, and proxies on the way."))
}

// HasHeader reports whether a reply has a header whose name begins with prefix.
func HasHeader(response *http.Response, prefix string) bool {
	for name := range response.Header {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// IsXML reports whether the body of a reply is one complete element with one of the names.
func IsXML(response *http.Response, names ...string) (bool, error) {
	body, err := read(response)
	if err != nil {
		return false, err
	}
	for tokens := xml.NewDecoder(bytes.NewReader(body)); ; {
		token, err := tokens.RawToken()
		if err != nil {
			return false, nil //nolint:nilerr // it is no XML
		}
		if root, ok := token.(xml.StartElement); ok {
			name := root.Name.Local
			return slices.Contains(names, name) && bytes.HasSuffix(bytes.TrimSpace(body), []byte("</"+name+">")), nil
		}
	}
}

// IsJSON reports whether the body of a reply is one complete object whose kind begins with prefix.
func IsJSON(response *http.Response, prefix string) (bool, error) {
	body, err := read(response)
	if err != nil {
		return false, err
	}
	var object struct{ Kind string }
	err = json.Unmarshal(body, &object)
	return err == nil && strings.HasPrefix(object.Kind, prefix), nil
}

// maxBody is the most bytes of a body that is read. No listing is longer: it has some thousand
// names.
const maxBody = 64 << 20

// read reads the body of a reply, and replaces it with a copy. A longer one is cut off.
func read(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close() // all is read that is wanted
	response.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
