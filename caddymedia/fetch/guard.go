package fetch

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// hostServices is where virtual machines of Azure find their metadata and keys: inside a public range.
var hostServices = netip.MustParsePrefix("168.63.129.16/32")

// A guard lets the dialer connect by TCP, to allowed ports, of public or allowed addresses. The ranges that are not
// public are those of the IANA registries. Of IPv6 it leaves the global unicast space without its special ranges, so
// that every IPv4 address inside IPv6 is out: mapped, compatible, translated (NAT64), 6to4 and Teredo. IPv4-mapped
// ones reach the guard as the IPv4 address that would be dialled.
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

// control is called with the address of a socket that is about to be connected.
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

// isatap says whether the second half of an IPv6 address is an IPv4 address in a tunnel of its own site. Any public
// prefix can be before it, so no range tells.
func isatap(addr netip.Addr) bool {
	if !addr.Is6() {
		return false
	}
	b := addr.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
