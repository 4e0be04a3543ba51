// Package caller admits HTTP requests: it authenticates the caller, evaluates conditions, bounds
// what an account has under way, and answers a repeated request once. What the caller may do is
// decided by package op. It serves nothing itself: packages serve, items, uploads, s3api and
// mediahttp have the endpoints, and package access the accounts. Begin with [Gate.Admit], which
// makes the [Permit] of a request; repetition.go is about the Idempotency-Key.
package caller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// UploadPath is the start of the paths of uploads, which a kind follows.
const UploadPath = "/api/upload/"

// Options of a Gate, as mediahttp.Options. The zero value is usable without a proxy in front.
type Options struct {
	Log          *slog.Logger
	Client       func(*http.Request) string
	TrustedProxy func(*http.Request) bool
	MountPrefix  func(*http.Request) string
	User         func(r *http.Request, trust string) string
	Now          func() time.Time
}

// withDefaults returns the options with all functions set.
func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = remoteHost
	}
	if o.TrustedProxy == nil {
		o.TrustedProxy = func(*http.Request) bool { return false }
	}
	if o.MountPrefix == nil {
		o.MountPrefix = strippedPrefix
	}
	if o.User == nil {
		o.User = func(*http.Request, string) string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock's one default
	}
	return o
}

// remoteHost returns the address of the client of a connection.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// Gate is what all endpoints need to admit a request. Its options have no nil function.
type Gate struct {
	Options

	// Acquire returns the service for a request. It stays open until release is called.
	Acquire func() (running *service.Service, release func(), err error)
	// Next returns the service for new requests, to a caller that holds a reference to an earlier
	// one. It stays open until release is called.
	Next func() (running *service.Service, release func())
}

// source is a mediahttp.Source, whose services are of another package that has them with their
// configuration.
type source[S any] interface {
	Acquire() (service S, release func(), err error)
	Running() (service S, release func())
}

// New returns the gate of the services of a source.
func New[S any](from source[S], options Options) *Gate {
	return &Gate{
		Options: options.withDefaults(),
		Acquire: func() (*service.Service, func(), error) {
			s, release, err := from.Acquire()
			if err != nil {
				return nil, nil, err
			}
			return service.Of(s), release, nil
		},
		Next: func() (*service.Service, func()) {
			s, release := from.Running()
			return service.Of(s), release
		},
	}
}

// Endpoint answers a request. The error is an *[httpx.Error]; then nothing was written.
type Endpoint func(running *service.Service, w http.ResponseWriter, r *http.Request) error

// Answer answers a request with one service, which stays open until the end of the request, even
// if the configuration changes. The error is an *[httpx.Error]; then nothing was written.
func (g *Gate) Answer(w http.ResponseWriter, r *http.Request, serve Endpoint) error {
	running, release, err := g.Acquire()
	if err != nil {
		return &httpx.Error{Status: stoppedStatus(r), Err: err}
	}
	err = func() error {
		defer release()
		return serve(running, w, r)
	}()
	if err == nil {
		httpx.Linger(w, r, g.Now)
	}
	return err
}

// stoppedStatus returns the status of a request to a stopped service. Package tus says why HEAD has
// another one.
func stoppedStatus(r *http.Request) int {
	if r.Method == http.MethodHead && strings.HasPrefix(r.URL.Path, UploadPath) {
		return http.StatusLocked
	}
	return http.StatusServiceUnavailable
}

// Known is a caller that the panel or Caddy's admin endpoint has authenticated.
type Known struct {
	// Account limits the aliases, and its rights limit the changes of items. Its API key is recorded
	// as the actor.
	Account access.Account
	// Origin of the requests.
	Origin item.Origin
	// Confirm, if set, reports whether the caller may still change items. It is called before the
	// body is read and before the commit, with the service that then answers new requests.
	Confirm func(running *service.Service) bool
}

// Authenticate is the authenticator of a known caller.
func (k Known) Authenticate(_ context.Context, running *service.Service) (access.Caller, *item.Failure) {
	caller := access.Caller{Account: k.Account}
	if k.Confirm != nil && !k.Confirm(running) {
		return caller, item.Failf(item.Unauthorized, "the caller is logged out or may not change items any more")
	}
	return caller, nil
}

// Refusal is a failure with the status of its answer, which need not be that of its reason.
type Refusal struct {
	Status  int
	Failure *item.Failure
}

// Refuse returns a refusal with a status. The message is for the caller.
func Refuse(status int, reason item.Reason, message string) *Refusal {
	return &Refusal{status, &item.Failure{Reason: reason, Message: message}}
}

// Refused returns the refusal of a request that has failed; nil for no failure.
func Refused(failure *item.Failure) *Refusal {
	if failure == nil {
		return nil
	}
	return &Refusal{httpx.StatusOf(item.Failures{failure}), failure}
}

// BoundAnswer makes writes of the answer fail after [maxHeld].
func (g *Gate) BoundAnswer(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(g.Now().Add(maxHeld)) // without deadlines those of the server hold
}

