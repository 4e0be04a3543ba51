package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"
)

const (
	maxAddress = 8 << 10
	nameBytes  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
)

// parse parses an address, which may be relative to base, and checks everything but the IP
// addresses of its host. It normalizes the host, so that the dialled host is the checked one.
func parse(base *url.URL, address string, ports []uint16) (*url.URL, error) {
	if len(address) > maxAddress {
		return nil, refused("the address is too long")
	}
	if strings.ContainsFunc(address, misread) {
		return nil, refused("the address contains a space, a backslash or a control character")
	}
	u, err := base.Parse(address)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err // without the address that it repeats
		}
		return nil, &Error{Message: "the address is not valid", Err: fmt.Errorf("%w: %w", ErrRefused, err)}
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refused("the address does not begin with http:// or https://")
	case u.Hostname() == "":
		return nil, refused("the address names no server")
	case u.User != nil:
		return nil, refused("the address contains a user name or a password")
	case !portAllowed(u, ports):
		return nil, refused("the address has a port that is not allowed")
	}
	host, ok := hostname(u.Hostname())
	if !ok {
		return nil, refused("the address has a server name that is not valid")
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	u.Host = host
	return u, nil
}

// misread reports whether programs may drop or replace r, each in its own way.
func misread(r rune) bool { return r == '\\' || unicode.IsSpace(r) || unicode.IsControl(r) }

func portAllowed(u *url.URL, ports []uint16) bool {
	port := u.Port()
	switch {
	case port == "" && u.Scheme == "http":
		port = "80"
	case port == "":
		port = "443"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && slices.Contains(ports, uint16(n))
}

// hostname returns the host in ASCII, as needed in an address. It reports whether it is a name or
// an IP address without a zone.
func hostname(host string) (string, bool) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		return "[" + host + "]", err == nil && addr.Zone() == ""
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		var err error
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return "", false
		}
	}
	emptyLabel := host == "" || host[0] == '.' || strings.Contains(host, "..")
	if emptyLabel || strings.Trim(host, nameBytes) != "" {
		return "", false
	}
	if endsInNumber(host) {
		_, err := netip.ParseAddr(host)
		return host, err == nil
	}
	return host, true
}

// endsInNumber reports whether a resolver may take a name for an IPv4 address in one of its many
// spellings: 127.1, 2130706433, 0x7f.1, 0177.0.0.1. No public name ends in a number.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	label := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// hostServices is the address at which Azure serves metadata and keys to virtual machines. It lies
// in a public range.
var hostServices = netip.MustParsePrefix("168.63.129.16/32")

// guard allows the dialer to connect by TCP, to allowed ports of public or allowed addresses. The
// non-public ranges are those of the IANA registries. Of IPv6 it allows the global unicast space
// without its special ranges. That excludes every IPv4 address inside IPv6: mapped, compatible,
// translated (NAT64), 6to4 and Teredo. IPv4-mapped ones reach the guard as the IPv4 address to be
// dialled.
type guard struct {
	ranges *ssrf.Guardian
	allow  []netip.Prefix
}

func newGuard(allow []netip.Prefix, ports []uint16) *guard {
	allow = slices.Clone(allow)
	return &guard{
		ranges: ssrf.New(
			ssrf.WithPorts(slices.Clone(ports)...),
			ssrf.WithAllowedV4Prefixes(allow...),
			ssrf.WithAllowedV6Prefixes(allow...),
			ssrf.WithDeniedV4Prefixes(hostServices),
		),
		allow: allow,
	}
}

// control is called with the address of a socket before it connects.
func (g *guard) control(_ context.Context, network, address string, conn syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err == nil {
		err = g.ranges.Safe(network, address, conn)
	}
	if err == nil && isatap(to.Addr()) && !g.allowed(to.Addr()) {
		err = fmt.Errorf("%s is an IPv4 address inside IPv6", to.Addr())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

func (g *guard) allowed(addr netip.Addr) bool {
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// isatap reports whether the second half of an IPv6 address is an IPv4 address in an intra-site
// tunnel. Any public prefix can precede it, so no range covers it.
func isatap(addr netip.Addr) bool {
	if !addr.Is6() {
		return false
	}
	b := addr.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
