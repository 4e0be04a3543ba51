package edit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
)

// Entry is one entry of a section as an administrator may see it.
type Entry struct {
	Section Section `json:"section"`
	Name    string  `json:"name"`
	// Implicit is an entry that is not configured: the app adds it.
	Implicit bool `json:"implicit"`
	// Value has the options that are given, without secrets.
	Value map[string]any `json:"value"`
	// Secrets are the paths of the secrets that are set: "driver.password".
	Secrets []string `json:"secrets"`
	// Tag changes with the entry, its secrets included, and tells nothing of them.
	Tag string `json:"-"`
}

// tagKey is another one in each process.
var tagKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
})

func tagOf(s Section, name string, entry object) string {
	mac := hmac.New(sha256.New, tagKey())
	mac.Write(canonical([]any{s, name, entry}))
	return `"` + hex.EncodeToString(mac.Sum(nil)) + `"`
}

// view shows an entry; nil if there is none.
func (c config) view(s Section, name string) *Entry {
	entry, implicit, ok := c.entry(s, name)
	if !ok {
		return nil
	}
	view := &Entry{Section: s, Name: name, Implicit: implicit, Tag: tagOf(s, name, entry), Secrets: []string{}}
	options, err := s.options(driverOf(entry))
	if err != nil {
		// What is not described may be a secret.
		view.Value = object{driverGroup: object{driverKind: driverOf(entry)}}
		return view
	}
	var secrets []string
	view.Value, secrets = shown(options, entry)
	view.Secrets = append(view.Secrets, secrets...)
	return view
}

// Condition is what a change expects to find.
type Condition struct {
	// New expects that there is no such entry.
	New bool
	// Tags is an If-Match header with the tag of the entry, or several, or "*".
	Tags string
}

// check tells why an entry, nil if there is none, is not the one that is expected.
func (c Condition) check(s Section, name string, current *Entry) error {
	switch {
	case c.New && current == nil:
		return nil
	case c.New:
		return &Error{Status: http.StatusPreconditionFailed, Message: "there is already a " + s.title(name), Current: current}
	case c.Tags == "":
		return &Error{Status: http.StatusPreconditionRequired, Message: "If-Match or If-None-Match is missing"}
	case current == nil:
		return missing(s, name)
	}
	for tag := range strings.SplitSeq(c.Tags, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || plain(tag) == current.Tag {
			return nil
		}
	}
	return &Error{
		Status: http.StatusPreconditionFailed, Message: s.title(name) + " was changed by somebody else meanwhile", Current: current,
	}
}

// plain takes off what Caddy's `encode` has added to the tag of an answer that it has
// compressed: `"123-gzip"`.
func plain(tag string) string {
	if bare, _, ok := strings.Cut(tag, "-"); ok {
		return bare + `"`
	}
	return tag
}
