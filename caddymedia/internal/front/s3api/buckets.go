package s3api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// stamp returns a time in the form of S3.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

type owner struct {
	ID          string
	DisplayName string
}

func (q *request) owner() owner { return owner{q.permit.Account.APIKey, q.permit.Account.APIKey} }

type bucketAnswer struct {
	Name         string
	CreationDate string
}

// listBuckets answers with the aliases that the account may use. None has a date of its own.
func (q *request) listBuckets() *Error {
	answer := struct {
		Owner   owner          //
		Buckets []bucketAnswer `xml:"Buckets>Bucket"`
	}{Owner: q.owner()}
	for _, alias := range q.running.Aliases() {
		if q.permit.Account.Allows(alias.Name) {
			answer.Buckets = append(answer.Buckets, bucketAnswer{BucketOf(alias), stamp(time.Unix(0, 0))})
		}
	}
	q.answer(http.StatusOK, "ListAllMyBucketsResult", answer)
	return nil
}

func (q *request) headBucket() *Error {
	q.w.Header().Set("X-Amz-Bucket-Region", q.options.Region)
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// location answers with the region; S3 calls its first one the empty string.
func (q *request) location() *Error {
	region := q.options.Region
	if region == "us-east-1" {
		region = ""
	}
	q.answer(http.StatusOK, "LocationConstraint", struct {
		Region string `xml:",chardata"`
	}{Region: region})
	return nil
}

func (q *request) versioning() *Error {
	q.answer(http.StatusOK, "VersioningConfiguration", struct{}{})
	return nil
}

// createBucket answers clients that make sure that their bucket exists.
func (q *request) createBucket() *Error {
	return &Error{http.StatusConflict, "BucketAlreadyOwnedByYou", "the bucket is an alias of the configuration"}
}

type grantee struct {
	Space string `xml:"xmlns:xsi,attr"`
	Type  string `xml:"xsi:type,attr"`
	ID    string `xml:",omitempty"`
	URI   string `xml:",omitempty"`
}

type grant struct {
	Grantee    grantee
	Permission string
}

// acl answers with what is true of all items of the alias: the account may do all, and everybody
// may read, unless they are private.
func (q *request) acl() *Error {
	const schema = "http://www.w3.org/2001/XMLSchema-instance"
	answer := struct {
		Owner  owner   //
		Grants []grant `xml:"AccessControlList>Grant"`
	}{Owner: q.owner(), Grants: []grant{{grantee{Space: schema, Type: "CanonicalUser", ID: q.permit.Account.APIKey}, "FULL_CONTROL"}}}
	if q.alias.Private == nil {
		answer.Grants = append(answer.Grants, grant{grantee{Space: schema, Type: "Group", URI: "http://acs.amazonaws.com/groups/global/AllUsers"}, "READ"})
	}
	if q.key != "" {
		if _, failed := q.stat(q.alias, q.key); failed != nil {
			return failed
		}
	}
	q.answer(http.StatusOK, "AccessControlPolicy", answer)
	return nil
}

// Bounds of a list, which are those of lists of items.
const (
	maxKeys     = 1000
	maxExamined = 100_000
	maxListTime = time.Minute
)

type objectAnswer struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
	Owner        *owner `xml:",omitempty"`
}

type prefixAnswer struct{ Prefix string }

type listAnswer struct {
	Name                  string
	Prefix                string
	Marker                *string `xml:",omitempty"`
	NextMarker            string  `xml:",omitempty"`
	ContinuationToken     *string `xml:",omitempty"`
	NextContinuationToken string  `xml:",omitempty"`
	StartAfter            string  `xml:",omitempty"`
	KeyCount              *int    `xml:",omitempty"`
	MaxKeys               int
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	Contents              []objectAnswer
	CommonPrefixes        []prefixAnswer
}

// position is where a list goes on: in a page of the storage, behind a key or a prefix.
type position struct {
	Page  string `json:"p,omitempty"`
	After string `json:"a,omitempty"`
}

func (p position) token() string {
	raw, _ := json.Marshal(p) // of two texts
	return base64.RawURLEncoding.EncodeToString(raw)
}

// listing is a list of objects under way.
type listing struct {
	*request
	prefix, delimiter string
	after             string // the last name seen
	most              int
	wants             func(key string) bool
	began             time.Time
	contents          []storagedrivers.Info
	prefixes          []string
	examined          int
}

