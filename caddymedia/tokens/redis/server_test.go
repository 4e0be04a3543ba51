package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// server is a real redis-server on a free port.
type server struct {
	port    int
	process *os.Process
	ended   chan struct{}
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// kill kills the server, like a power cut, and waits for its end.
func (s *server) kill() {
	_ = s.process.Kill()
	<-s.ended
}

// start starts a server that ends with the test. It skips the test if there is none, unless all
// tests must run.
func start(t *testing.T, port int, args ...string) *server {
	t.Helper()
	binary := servers.Program(t, "redis-server")
	if !slices.Contains(args, "--dir") {
		args = append(args, "--dir", t.TempDir())
	}
	cmd := exec.Command(binary, append(args, "--bind", "127.0.0.1", "--loglevel", "warning")...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{port: port, process: cmd.Process, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(s.kill)
	eventually(t, time.Minute, func() error {
		conn, err := net.Dial("tcp", s.addr())
		if err == nil {
			conn.Close()
		}
		return err
	})
	return s
}

// startPlain starts a server on a free port without persistence.
func startPlain(t *testing.T, args ...string) *server {
	t.Helper()
	port := servers.FreePort(t)
	return start(t, port, append([]string{"--port", strconv.Itoa(port), "--save", ""}, args...)...)
}

// certificates are the files of a self-signed certificate for redis.test, for both sides.
type certificates struct{ ca, key string }

func newCertificates(t *testing.T) certificates {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "redis.test"},
		DNSNames:              []string{"redis.test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return certificates{
		ca:  writePEM(t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", cert),
		key: writePEM(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", der),
	}
}

func writePEM(t *testing.T, path, kind string, der []byte) string {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(fmt.Errorf("writing a %s: %w", kind, err))
	}
	return path
}
