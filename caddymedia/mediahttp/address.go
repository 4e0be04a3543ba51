package mediahttp

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
)

// baseURL returns the scheme and host that the client used. It is empty if the request has no valid
// host.
func (h *Handler) baseURL(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if h.options.TrustedProxy(r) {
		first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // of the proxy next to the client
		if scheme := strings.TrimSpace(first); scheme == "http" || scheme == "https" {
			u.Scheme = scheme
		}
		if host := r.Header.Get("X-Forwarded-Host"); host != "" && !strings.Contains(host, ",") {
			u.Host = host
		}
	}
	if !validHost(u.Host) {
		return "" // an address without a host is still right on this site
	}
	return u.String()
}

// MountPrefix returns the prefix of the path in the client's address that the path of r lacks. It
// is empty if the paths differ in any other way.
func MountPrefix(original *url.URL, r *http.Request) string {
	prefix, ok := strings.CutSuffix(original.EscapedPath(), r.URL.EscapedPath())
	if !ok || strings.HasPrefix(prefix, "//") { // without a host before it, "//" begins one
		return ""
	}
	return prefix
}

// strippedPrefix returns the prefix that http.StripPrefix has removed.
func strippedPrefix(r *http.Request) string {
	original, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return ""
	}
	return MountPrefix(original, r)
}

// maxHost is the length of the longest name of DNS, with a port.
const maxHost = 253 + len(":65535")

// validHost reports whether a Host header is a host, with or without a port. An answer repeats it
// in each address, so it must be short.
func validHost(host string) bool {
	if len(host) > maxHost {
		return false
	}
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host || u.Hostname() == "" {
		return false
	}
	if strings.HasPrefix(host, "[") {
		_, err := netip.ParseAddr(u.Hostname())
		return err == nil
	}
	return strings.IndexFunc(u.Hostname(), outsideHost) < 0
}

func outsideHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_", r)
}
