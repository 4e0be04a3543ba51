// Package items is the API of stored items: lists, deletions, moves, copies, replacements and
// signed addresses, for clients with a token and for callers that the panel or Caddy's admin
// endpoint knows. It stores no new items and sends no content: these are packages uploads and
// serve. Begin with [Endpoint], [Serve] and [Sign], and the actions of an address.
package items

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
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
	// atOnce is how many items of a request are examined or deleted side by side.
	atOnce = 8
)

// Path is the start of the paths of items, which a kind follows.
const Path = "/api/items/"

// itemsEndpoint is the name of the endpoint in metrics.
const itemsEndpoint = "items"

// Endpoint returns the endpoint of the items of a kind, for accounts.
func Endpoint(g *caller.Gate, kind item.Kind) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		q := &itemsRequest{
			Gate: g, kind: kind, origin: item.OriginHTTP, baseURL: g.BaseURL(r) + g.MountPrefix(r),
			authenticate: accounts(g, w, r),
		}
		q.address, q.problem = addressOf(r.URL, kind)
		return q.serve(running, w, r)
	}
}

// accounts returns the authenticator of a request that a ticket is not for.
func accounts(g *caller.Gate, w http.ResponseWriter, r *http.Request) caller.Authenticator {
	return func(ctx context.Context, running *service.Service) (access.Caller, *caller.Refusal) {
		account, refused := g.AuthenticateAccount(ctx, running, w, r)
		return access.Caller{Account: account}, refused
	}
}

