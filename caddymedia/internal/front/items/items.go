// Package items is the API of stored items: lists, deletions, moves, copies, replacements, the
// trash and signed addresses, for clients with a token and for callers that the panel or Caddy's
// admin endpoint knows. New items are stored by package uploads, and sent by package serve. Begin
// with [Endpoint], [Serve] and [Sign], and the actions of an address.
package items

import (
	"cmp"
	"context"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// Entries per page.
	defaultPage = 100
	maxPage     = 200
	maxFacts    = 50 // of which facts are read
	// maxListed is about the largest list of items in bytes.
	maxListed = 1 << 20
	// Bounds of a search for one page.
	maxExamined   = 100_000
	maxSearchTime = 5 * time.Second
	// maxSearch is the longest text of a search in bytes.
	maxSearch = item.MaxName
	// maxListTime bounds a request for items, whose storage may be slow.
	maxListTime = time.Minute
)

// Path is the start of the paths of items, which a kind follows.
const Path = "/api/items/"

// itemsEndpoint is the name of the endpoint in metrics.
const itemsEndpoint = "items"

// Endpoint returns the endpoint of the items of a kind, for accounts.
func Endpoint(g *caller.Gate, kind item.Kind) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		q := &itemsRequest{
			Gate: g, kind: kind, origin: item.OriginHTTP, authenticate: accounts(g, w, r),
			base: sync.OnceValue(func() string { return g.BaseURL(r) + g.MountPrefix(r) }),
		}
		q.address, q.problem = addressOf(r.URL, kind)
		return q.serve(running, w, r)
	}
}

// accounts returns the authenticator of a request that a ticket is not for.
func accounts(g *caller.Gate, w http.ResponseWriter, r *http.Request) op.Authenticator {
	return func(ctx context.Context, running *service.Service) (access.Caller, *item.Failure) {
		account, failure := g.AuthenticateAccount(ctx, running, w, r)
		return access.Caller{Account: account}, failure
	}
}

// Serve serves a request for items of a known caller like the endpoint, but without a token. path
// is the escaped path after the kind: "<alias>" or "<alias>/<filename>". The error is an
// *[httpx.Error]; then nothing was written.
func Serve(g *caller.Gate, w http.ResponseWriter, r *http.Request, kind item.Kind, path string, known caller.Known) error {
	q := &itemsRequest{Gate: g, kind: kind, origin: known.Origin, authenticate: known.Authenticate, base: sync.OnceValue(func() string { return g.BaseURL(r) })}
	if q.origin == item.OriginAdmin { // whose host has no items
		q.base = func() string { return "" }
	}
	q.address, q.problem = caller.AddressBelow(path)
	return g.Answer(w, r, q.serve)
}

// itemsRequest is one request for the items of an alias.
type itemsRequest struct {
	*caller.Gate
	w            http.ResponseWriter
	r            *http.Request
	kind         item.Kind
	origin       item.Origin
	base         func() string // returns the start of public addresses
	address      caller.Address
	problem      string // of the address, for the caller; empty if there is none
	authenticate op.Authenticator
	permit       *caller.Permit
	alias        *item.Alias

	move     op.Move // of a POST on an item, once it is read
	toAlias  string  // of that
	facts    bool    // a list has those of its images
	reported bool    // to the observer
	action   string  // that the form of a POST on an alias names
}

// itemAction is a method of an address. It needs one of the rights.
type itemAction struct {
	serve  func(*itemsRequest, context.Context) error
	rights []access.Right
}

// The methods of an alias and of an item. HEAD is GET without its body.
var (
	mayList = []access.Right{access.List, access.Restore} // the latter for the trash

	aliasActions = map[string]itemAction{
		http.MethodGet: {(*itemsRequest).list, mayList}, http.MethodHead: {(*itemsRequest).list, mayList},
		http.MethodPost: {(*itemsRequest).change, []access.Right{access.Delete, access.Restore, access.Purge, access.Upload}},
	}
	oneActions = map[string]itemAction{
		http.MethodGet: {(*itemsRequest).one, mayList}, http.MethodHead: {(*itemsRequest).one, mayList},
		http.MethodDelete: {(*itemsRequest).deleteOne, []access.Right{access.Delete}},
		http.MethodPut:    {(*itemsRequest).replace, []access.Right{access.Replace}},
		http.MethodPost:   {(*itemsRequest).transfer, []access.Right{access.Move, access.Copy}},
	}
)

// serve authenticates the request and responds.
func (q *itemsRequest) serve(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	actions := aliasActions
	if q.address.Filename != "" {
		actions = oneActions
	}
	action, ok := actions[r.Method]
	if !ok && q.problem == "" {
		methods := make([]string, 0, len(actions))
		for method := range actions {
			methods = append(methods, method)
		}
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		w.Header().Set("Allow", allow)
		q.w, q.r, q.permit = w, r, q.Nobody(running, r, q.origin)
		return q.refuse(r.Context(), caller.Refuse(http.StatusMethodNotAllowed, item.BadRequest, "use "+allow))
	}
	return q.Admit(running, w, r, q.origin, q.authenticate, func(p *caller.Permit, w http.ResponseWriter, r *http.Request) error {
		q.w, q.r, q.permit = w, r, p
		return q.attempt(r.Context(), action)
	})
}

