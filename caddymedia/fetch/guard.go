package fetch

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

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
