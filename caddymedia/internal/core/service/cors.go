package service

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// anyOrigin allows the pages of all origins, also those without one (the origin "null").
const anyOrigin = "*"

// Origins are the origins of the pages that may use the service in a browser (CORS). A nil *Origins
// has none. Origins are immutable.
type Origins struct {
	any    bool
	listed map[string]bool
}

// ParseOrigins parses origins such as "https://www.example.com", or anyOrigin alone. The error
// names the invalid one.
func ParseOrigins(list []string) (*Origins, error) {
	o := &Origins{listed: map[string]bool{}}
	for _, text := range list {
		if text == anyOrigin {
			o.any = true
			continue
		}
		origin, err := cleanOrigin(text)
		if err != nil {
			return nil, err
		}
		o.listed[origin] = true
	}
	if o.any && len(o.listed) > 0 {
		return nil, errors.New("* stands alone, because it is any origin")
	}
	return o, nil
}

// Allow returns the value of Access-Control-Allow-Origin for the Origin headers of a request, or ""
// if their page may not use the service.
func (o *Origins) Allow(sent []string) string {
	switch {
	case o == nil:
		return ""
	case o.any:
		return anyOrigin
	case len(sent) == 1 && o.listed[sent[0]]:
		return sent[0]
	default:
		return ""
	}
}

// Names reports whether an origin is one of the list. "*" names none.
func (o *Origins) Names(origin string) bool { return o != nil && o.listed[origin] }

// IsOrigin reports whether an origin, as a browser sends it, is that of the address of a site,
// which has no path.
func IsOrigin(address, origin string) bool {
	own, err := cleanOrigin(address)
	return err == nil && own == origin
}

// domain matches names of hosts, and IPv4 addresses, in lower case.
var domain = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$`)

// defaultPorts are the ports that browsers omit.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// cleanOrigin returns an origin as browsers send it: in lower case, without a default port, and
// with an international name as "xn--...".
func cleanOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || defaultPorts[u.Scheme] == "" || !strings.EqualFold(u.Scheme+"://"+u.Host, text) {
		return "", invalidOrigin(text)
	}
	host, ok := cleanHost(u)
	if !ok {
		return "", invalidOrigin(text)
	}
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		return u.Scheme + "://" + host, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", invalidOrigin(text)
	}
	if port = strconv.FormatUint(n, 10); port != defaultPorts[u.Scheme] {
		host += ":" + port
	}
	return u.Scheme + "://" + host, nil
}

// cleanHost returns the host of an address as browsers write it, and false for what is no host.
func cleanHost(u *url.URL) (string, bool) {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(name)
		return "[" + addr.String() + "]", err == nil && addr.Is6() && addr.Zone() == "" && !addr.Is4In6()
	}
	host, err := idna.Lookup.ToASCII(name)
	if err != nil {
		host = strings.ToLower(name) // with an underscore, for instance
	}
	return host, domain.MatchString(host)
}

// invalidOrigin returns the error of an invalid origin, without a password in it.
func invalidOrigin(text string) error {
	if strings.Contains(text, "@") {
		text = "...@..."
	}
	return fmt.Errorf("an origin is a scheme, a host and a port if it is not the default one, without a slash at the end, "+
		"such as https://www.example.com, or *, not %q", text)
}