// listObjects answers with a page of objects in the byte order of their keys.
func (q *request) listObjects() *Error {
	second := q.query.Get("list-type") == "2"
	l := &listing{
		request: q, prefix: q.query.Get("prefix"), delimiter: q.query.Get("delimiter"), most: maxKeys, wants: service.ItemFilter(q.alias, ""),
		began: q.running.Uploader().Now(),
	}
	for _, name := range []string{"prefix", "delimiter", "marker", "start-after"} {
		if len(q.query.Get(name)) > item.MaxName {
			return errorOf(invalidArgument, name+" is longer than any key")
		}
	}
	answer := listAnswer{Name: q.bucket, Delimiter: l.delimiter, EncodingType: q.query.Get("encoding-type")}
	if text := q.query.Get("max-keys"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return errorOf(invalidArgument, "max-keys is a number")
		}
		l.most = min(int(n), maxKeys)
	}
	if answer.EncodingType != "" && answer.EncodingType != "url" {
		return errorOf(invalidArgument, "encoding-type is url")
	}
	from := position{After: q.query.Get("start-after")}
	if !second {
		from = l.resume(q.query.Get("marker"))
		answer.Marker = new(answer.encode(from.After))
	} else if q.query.Has("continuation-token") {
		token := q.query.Get("continuation-token")
		raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
		if token != "" && (err != nil || json.Unmarshal(raw, &from) != nil) { // an empty one is the beginning
			return errorOf(invalidArgument, "the continuation token is not from an earlier answer")
		}
		answer.ContinuationToken = &token
	}
	next, failed := l.read(from)
	if failed != nil {
		return failed
	}
	answer.Prefix, answer.Delimiter, answer.MaxKeys = answer.encode(l.prefix), answer.encode(l.delimiter), l.most
	l.fill(&answer)
	if answer.IsTruncated = next != nil; second {
		answer.KeyCount, answer.StartAfter = new(len(l.contents)+len(l.prefixes)), answer.encode(q.query.Get("start-after"))
		if next != nil {
			answer.NextContinuationToken = next.token()
		}
	} else if next != nil {
		answer.NextMarker = answer.encode(next.After)
		l.remember(*next)
	}
	q.answer(http.StatusOK, "ListBucketResult", answer)
	return nil
}

// maxMarkers is how many markers of the first version of lists are remembered.
const maxMarkers = 1000

// resume returns the position of a marker. In the first version of lists it is a key, and the page
// of the storage is known only if the last answer was of this process; otherwise the list is read
// from its beginning again.
func (l *listing) resume(marker string) position {
	l.mu.Lock()
	defer l.mu.Unlock()
	page, _ := l.markers.Get(l.markerKey(marker))
	return position{page, marker}
}

// remember keeps the position of a marker that the client gets.
func (l *listing) remember(p position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markers.Add(l.markerKey(p.After), p.Page)
}

func (l *listing) markerKey(marker string) string {
	return strings.Join([]string{l.permit.Account.APIKey, l.bucket, l.prefix, l.delimiter, marker}, "\n")
}

// encode encodes a key if the client asks for it.
func (a *listAnswer) encode(key string) string {
	if a.EncodingType == "" {
		return key
	}
	return encodePath(key)
}

// fill adds the objects and prefixes to the answer.
func (l *listing) fill(answer *listAnswer) {
	var by *owner
	if l.query.Get("fetch-owner") == "true" || l.query.Get("list-type") != "2" {
		by = new(l.owner())
	}
	for _, info := range l.contents {
		answer.Contents = append(answer.Contents, objectAnswer{
			Key: answer.encode(nameOf(l.alias, info)), LastModified: stamp(info.ModTime), ETag: tagOf(l.alias, info), Size: info.Size,
			StorageClass: "STANDARD", Owner: by,
		})
	}
	for _, prefix := range l.prefixes {
		answer.CommonPrefixes = append(answer.CommonPrefixes, prefixAnswer{answer.encode(prefix)})
	}
}