// attempt is serve for one attempt at the request.
func (q *itemsRequest) attempt(ctx context.Context, action itemAction) error {
	if failure := q.admit(action.rights); failure != nil {
		return q.failed(ctx, failure)
	}
	if q.permit.Repetition.IsAnswered() {
		return q.replay(ctx)
	}
	return action.serve(q, storagedrivers.WithOwner(ctx, q.permit.Actor.Owner()))
}

// replay sends the answer of an earlier attempt again.
func (q *itemsRequest) replay(ctx context.Context) error {
	if failure := q.permit.Repetition.MayReplay(q.permit.Account.Allows); failure != nil {
		return q.failed(ctx, failure)
	}
	if filename := q.address.Filename; filename != "" && !q.permit.Account.Covers(filename) {
		return q.errored(ctx, "", fs.ErrNotExist)
	}
	if q.r.Method == http.MethodPut {
		_, stop, failure := q.body()
		defer stop()
		if failure != nil {
			return q.failed(ctx, failure)
		}
	}
	if refused := q.permit.Replay(q.w, q.r); refused != nil {
		return q.refuse(ctx, refused)
	}
	return nil
}

// admit finds the alias of the request, whose caller needs one of the rights.
func (q *itemsRequest) admit(rights []access.Right) *item.Failure {
	failure := q.permit.Refused
	if failure == nil && q.problem != "" {
		failure = &item.Failure{Reason: item.BadRequest, Message: q.problem}
	}
	if failure == nil {
		failure = q.permit.NeedOne(rights...)
	}
	if failure == nil {
		q.alias, failure = q.permit.Alias(q.kind, q.address.Alias)
	}
	return failure
}

// addressOf returns the address in a path, whose segments are decoded once. The problem is for the
// caller; empty if there is none.
func addressOf(u *url.URL, kind item.Kind) (address caller.Address, problem string) {
	segments, problem := caller.Segments(strings.TrimPrefix(u.EscapedPath(), "/"))
	if problem != "" {
		return address, problem
	}
	const start = 3 // api, items and the kind
	if len(segments) <= start || strings.Join(segments[:start], "/") != Path[1:]+kind.Name() {
		return address, "the address is " + Path + kind.Name() + "/<alias> or " + Path + kind.Name() + "/<alias>/<filename>"
	}
	return caller.Address{Alias: segments[start], Filename: strings.Join(segments[start+1:], "/")}, ""
}

// bad responds to a request with a problem.
func (q *itemsRequest) bad(ctx context.Context, problem string) error {
	return q.failed(ctx, &item.Failure{Reason: item.BadRequest, Message: problem})
}

// failed responds with the failure of a request.
func (q *itemsRequest) failed(ctx context.Context, failure *item.Failure) error {
	return q.refuse(ctx, caller.Refused(failure))
}

// errored responds with the error of an operation on items. doing is what failed, as in "the
// storage could not list the items".
func (q *itemsRequest) errored(ctx context.Context, doing string, err error) error {
	return q.failed(ctx, item.OperationFailure(doing, err))
}

// refuse responds to a refused request.
func (q *itemsRequest) refuse(ctx context.Context, refused *caller.Refusal) error {
	failure := *refused.Failure
	failure.Filename = q.address.Filename
	q.permit.Service.Observer().Failed(ctx, itemsEndpoint, strconv.Itoa(refused.Status))
	if q.r.Method != http.MethodGet && q.r.Method != http.MethodHead && !q.reported {
		q.reportRefused(ctx, &failure)
	}
	return httpx.Refuse(q.w, q.r, q.Log, refused.Status, item.Failures{&failure})
}

// itemAnswer is an item in a list.
type itemAnswer struct {
	FullPath    string            `json:"full_path"`
	Filename    string            `json:"filename"`
	Size        int64             `json:"size"`
	Modified    string            `json:"modified,omitempty"` // RFC 3339; empty if the storage has no times
	ContentType string            `json:"content_type"`
	ETag        string            `json:"etag,omitempty"`
	WebP        string            `json:"webp,omitempty"`
	Renditions  map[string]string `json:"renditions,omitempty"`
	*derived.Facts
}

// listAnswer is a list of items, or one item.
type listAnswer struct {
	Success bool         `json:"success"`
	Result  []itemAnswer `json:"result"`
	// Folders relative to the alias; nil for one item.
	Folders []string `json:"folders,omitzero"`
	Next    string   `json:"next,omitempty"`
	// Total is the number of items of all pages, in another order than by name. Otherwise it is
	// nil.
	Total *int `json:"total,omitempty"`
	// Complete is false if the search ended before the list. Otherwise it is nil.
	Complete *bool `json:"complete,omitempty"`
}

