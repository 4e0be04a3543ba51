package faults_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// takeOverLimit is a generous limit for a busy machine; the contract is one second.
const takeOverLimit = 15 * time.Second

// TestDeadConnection: a client loses its connection without any notice to the server. Its next
// request over another one is served at once.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	shared := site.StartS3(t)
	other := site.NewChild(t)
	redis := site.NewRedis(t)
	media := "tokens redis redis://" + redis.Address + "\n" + site.Account + `
storage disk {
	driver local ` + t.TempDir() + `
}
storage bucket {
	` + shared.Driver(shared.Address, "keep", "") + `
}
file_alias disk {
	storage disk
	prefix /
	extensions bin
}
file_alias bucket {
	storage bucket
	prefix /
	extensions bin
}
`
	c.Start(media)
	other.Start(media)
	clients := c.Clients()
	far := other.HTTP1()
	token := clients[0].MustLogin(t)
	for _, client := range clients {
		for _, alias := range []string{"disk", "bucket"} {
			t.Run(client.Version+" "+alias, func(t *testing.T) {
				t.Parallel()
				deadConnection(t, c, client, client, token, alias)
			})
			t.Run(client.Version+" "+alias+", other node", func(t *testing.T) {
				t.Parallel()
				deadConnection(t, c, client, far, token, alias)
			})
		}
	}
}

// deadConnection lets one request fall silent on c, and continues the upload with another client.
func deadConnection(t *testing.T, c *site.Child, first, second *site.Client, token, alias string) {
	const sent = 18 * mib
	wanted := int64(sent)
	if alias == "bucket" {
		wanted = 16 * mib // a piece
	}
	content := sample.Described(1, 20*mib)
	u := &site.Tus{HTTP: second.Client, Base: second.Base, Token: token}
	if err := u.Create(t.Context(), int64(len(content)), "filename", "dead.bin", "alias", alias, "sub_folder", "/"); err != nil {
		t.Fatal(err)
	}
	dead := *u
	dead.HTTP, dead.Base = silentClient(t, c, first)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = dead.Patch(ctx, 0, reader, int64(len(content))) // it never has a response
	}()
	defer func() {
		cancel()
		writer.Close()
		<-ended
	}()
	if _, err := writer.Write(content[:sent]); err != nil {
		t.Fatal(err)
	}
	site.Eventually(t, "the service has stored bytes", func() bool {
		offset, err := u.Head(t.Context())
		return err == nil && offset >= wanted
	})
	if proxied, ok := dead.HTTP.Transport.(*silentTransport); ok {
		proxied.proxy.SetSilent(true)
	}
	begin := time.Now()
	offset, err := u.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Since(begin)
	if err := u.Patch(t.Context(), offset, bytes.NewReader(content[offset:]), int64(len(content))-offset); err != nil {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
	took := time.Since(begin)
	t.Logf("HEAD at offset %d after %v, PATCH after %v", offset, asked, took)
	if took > takeOverLimit {
		t.Errorf("the other request was served after %v", took)
	}
	second.MustFetch(t, alias, u.Filename, content)
}

// silentTransport is a transport whose connections go through a proxy.
type silentTransport struct {
	*http.Transport
	proxy *faults.Proxy
}

// silentClient returns a client like another one. Over TCP it goes through a proxy. Over QUIC it
// only stops sending.
func silentClient(t *testing.T, c *site.Child, like *site.Client) (client *http.Client, base string) {
	t.Helper()
	if like.Version == "HTTP/3.0" {
		return c.HTTP3().Client, like.Base
	}
	address := c.Plain
	if like.Version == "HTTP/2.0" {
		address = c.TLS
	}
	proxy := faults.New(t, address)
	transport := like.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", proxy.Address)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: &silentTransport{transport, proxy}}, like.Base
}
