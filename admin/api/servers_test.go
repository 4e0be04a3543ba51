package api

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// sshServer serves the files of a folder to the user "media" with the password "a secret". It
// returns its address and host key.
func sshServer(t *testing.T, folder string) (address, hostKey string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PasswordCallback: func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		if c.User() != "media" || string(password) != "a secret" {
			return nil, errors.New("wrong")
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	return listen(t, func(conn net.Conn) {
		_, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for offered := range channels {
			channel, requests, err := offered.Accept()
			if err != nil {
				return
			}
			go func() {
				for request := range requests {
					_ = request.Reply(request.Type == "subsystem", nil)
				}
			}()
			server, err := pkgsftp.NewServer(channel, pkgsftp.WithServerWorkingDirectory(folder))
			if err != nil {
				return
			}
			go func() {
				_ = server.Serve()
				channel.Close()
			}()
		}
	}), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// listen returns the address of a server that serves each connection with f.
func listen(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				f(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// bucketServer answers every request with an error of S3.
func bucketServer(t *testing.T, status int, code string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// ftpServer refuses every login.
func ftpServer(conn net.Conn) {
	text := textproto.NewConn(conn)
	_ = text.PrintfLine("220 hello")
	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}
		switch {
		case strings.HasPrefix(line, "USER"):
			_ = text.PrintfLine("331 password")
		case strings.HasPrefix(line, "PASS"):
			_ = text.PrintfLine("530 Login incorrect.")
		default:
			_ = text.PrintfLine("200 ok")
		}
	}
}

// azureServer answers every request with an error of Azure.
func azureServer(t *testing.T, status int, code string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Ms-Error-Code", code)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/media"
}

// googleServer answers every request with an error of Google Cloud Storage.
func googleServer(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error": {"code": %d, "message": "The specified bucket does not exist."}}`, status)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