// Condition returns the conditions of a request about an item of an alias. It evaluates them in
// the order of RFC 9110 section 13.2.2, for the zero Info as for a missing item.
func Condition(header http.Header, alias *item.Alias) (matches func(storagedrivers.Info) bool, failure *item.Failure) {
	return ConditionOf(header, func(info storagedrivers.Info) string { return EntityTag(alias, info) },
		func(tag string) bool { return IsMatchable(alias, tag) })
}

// ConditionOf is [Condition] for items with other entity tags. Only those that are matchable meet
// an If-Match.
func ConditionOf(
	header http.Header, tagOf func(storagedrivers.Info) string, matchable func(tag string) bool,
) (matches func(storagedrivers.Info) bool, failure *item.Failure) {
	has := len(header.Values("If-Match")) > 0
	tags, ok := matchedTags(TagsOf(header, "If-Match"))
	if has && !ok {
		return nil, item.Failf(item.BadRequest, `the header If-Match is * or a list of entity tags, such as "x"`)
	}
	since, err := http.ParseTime(header.Get("If-Unmodified-Since"))
	dated := err == nil && !has
	others := strings.TrimSpace(TagsOf(header, "If-None-Match"))
	return func(info storagedrivers.Info) bool {
		if info.Key == "" {
			return !has
		}
		tag := tagOf(info)
		switch {
		case has && !tags.any && (!tags.tags[tag] || !matchable(tag)),
			dated && info.ModTime.Truncate(time.Second).After(since),
			others == "*":
			return false
		}
		tag = strings.TrimPrefix(tag, "W/") // the comparison is weak
		return tag == "" || !strings.Contains(others, tag)
	}, nil
}

// encodedTag matches an entity tag of an answer that Caddy's directive encode has compressed: it
// adds the encoding to the tag, and removes it from If-None-Match alone.
var encodedTag = regexp.MustCompile(`((?:W/)?)"([^"]*)-(?:gzip|zstd|br)"`)

// TagsOf returns the entity tags in all lines of a header. A tag of a compressed answer is followed
// by that of the item.
func TagsOf(header http.Header, name string) string {
	return encodedTag.ReplaceAllString(strings.Join(header.Values(name), ", "), `$0, $1"$2"`)
}

// entityTags are those of an If-Match header.
type entityTags struct {
	any  bool
	tags map[string]bool
}

// matchedTags returns the entity tags of an If-Match header, and false if it is malformed.
func matchedTags(list string) (entityTags, bool) {
	list = strings.Trim(list, " \t")
	if list == "*" {
		return entityTags{any: true}, true
	}
	e := entityTags{tags: map[string]bool{}}
	for {
		rest := strings.TrimPrefix(list, "W/")
		if rest == "" || rest[0] != '"' {
			return e, false
		}
		end := strings.IndexByte(rest[1:], '"') + 2
		if end < 2 || strings.ContainsFunc(rest[:end], func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return e, false
		}
		e.tags[list[:len(list)-len(rest)+end]] = true
		list = strings.TrimLeft(rest[end:], " \t")
		if list == "" {
			return e, true
		}
		if list[0] != ',' {
			return e, false
		}
		list = strings.TrimLeft(list, ", \t")
	}
}

// EntityTag returns the entity tag of the storage. Without one it returns a tag of size and time,
// which is empty without a time. Storages often store times in seconds, so two versions of a name
// may have the same size and time. Therefore the tag is strong only if items are never replaced.
func EntityTag(alias *item.Alias, info storagedrivers.Info) string {
	if info.ETag != "" || info.ModTime.IsZero() {
		return info.ETag
	}
	tag := fmt.Sprintf(`"%x-%x"`, info.Size, info.ModTime.UnixNano())
	if alias.Overwrite {
		return "W/" + tag
	}
	return tag
}

// IsMatchable reports whether an entity tag of an item is a condition of If-Match: a strong one,
// and a weak one if all items that this process stores under one name have different times.
func IsMatchable(alias *item.Alias, tag string) bool {
	return tag != "" && (!strings.HasPrefix(tag, "W/") || alias.Storage.Features().Dated)
}

// conditionHeaders are the conditions of requests that change an item, RFC 9110 section 13.1.
var conditionHeaders = []string{"If-Match", "If-None-Match", "If-Unmodified-Since"}

// HasCondition reports whether a request has a condition.
func HasCondition(header http.Header) bool {
	return slices.ContainsFunc(conditionHeaders, func(name string) bool { return len(header.Values(name)) > 0 })
}

// BodyRefusal returns the refusal of a request whose body is encoded, or has a piece of a file.
// Otherwise it returns nil.
func BodyRefusal(kind item.Kind, header http.Header, query url.Values) *Refusal {
	if failure := upload.PieceOf(kind, header, query); failure != nil {
		return Refuse(http.StatusBadRequest, failure.Reason, failure.Message)
	}
	if httpx.IsEncoded(header) {
		return Refuse(http.StatusUnsupportedMediaType, item.BadRequest, httpx.EncodedBody)
	}
	return nil
}