// read reads objects and prefixes from a position on. It returns where the next page begins; nil
// after the last.
func (l *listing) read(at position) (*position, *Error) {
	ctx, cancel := context.WithTimeout(l.ctx, maxListTime)
	defer cancel()
	l.after = at.After
	if l.most == 0 || storagedrivers.ValidKey(strings.TrimSuffix(l.prefix, "/")+"x") != nil {
		return nil, nil
	}
	looksInto := l.delimiter == "/" && l.alias.Storage.Features().EmptyFolders
	for {
		limit := 0
		if looksInto { // each folder, so it asks for no more than it needs
			limit = l.most - len(l.contents) - len(l.prefixes) + 1
		}
		page, err := l.alias.Storage.List(ctx, storagedrivers.ListOptions{
			Prefix: l.alias.Key("") + l.prefix, Cursor: at.Page, Limit: limit, Shallow: l.delimiter == "/",
		})
		switch {
		case err != nil && l.examined == 0 && at.Page != "" && service.IsOfCursor(err):
			return nil, errorOf(invalidArgument, "the continuation token is not from an earlier answer")
		case err != nil:
			return nil, storageError("list the objects", err)
		}
		full, err := l.take(ctx, page)
		if err != nil {
			return nil, storageError("list the objects", err)
		}
		if full {
			return &position{at.Page, l.after}, nil
		}
		if page.Next == "" {
			return nil, nil
		}
		if at.Page = page.Next; l.examined > maxExamined {
			return &position{at.Page, l.after}, nil
		}
	}
}

// take adds the entries of a page behind the last name, and reports whether there are more than
// fit.
func (l *listing) take(ctx context.Context, page storagedrivers.Page) (full bool, err error) {
	objects := page.Objects
	folders, err := l.filled(ctx, page.Folders)
	if err != nil {
		return false, err
	}
	l.examined += len(page.Folders) - len(folders)
	for len(objects)+len(folders) > 0 {
		var entry storagedrivers.Info
		if len(folders) == 0 || len(objects) > 0 && objects[0].Key < folders[0] {
			entry, objects = objects[0], objects[1:]
		} else {
			entry.Key, folders = folders[0], folders[1:]
		}
		l.examined++
		if !isMarker(entry) && (!l.wants(entry.Key) || l.alias.HasExpired(entry, l.began)) {
			continue
		}
		entries, err := l.hiddenFolders(ctx, entry.Key)
		if err != nil {
			return false, err
		}
		for _, entry := range append(entries, entry) {
			if full := l.add(entry); full {
				return true, nil
			}
		}
	}
	return false, nil
}

// add adds an entry behind the last name, and reports whether it does not fit.
func (l *listing) add(entry storagedrivers.Info) (full bool) {
	name := nameOf(l.alias, entry)
	if !strings.HasPrefix(name, l.prefix) { // a marker of a folder above it
		return false
	}
	isSeen := name <= l.after
	prefix, isPrefix := commonPrefix(name, l.prefix, l.delimiter)
	if isPrefix {
		isSeen = prefix <= l.after && !l.isWithin(prefix) || isSeen && !strings.HasSuffix(entry.Key, "/")
		name = prefix
	}
	switch {
	case isSeen:
		return false
	case len(l.contents)+len(l.prefixes) == l.most:
		return true
	}
	if l.after = name; isPrefix {
		l.prefixes = append(l.prefixes, name)
	} else {
		l.contents = append(l.contents, entry)
	}
	return false
}

// commonPrefix returns the beginning of a name up to the first delimiter behind a prefix of it.
func commonPrefix(name, prefix, delimiter string) (string, bool) {
	if delimiter == "" {
		return "", false
	}
	at := strings.Index(name[len(prefix):], delimiter)
	if at < 0 {
		return "", false
	}
	return name[:len(prefix)+at+len(delimiter)], true
}

// stat returns an object.
func (q *request) stat(alias *item.Alias, key string) (storagedrivers.Info, *Error) {
	ctx, cancel := context.WithTimeout(q.ctx, maxListTime)
	defer cancel()
	if folder, isFolder := folderOf(key); isFolder {
		return statFolder(ctx, alias, folder)
	}
	if !alias.MayBeItem(key) {
		return storagedrivers.Info{}, errorOf(noSuchKey, "there is no such object")
	}
	info, err := alias.StatPresent(ctx, key, q.running.Uploader().Now())
	if err != nil {
		return info, storageError("read the object", err)
	}
	return info, nil
}