// list responds with a page of items.
func (q *itemsRequest) list(ctx context.Context) error {
	if values := q.r.URL.Query(); values.Has("trash") {
		return q.trash(ctx, values)
	}
	query, problem := q.query()
	if problem != "" {
		return q.bad(ctx, problem)
	}
	call := service.OtherCall
	if query.Order != service.ByName {
		call = service.OrderedList
	}
	leave, refused := q.permit.EnterQueue(ctx, q.w, call, maxListed)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	page, items, err := q.permit.List(ctx, query, q.facts, q.base())
	if err != nil {
		return q.errored(ctx, "list the items", err)
	}
	answer := listAnswer{Success: true, Result: make([]itemAnswer, len(items)), Folders: append([]string{}, page.Folders...), Next: page.Next, Total: page.Total}
	for i, one := range items {
		answer.Result[i] = q.answerOf(q.alias, one)
	}
	if page.Incomplete {
		answer.Complete = new(bool)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, answer)
}

// one responds with one item.
func (q *itemsRequest) one(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	one, err := q.permit.Stat(ctx, q.alias, q.address.Filename, q.base())
	if err != nil {
		return q.errored(ctx, "read the item", err)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, listAnswer{Success: true, Result: []itemAnswer{q.answerOf(q.alias, one)}})
}

// query returns the query of a list. The problem is for the caller; empty if there is none.
func (q *itemsRequest) query() (query service.ItemQuery, problem string) {
	values, err := url.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return query, "the query is malformed"
	}
	if name := caller.SentTwice(values, "folder", "search", "recursive", "order", "limit", "cursor", "facts"); name != "" {
		return query, "the parameter " + name + " is sent twice"
	}
	query = service.ItemQuery{
		Alias: q.alias, Folder: cmp.Or(values.Get("folder"), q.permit.Account.Folder), Search: values.Get("search"), Order: service.ByName, Limit: defaultPage,
		Cursor: values.Get("cursor"), MaxExamined: maxExamined, MaxTime: maxSearchTime, MaxSize: maxListed, Size: q.sizeOf,
	}
	if problem := folderProblem(q.alias, query.Folder); problem != "" {
		return query, problem
	}
	if len(query.Search) > maxSearch {
		return query, "the parameter search is longer than " + strconv.Itoa(maxSearch) + " bytes"
	}
	switch values.Get("recursive") {
	case "", "0":
	case "1":
		query.Recursive = true
	default:
		return query, "the parameter recursive is 1 or 0"
	}
	if order := values.Get("order"); order != "" {
		if query.Order = service.Order(order); !slices.Contains(service.Orders(), query.Order) {
			return query, "the parameter order is name, modified or size, or one of these after a minus"
		}
	}
	most := uint64(maxPage)
	switch values.Get("facts") {
	case "", "0":
	case "1":
		q.facts, most, query.Limit = true, maxFacts, maxFacts
	default:
		return query, "the parameter facts is 1 or 0"
	}
	if limit := values.Get("limit"); limit != "" {
		n, err := strconv.ParseUint(limit, 10, 16)
		if err != nil || n < 1 || n > most {
			problem = "the parameter limit is a number from 1 to " + strconv.FormatUint(most, 10)
			if q.facts {
				problem += " with facts=1"
			}
			return query, problem
		}
		query.Limit = int(n)
	}
	return query, ""
}

// folderProblem returns the problem of a folder of an alias, for the caller; empty if there is
// none.
func folderProblem(alias *item.Alias, folder string) string {
	if folder != "" && (storagedrivers.ValidKey(folder) != nil || storagedrivers.ValidKey(alias.Key(folder)+"/x") != nil) {
		return "the folder is invalid: separate its segments by single slashes, without one at the beginning or the end"
	}
	return ""
}

// sizeOf returns about the size of an item in the JSON of a list, or more.
func (q *itemsRequest) sizeOf(info storagedrivers.Info) int {
	const name, rest = 64, 256 // of an address, and of all but addresses
	filename := q.alias.Filename(info.Key)
	addresses := 2 + len(q.alias.Renditions) // with that of the variant
	if q.facts {
		addresses *= 2
	}
	return addresses*(len(q.alias.URL(q.base(), filename))+name) + len(filename) + rest
}

// answerOf returns an item of an alias as in a list.
func (q *itemsRequest) answerOf(alias *item.Alias, one op.Listed) itemAnswer {
	base, filename := q.base(), alias.Filename(one.Key)
	answer := itemAnswer{
		FullPath: alias.URL(base, filename), Filename: filename, Size: one.Size, ContentType: alias.Typed(one.Info).ContentType,
		ETag: caller.EntityTag(alias, one.Info), Renditions: alias.RenditionURLs(base, filename), Facts: one.Facts,
	}
	if !one.ModTime.IsZero() {
		answer.Modified = one.ModTime.UTC().Format(time.RFC3339)
	}
	if one.HasVariant {
		answer.WebP = answer.FullPath + render.Suffix
	}
	return answer
}
