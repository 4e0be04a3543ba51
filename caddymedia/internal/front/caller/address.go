package caller

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
)

// BaseURL returns the scheme and host that the client used. It is empty if the request has no valid
// host.
func (g *Gate) BaseURL(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if g.TrustedProxy(r) {
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

// ClientAddr returns the address of the client of a request; it is invalid if unknown.
func (g *Gate) ClientAddr(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddr(g.Client(r))
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// IsLocal reports whether the client of a request is on this machine. A request with a header of a
// proxy, trusted or not, is from elsewhere.
func (g *Gate) IsLocal(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return g.ClientAddr(r).Unmap().IsLoopback()
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

// Address is the address of an alias, or of an item of it.
type Address struct {
	Alias    string
	Filename string // empty for the alias itself
}

// AddressBelow returns the address in an escaped path after the kind. The problem is for the
// caller; empty if there is none.
func AddressBelow(path string) (address Address, problem string) {
	segments, problem := Segments(path)
	if problem != "" {
		return address, problem
	}
	return Address{segments[0], strings.Join(segments[1:], "/")}, ""
}

// BadSegment refuses an address that others may read as another one.
const BadSegment = "the address has an empty segment, or one that is . or .."

// Segments returns the segments of an escaped path without a leading slash, decoded once. The
// problem is for the caller; empty if there is none.
func Segments(path string) (segments []string, problem string) {
	segments = strings.Split(path, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		switch {
		case err != nil:
			return nil, "the address is malformed"
		case strings.Contains(plain, "/"):
			return nil, "the address contains %2F: separate the segments of a filename by slashes"
		case plain == "" || plain == "." || plain == "..":
			return nil, BadSegment
		}
		segments[i] = plain
	}
	return segments, ""
}
