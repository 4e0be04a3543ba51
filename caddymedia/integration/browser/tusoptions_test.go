package browser_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestTusOptions: uploads with the options of tus-js-client are whole, over each version of HTTP.
func TestTusOptions(t *testing.T) {
	needsBrowser(t)
	library, folder := browserPackage(t, "tus-js-client"), t.TempDir()
	site.PutFile(t, filepath.Join(folder, "index.html"),
		"<!doctype html><html lang=en><title>Test</title><link rel=icon href=data:,><h1>Test</h1><script src=/tus/tus.min.js></script>")
	s := site.StartConfig(t, site.Config{TLS: true, Media: site.Basic, Site: `media
		handle_path /tus/* {
			root ` + library + `
			file_server
		}
		root ` + folder + `
		file_server
	`})
	// A browser accepts no unknown authority over HTTP/3, but the key of a certificate.
	block, _ := pem.Decode(s.Certificate(t))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for protocol, flags := range map[string][]string{
		"http/1.1": {"--disable-http2", "--disable-quic"},
		"h2":       {"--disable-quic"},
		"h3":       {"--enable-quic", "--host-resolver-rules=MAP localhost 127.0.0.1", "--origin-to-force-quic-on=" + address.Host},
	} {
		t.Run(protocol, func(t *testing.T) {
			browse(t, "tusoptions", facts{
				Panel: s.URL + "/",
				Flags: append(flags, "--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(key[:])),
				More:  map[string]any{"protocol": protocol, "token": s.Token(t, site.APIKey)},
			})
		})
	}
}
