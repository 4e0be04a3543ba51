package tokens

import (
	"net/netip"
	"time"
)

const (
	// knownFor is how long a successful login is remembered.
	knownFor = 30 * 24 * time.Hour
	// maxKnownSites is the number of sites remembered for one account. Only successful logins add
	// one, so the configured accounts bound the memory, and none of them displaces another's.
	maxKnownSites = 64
)

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
