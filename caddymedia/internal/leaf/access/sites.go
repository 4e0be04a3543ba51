package access

import (
	"net/netip"
	"time"
)

const (
	// Prefix lengths that a provider assigns to one customer.
	ipv4Client, ipv6Client = 32, 64
	// Prefix lengths that one attacker can easily rent.
	ipv4Network, ipv6Network = 24, 48
	// knownFor is how long a successful login is remembered.
	knownFor = 30 * 24 * time.Hour
	// maxKnownSites is the number of sites remembered for one account. Only successful logins add
	// one, so the configured accounts bound the memory, and none of them displaces another's.
	maxKnownSites = 64
)

// Client returns the addresses that count as the same client as address. All invalid addresses are
// one client.
func Client(address netip.Addr) netip.Prefix { return sitesOf(address)[0] }

// Network returns the addresses that count as the network of a client: a /24 or /48.
func Network(address netip.Addr) netip.Prefix { return sitesOf(address)[1] }

// sitesOf returns the addresses that count as the same client, and those of its network. All
// invalid addresses are one client.
func sitesOf(client netip.Addr) []netip.Prefix {
	client = client.Unmap().WithZone("")
	own, network := ipv4Client, ipv4Network
	if client.Is6() {
		own, network = ipv6Client, ipv6Network
	}
	sites := make([]netip.Prefix, 2)
	sites[0], _ = client.Prefix(own) // it fails only for an invalid address, with the zero Prefix
	sites[1], _ = client.Prefix(network)
	return sites
}

// knownSites remembers from which sites accounts have logged in.
type knownSites map[loginKey]map[netip.Prefix]time.Time

// pair is an account at a site.
type pair struct {
	key  loginKey
	site netip.Prefix
}

// find returns the smallest of sites from which the account of key has logged in; sites are ordered
// from small to large.
func (k knownSites) find(key loginKey, sites []netip.Prefix, now time.Time) (pair, bool) {
	for _, site := range sites {
		if last, ok := k[key][site]; ok && now.Sub(last) < knownFor {
			return pair{key, site}, true
		}
	}
	return pair{}, false
}

// add records a successful login. It drops the oldest site if the account has too many.
func (k knownSites) add(key loginKey, sites []netip.Prefix, now time.Time) {
	known := k[key]
	if known == nil {
		known = make(map[netip.Prefix]time.Time)
		k[key] = known
	}
	for _, site := range sites {
		if _, ok := known[site]; !ok && len(known) >= maxKnownSites {
			delete(known, oldest(known))
		}
		known[site] = now
	}
}

func oldest(known map[netip.Prefix]time.Time) netip.Prefix {
	var found netip.Prefix
	var when time.Time
	for site, last := range known {
		if when.IsZero() || last.Before(when) {
			found, when = site, last
		}
	}
	return found
}