// Serve serves a request for items of a known caller like the endpoint, but without a token. path
// is the escaped path after the kind: "<alias>" or "<alias>/<filename>". The error is an
// *[httpx.Error]; then nothing was written.
func Serve(g *caller.Gate, w http.ResponseWriter, r *http.Request, kind item.Kind, path string, known caller.Known) error {
	q := &itemsRequest{Gate: g, kind: kind, origin: known.Origin, authenticate: known.Authenticate}
	if q.origin != item.OriginAdmin { // whose host has no items
		q.baseURL = g.BaseURL(r)
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
	baseURL      string // of public addresses
	address      caller.Address
	problem      string // of the address, for the caller; empty if there is none
	authenticate caller.Authenticator
	permit       *caller.Permit
	alias        *item.Alias

	move     upload.Transfer // of a POST on an item: To, New and Copy, once they are read
	toAlias  string          // of that
	facts    bool            // a list has those of its images
	reported bool            // to the observer
}

// itemAction is a method of an address. It needs one of the rights.
type itemAction struct {
	serve  func(*itemsRequest, context.Context) error
	rights []access.Right
}

// The methods of an alias and of an item. HEAD is GET without its body.
var (
	mayList = []access.Right{access.List}

	aliasActions = map[string]itemAction{
		http.MethodGet: {(*itemsRequest).list, mayList}, http.MethodHead: {(*itemsRequest).list, mayList},
		http.MethodPost: {(*itemsRequest).deleteSet, []access.Right{access.Delete}},
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
	refused := q.admit(action.rights)
	if refused == nil {
		refused = q.permit.Repetition.ReplayRefusal(q.permit.Account.Allows)
	}
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	if q.permit.Repetition.IsAnswered() {
		return q.replay(ctx)
	}
	return action.serve(q, storagedrivers.WithOwner(ctx, q.permit.Actor.Owner()))
}

// replay sends the answer of an earlier attempt again.
func (q *itemsRequest) replay(ctx context.Context) error {
	if q.r.Method == http.MethodPut {
		_, stop, refused := q.body()
		defer stop()
		if refused != nil {
			return q.refuse(ctx, refused)
		}
	}
	if refused := q.permit.Replay(q.w, q.r); refused != nil {
		return q.refuse(ctx, refused)
	}
	return nil
}

// admit finds the alias of the request, whose caller needs one of the rights.
func (q *itemsRequest) admit(rights []access.Right) (refused *caller.Refusal) {
	account := q.permit.Account
	switch {
	case q.permit.Refused != nil:
		return q.permit.Refused
	case q.problem != "":
		return caller.Refuse(http.StatusBadRequest, item.BadRequest, q.problem)
	case !slices.ContainsFunc(rights, account.May):
		return caller.RightRefusal(account, rights[0])
	}
	q.alias, refused = q.findAlias(q.address.Alias)
	if refused == nil && q.address.Filename != "" && !account.Covers(q.address.Filename) {
		refused = caller.Refuse(http.StatusNotFound, item.BadRequest, "there is no such item")
	}
	return refused
}

// findAlias returns an alias that the account may use.
func (q *itemsRequest) findAlias(name string) (*item.Alias, *caller.Refusal) {
	if !q.permit.Account.Allows(name) { // it must not learn which aliases exist
		return nil, caller.Refuse(http.StatusForbidden, item.Forbidden, "the account may not use the alias "+quoted(name))
	}
	alias, known := q.permit.Service.Alias(q.kind, name)
	if !known {
		return nil, caller.Refuse(http.StatusNotFound, item.BadRequest, "unknown alias "+quoted(name))
	}
	return alias, nil
}

// noFolder refuses a user whose folder is another one.
var noFolder = caller.Refuse(http.StatusNotFound, item.Missing, upload.NoFolder)

// quoted returns the beginning of a text in quotes.
func quoted(text string) string { return strconv.Quote(text[:min(len(text), 64)]) }

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

// refuse responds to a refused request.
func (q *itemsRequest) refuse(ctx context.Context, refused *caller.Refusal) error {
	return q.fail(ctx, refused.Status, &item.Failure{Reason: refused.Reason, Message: refused.Message, Filename: q.address.Filename})
}

// fail responds with a failure.
func (q *itemsRequest) fail(ctx context.Context, status int, failure *item.Failure) error {
	q.permit.Service.Observer().Failed(ctx, itemsEndpoint, strconv.Itoa(status))
	if q.r.Method != http.MethodGet && q.r.Method != http.MethodHead && !q.reported {
		q.reportRefused(ctx, failure)
	}
	return httpx.Refuse(q.w, q.r, q.Log, status, item.Failures{failure})
}

// failed responds with the error of an operation on items. doing is what failed, as in "the storage
// could not list the items".
func (q *itemsRequest) failed(ctx context.Context, doing string, err error) error {
	failure := *item.OperationFailure(doing, err)
	failure.Filename = q.address.Filename
	return q.fail(ctx, httpx.StatusOf(item.Failures{&failure}), &failure)
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
	query, problem := q.query()
	if problem != "" {
		return q.refuse(ctx, caller.Refuse(http.StatusBadRequest, item.BadRequest, problem))
	}
	if !q.permit.Account.Covers(query.Folder) {
		return q.refuse(ctx, noFolder)
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
	page, err := q.permit.Service.ListItems(ctx, query)
	if err != nil {
		return q.failed(ctx, "list the items", err)
	}
	result, err := q.describe(ctx, page.Items, page.Variants)
	if err == nil && q.facts {
		err = q.addFacts(ctx, result, page.Items, true)
	}
	if err != nil {
		return q.failed(ctx, "list the items", err)
	}
	answer := listAnswer{Success: true, Result: result, Folders: append([]string{}, page.Folders...), Next: page.Next, Total: page.Total}
	if page.Incomplete {
		answer.Complete = new(bool)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, answer)
}

// one responds with one item.
func (q *itemsRequest) one(ctx context.Context) error {
	if !q.alias.MayBeItem(q.address.Filename) {
		return q.failed(ctx, "", fs.ErrNotExist)
	}
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	info, err := q.alias.Storage.Stat(ctx, q.alias.Key(q.address.Filename))
	if err != nil {
		return q.failed(ctx, "read the item", err)
	}
	infos := []storagedrivers.Info{info}
	result, err := q.describe(ctx, infos, nil)
	if err == nil {
		err = q.addFacts(ctx, result, infos, false)
	}
	if err != nil {
		return q.failed(ctx, "read the item", err)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, listAnswer{Success: true, Result: result})
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

// describe returns items as in a list. The storage is asked about an item if the backend lists
// neither tags nor exact times, and about a variant that the list has not seen.
func (q *itemsRequest) describe(ctx context.Context, infos []storagedrivers.Info, variants map[string]bool) ([]itemAnswer, error) {
	described := make([]itemAnswer, len(infos))
	group := guard.NewGroup(atOnce)
	listsTags := q.alias.Storage.Features().ListTimes // of which the tags are made
	for i, info := range infos {
		filename := q.alias.Filename(info.Key)
		hasVariant := variants[info.Key+render.Suffix]
		asksVariant := !hasVariant && q.alias.WebP != nil && q.alias.MayHaveVariant(filename)
		asksItem := info.ETag == "" && variants != nil && !listsTags
		if !asksItem && !asksVariant {
			described[i] = q.answerOf(info, hasVariant)
			continue
		}
		group.Go(func() (err error) {
			if asksItem {
				if info, err = item.Stat(ctx, q.alias.Storage, info.Key); err != nil || info.Key == "" {
					return err
				}
			}
			if asksVariant {
				variant, err := item.Stat(ctx, q.alias.Storage, q.alias.VariantKey(filename))
				if err != nil && !errors.Is(err, storagedrivers.ErrInvalidKey) {
					return err
				}
				hasVariant = variant.Key != ""
			}
			described[i] = q.answerOf(info, hasVariant)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	// An item that is deleted meanwhile is missing.
	return slices.DeleteFunc(described, func(a itemAnswer) bool { return a.Filename == "" }), nil
}

// addFacts adds the facts of images to their answers, as far as the alias wants them. infos may
// have more items than there are answers.
func (q *itemsRequest) addFacts(ctx context.Context, answers []itemAnswer, infos []storagedrivers.Info, inList bool) error {
	if q.alias.Facts == item.NoFacts {
		return nil
	}
	stored := make(map[string]storagedrivers.Info, len(infos))
	for _, info := range infos {
		stored[q.alias.Filename(info.Key)] = info
	}
	group := guard.NewGroup(atOnce)
	maker := q.permit.Service.Uploader().Derived
	for i := range answers {
		group.Go(func() (err error) {
			answers[i].Facts, err = maker.StoredFacts(ctx, q.alias, q.baseURL, stored[answers[i].Filename], q.permit.Actor.Owner(), inList)
			return err
		})
	}
	return group.Wait()
}

// sizeOf returns about the size of an item in the JSON of a list, or more.
func (q *itemsRequest) sizeOf(info storagedrivers.Info) int {
	const name, rest = 64, 256 // of an address, and of all but addresses
	filename := q.alias.Filename(info.Key)
	addresses := 2 + len(q.alias.Renditions) // with that of the variant
	if q.facts {
		addresses *= 2
	}
	return addresses*(len(q.alias.URL(q.baseURL, filename))+name) + len(filename) + rest
}

// answerOf returns an item as in a list.
func (q *itemsRequest) answerOf(info storagedrivers.Info, hasVariant bool) itemAnswer {
	filename := q.alias.Filename(info.Key)
	answer := itemAnswer{
		FullPath: q.alias.URL(q.baseURL, filename), Filename: filename, Size: info.Size, ContentType: q.alias.Typed(info).ContentType,
		ETag: caller.EntityTag(q.alias, info), Renditions: q.alias.RenditionURLs(q.baseURL, filename),
	}
	if !info.ModTime.IsZero() {
		answer.Modified = info.ModTime.UTC().Format(time.RFC3339)
	}
	if hasVariant {
		answer.WebP = answer.FullPath + render.Suffix
	}
	return answer
}
