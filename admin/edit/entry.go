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

// Entry is an entry of a section without its secrets.
type Entry struct {
	Section Section `json:"section"`
	Name    string  `json:"name"`
	// Implicit is an entry that is not configured: the app adds it.
	Implicit bool `json:"implicit"`
	// Value has the options that are given, without secrets.
	Value map[string]any `json:"value"`
	// Secrets are the paths of the secrets that are set: "driver.password".
	Secrets []string `json:"secrets"`
	// Tag changes with the entry, its secrets included, but does not reveal them.
	Tag string `json:"-"`
}

// tagKey is a random key of this process.
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

// view returns an entry without its secrets, or nil if there is none.
func (c config) view(s Section, name string) *Entry {
	entry := group(c.section(s), name)
	if entry == nil {
		return nil
	}
	view := &Entry{Section: s, Name: name, Implicit: c.implicit(s), Tag: tagOf(s, name, entry), Secrets: []string{}}
	options, err := s.options(driverOf(entry))
	if err != nil {
		// Options that are not described may be secrets.
		view.Value = object{driverGroup: object{driverKind: driverOf(entry)}}
		return view
	}
	var secrets []string
	view.Value, secrets = shown(options, entry)
	view.Secrets = append(view.Secrets, secrets...)
	return view
}

// Condition is the expected state of an entry before a change.
type Condition struct {
	// New expects that there is no such entry.
	New bool
	// Tags is an If-Match header: the tag of the entry, a list of tags, or "*".
	Tags string
}

// check returns an error if an entry is not in the expected state. current is nil if there is no
// entry.
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
		Status: http.StatusPreconditionFailed, Message: s.title(name) + " was changed by others meanwhile", Current: current,
	}
}

// plain removes the suffix that Caddy's `encode` adds to the tag of a compressed answer:
// `"123-gzip"`.
func plain(tag string) string {
	if bare, _, ok := strings.Cut(tag, "-"); ok {
		return bare + `"`
	}
	return tag
}
