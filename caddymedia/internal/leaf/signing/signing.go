// Package signing signs the addresses of private items. It does not decide which items are private.
// Begin with [Fields]: the signed text is a contract with the sites that sign by themselves, which
// docs/signing.md has byte by byte, and docs/signing.json as test vectors.
package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"time"
)

const (
	// MaxLifetime is the longest time that an address is valid.
	MaxLifetime = 7 * 24 * time.Hour
	// Tolerance is how long an address is still accepted after its end, because clocks differ.
	Tolerance = 5 * time.Second
	// MinKey is the shortest key in bytes.
	MinKey = sha256.Size
)

// version is the first field of each signed text.
const version = "media1"

// What an address is for.
const (
	Filename = "filename"
	Folder   = "folder"
)

// Fields are what is signed.
type Fields struct {
	// Kind is "image" or "file".
	Kind string
	// Alias is the name of the alias.
	Alias string
	// Scope is [Filename] for one item, [Folder] for all below a folder.
	Scope string
	// Name is the decoded filename, or the folder; the folder "/" is the root of the alias.
	Name string
	// Rendition is the only rendition that the address is for. Without one the address is for the
	// item, its variant and its renditions.
	Rendition string
	// Expires is the end of the address in Unix seconds.
	Expires int64
	// Download is the name of the attachment; empty for none.
	Download string
	// Generation is that of the alias.
	Generation int64
}

// text returns the signed text. The lengths keep two sets of fields from having the same text.
func (f Fields) text() []byte {
	fields := [...]string{
		version, f.Kind, f.Alias, f.Scope, f.Name, f.Rendition,
		strconv.FormatInt(f.Expires, 10), f.Download, strconv.FormatInt(f.Generation, 10),
	}
	var text []byte
	for _, field := range fields {
		text = strconv.AppendInt(text, int64(len(field)), 10)
		text = append(text, ':')
		text = append(text, field...)
	}
	return text
}

// Sign returns the signature of the fields.
func (f Fields) Sign(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(f.text())
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Verify reports whether signature is that of the fields with one of the keys. Its duration depends
// only on the number of keys and the length of the fields.
func (f Fields) Verify(keys [][]byte, signature string) bool {
	valid := 0
	for _, key := range keys {
		valid |= subtle.ConstantTimeCompare([]byte(f.Sign(key)), []byte(signature))
	}
	return valid == 1
}

// Expiry returns the end of an address that is requested at now for a lifetime of at most
// [MaxLifetime]. With a step it is the next multiple of it, so that the address stays the same for
// that long, or the last one if the next is too far ahead. A step is at most MaxLifetime.
func Expiry(now time.Time, lifetime, step time.Duration) int64 {
	expires := now.Add(lifetime).Unix()
	seconds := int64(step / time.Second)
	if seconds == 0 {
		return expires
	}
	rounded := expires - expires%seconds
	if next := rounded + seconds; rounded != expires && !TooFar(now, next) {
		return next
	}
	return rounded
}

// Expired reports whether an address is no longer accepted.
func Expired(now time.Time, expires int64) bool {
	return now.Sub(time.Unix(expires, 0)) > Tolerance
}

// TooFar reports whether the end of an address is further ahead than any may be.
func TooFar(now time.Time, expires int64) bool {
	return time.Unix(expires, 0).Sub(now) > MaxLifetime
}
