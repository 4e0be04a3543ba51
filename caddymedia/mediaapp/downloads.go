package mediaapp

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/fetch"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Downloads say from where Go code in this process may have items downloaded. The addresses
// may come from strangers: they must not reach what only this machine can reach.
type Downloads struct {
	// Networks such as `10.0.0.0/8`, or single addresses, that may be downloaded from although
	// they are not public. Default: none.
	Allow []string `json:"allow,omitempty" option:"repeat" example:"10.0.0.0/8"`
	// The ports that may be connected to. Default: `80` and `443`.
	Ports []string `json:"ports,omitempty" option:"repeat" example:"443"`
	// The most redirects that are followed, each of them checked as the first address is.
	// Default: 3.
	MaxRedirects int `json:"max_redirects,omitempty"`
	// How long a download may take as a whole. Default: `1m`.
	Timeout options.Duration `json:"timeout,omitempty" example:"1m"`
}

// options returns the options of downloads. A nil d has the defaults.
func (d *Downloads) options() (fetch.Options, error) {
	if d == nil {
		d = new(Downloads)
	}
	expanded := *d
	if err := downloadsOptions.Expand(&expanded); err != nil {
		return fetch.Options{}, err
	}
	d = &expanded
	o := fetch.Options{MaxRedirects: d.MaxRedirects, Timeout: time.Duration(d.Timeout)}
	for _, text := range d.Allow {
		network, ok := parseNetwork(text)
		if !ok {
			return o, fmt.Errorf("allow: %q is neither an address nor a network such as 10.0.0.0/8", text)
		}
		o.Allow = append(o.Allow, network)
	}
	for _, text := range d.Ports {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return o, fmt.Errorf("ports: %q is no port", text)
		}
		o.Ports = append(o.Ports, uint16(port))
	}
	return o, nil
}

// parseNetwork parses a network or an address. It rejects forms that could never match a dialed
// address: addresses with a zone, and IPv4 addresses inside IPv6.
func parseNetwork(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), addr.Zone() == "" && !addr.Is4In6()
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err == nil && !network.Addr().Is4In6()
}
