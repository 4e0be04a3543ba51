package serve

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/signing"
)

// errUnsigned is the error of each request for a private item without a valid signature, whether
// the item exists or not.
var errUnsigned = errors.New("the address has no valid signature, or has expired")

// signed is what the signed address of a request allows.
type signed struct {
	expires  time.Time
	now      func() time.Time
	download string // the name of the attachment; empty for none
}

// rest returns the whole seconds until the address expires; 0 after that, within the tolerance.
func (s *signed) rest() time.Duration { return max(0, s.expires.Sub(s.now()).Truncate(time.Second)) }

// signedQuery are the parameters of a signed address.
type signedQuery struct {
	expires, signature, scope, download string
}

// signedQueryOf reads the parameters, and returns false if one is sent twice, is malformed, or is
// empty. Others are ignored, malformed ones too.
func signedQueryOf(raw string) (q signedQuery, ok bool) {
	into := map[string]*string{"expires": &q.expires, "signature": &q.signature, "scope": &q.scope, "download": &q.download}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || into[name] == nil {
			continue
		}
		value, err = url.QueryUnescape(value)
		if err != nil || value == "" || *into[name] != "" {
			return q, false
		}
		*into[name] = value
	}
	return q, q.expires != "" && q.signature != ""
}

// verify sets what the signed address of a private target allows, and reports whether its signature
// is valid. It depends on nothing but the address and the keys. The error is tokens.ErrUnavailable.
func (s *Server) verify(running *service.Service, r *http.Request, t *target) (bool, error) {
	q, ok := signedQueryOf(r.URL.RawQuery)
	if !ok {
		return false, nil
	}
	expires, err := strconv.ParseInt(q.expires, 10, 64)
	if err != nil || strconv.FormatInt(expires, 10) != q.expires {
		return false, nil //nolint:nilerr // it is the caller's
	}
	now := s.Now()
	if signing.Expired(now, expires) || signing.TooFar(now, expires) {
		return false, nil
	}
	valid, err := running.VerifyAddress(r.Context(), t.alias, q.signature, t.candidates(q, expires)...)
	if !valid || err != nil {
		return false, err
	}
	t.signed = &signed{time.Unix(expires, 0), s.Now, q.download}
	return true, nil
}

// candidates returns what may have been signed for the target: with its filename, for a variant
// also with that of its image; for a rendition with and without its name.
func (t target) candidates(q signedQuery, expires int64) []signing.Fields {
	fields := signing.Fields{Scope: signing.Filename, Name: t.filename, Expires: expires, Download: q.download}
	if q.scope != "" {
		if q.scope != "/" && !strings.HasPrefix(t.filename, q.scope+"/") {
			return nil
		}
		fields.Scope, fields.Name = signing.Folder, q.scope
	}
	candidates := []signing.Fields{fields}
	switch {
	case t.rendition != nil:
		fields.Rendition = t.rendition.Name
		candidates = append(candidates, fields)
	case q.scope == "" && t.alias.IsVariant(t.filename):
		fields.Name = strings.TrimSuffix(t.filename, render.Suffix)
		candidates = append(candidates, fields)
	}
	return candidates
}

// refuseUnsigned responds to a request for a private item without a valid signature, or, with an
// error of the token store, to one whose signature cannot be checked.
func (s *Server) refuseUnsigned(running *service.Service, w http.ResponseWriter, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return nil //nolint:nilerr // the client is gone
	}
	status := http.StatusForbidden
	if err == nil {
		err = errUnsigned
	} else {
		s.Log.Error("token store unreachable", "error", err)
		httpx.RetryAfter(w, time.Second)
		status = http.StatusServiceUnavailable
	}
	running.Observer().Failed(r.Context(), "static", strconv.Itoa(status))
	return staticError(w, status, err)
}

// setHeaders sets the headers of an item with a signed address. Browsers request more for a page or
// an image, such as the icon of the site, and must not send the address with it.
func (s *signed) setHeaders(header http.Header) {
	header.Set("Referrer-Policy", "no-referrer")
	if s.download != "" {
		header.Set("Content-Disposition", Attachment(s.download))
	}
}
