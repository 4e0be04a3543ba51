package s3api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// A client makes a folder by an object without bytes under a key that ends with a slash. Such a key
// is no valid one of a storage, so the object is kept as the marker of the folder, see
// [item.Alias.MarkerKey].

// folderType is the media type of the object of a folder, by which clients know it.
const folderType = "application/x-directory"

// folderOf returns the folder of a key that ends with a slash.
func folderOf(key string) (folder string, isFolder bool) { return strings.CutSuffix(key, "/") }

// nameOf returns the key of an object for clients.
func nameOf(alias *item.Alias, info storagedrivers.Info) string {
	return strings.TrimSuffix(alias.Filename(info.Key), naming.FolderMarker)
}

func isMarker(info storagedrivers.Info) bool {
	return strings.HasSuffix(info.Key, "/"+naming.FolderMarker)
}

// folderTag returns the entity tag of the object of a folder, which never changes.
func folderTag(key string) string { return tag(strings.TrimSuffix(key, "/"), 0) }

// firstBelow returns the first object below a prefix, and behind the name after, that clients see.
// Its Key is empty if there is none. Behind very many others it is assumed.
func firstBelow(ctx context.Context, alias *item.Alias, prefix, after string) (storagedrivers.Info, error) {
	isItem := service.ItemFilter(alias, "")
	opts := storagedrivers.ListOptions{Prefix: prefix}
	if after == "" {
		opts.Limit = 1 // most folders begin with an item
	}
	for examined := 0; examined <= maxExamined; {
		page, err := alias.Storage.List(ctx, opts)
		if err != nil {
			return storagedrivers.Info{}, err
		}
		for _, info := range page.Objects {
			if (isMarker(info) || isItem(info.Key)) && nameOf(alias, info) > after {
				return info, nil
			}
		}
		if page.Next == "" {
			return storagedrivers.Info{}, nil
		}
		examined += len(page.Objects)
		opts.Cursor, opts.Limit = page.Next, 0
	}
	return storagedrivers.Info{Key: prefix}, nil
}

// statFolder returns the Info of the object of a folder. There is one while the folder has its
// marker, or anything else: clients then need not make folders above the items that others upload.
func statFolder(ctx context.Context, alias *item.Alias, folder string) (storagedrivers.Info, *Error) {
	key := alias.MarkerKey(folder)
	if key == "" {
		return storagedrivers.Info{}, errorOf(noSuchKey, "there is no such object")
	}
	found, err := item.Stat(ctx, alias.Storage, key)
	if err == nil && found.Key == "" {
		found, err = firstBelow(ctx, alias, alias.Below(folder), "")
	}
	switch {
	case err != nil:
		return found, storageError("read the object", err)
	case found.Key == "":
		return found, errorOf(noSuchKey, "there is no such object")
	}
	return storagedrivers.Info{Key: key, ModTime: found.ModTime}, nil
}

// getFolder answers with the object of a folder.
func (q *request) getFolder() *Error {
	info, failed := q.stat(q.alias, q.key)
	if failed != nil {
		return failed
	}
	q.w.Header().Set("Content-Type", folderType)
	q.w.Header().Set("Content-Length", "0")
	q.w.Header().Set("ETag", folderTag(q.key))
	q.w.Header().Set("Last-Modified", info.ModTime.UTC().Format(http.TimeFormat))
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// putFolder makes a folder of a body without bytes.
func (q *request) putFolder(body *body) *Error {
	timed, stop := httpx.NewTimedBody(q.w, io.NopCloser(body), q.running.UploadTime(q.permit.Ticket))
	defer stop()
	n, err := io.Copy(io.Discard, io.LimitReader(timed, 1))
	failed, ok := errors.AsType[*Error](err)
	switch {
	case ok:
		return failed
	case err != nil:
		return errorOf(incompleteBody, "the body could not be read to its end")
	case n > 0:
		return errorOf(invalidRequest, "a key that ends with a slash has no bytes")
	}
	if _, failed := q.makeFolder(mayWrite, access.Upload); failed != nil {
		return failed
	}
	return q.stored(body, folderTag(q.key))
}

// makeFolder stores the marker of the folder of the request, if there is none. The account must
// have one of the rights also right before, and for a new marker the right to create.
func (q *request) makeFolder(rights []access.Right, create access.Right) (storagedrivers.Info, *Error) {
	none := storagedrivers.Info{}
	folder, _ := folderOf(q.key)
	if failed := q.checkFolder(folder); failed != nil {
		return none, failed
	}
	matches, failed := conditionOf(q.r.Header, q.alias)
	if failed != nil {
		return none, failed
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return none, failureError(refused.Failure)
	}
	defer ended()
	now, failure := q.permit.CheckAgain(q.ctx, q.alias.Kind, rights, q.alias.Name)
	if failure != nil {
		return none, failureError(failure)
	}
	key := q.alias.MarkerKey(folder)
	info, err := item.Stat(q.ctx, q.alias.Storage, key)
	isNew := err == nil && info.Key == ""
	switch {
	case err != nil:
		return none, storageError("store the folder", err)
	case !matches(info):
		return none, errorOf(preconditionFailed, "a condition does not hold for the object")
	case isNew && !now.Account.May(create):
		return none, failureError(op.Need(now.Account, create))
	case isNew:
		info, err = q.alias.Storage.Put(q.ctx, key, strings.NewReader(""), storagedrivers.PutOptions{
			Mode: storagedrivers.Overwrite, ContentType: folderType,
		})
		if err == nil {
			q.alias.Stored(q.alias.Filename(key), info)
		}
	}
	if err != nil {
		return none, q.failure(item.Failures{item.StorageFailure(err)})
	}
	return info, nil
}

// checkFolder returns an error unless the alias stores a folder under this name.
func (q *request) checkFolder(folder string) *Error {
	if folder == "" {
		return errorOf(invalidRequest, "the folder has no name")
	}
	stored, err := q.alias.Folder(folder, time.Time{})
	failure, isFailure := errors.AsType[*item.Failure](err)
	switch {
	case isFailure:
	case stored != folder:
		failure = q.alias.RenamedFailure(stored + "/")
	case q.alias.MarkerKey(folder) == "":
		failure = item.Failf(item.BadRequest, "the name of the folder is too long")
	default:
		return nil
	}
	return q.failure(item.Failures{failure})
}

// copyFolder makes a folder as a copy of another one. The items of that are copied one by one.
func (q *request) copyFolder(source storagedrivers.Info) *Error {
	if _, isFolder := folderOf(q.key); !isFolder || !isMarker(source) {
		return errorOf(invalidRequest, "a folder is copied to a folder: both keys end with a slash")
	}
	info, failed := q.makeFolder([]access.Right{access.Copy}, access.Copy)
	if failed != nil {
		return failed
	}
	q.answerCopy(info)
	return nil
}

// atOnce is how many folders are looked into side by side.
const atOnce = 8

// filled returns the folders of a list that have objects behind the last name. A storage may list
// others, such as those that deleted objects leave.
func (l *listing) filled(ctx context.Context, folders []string) ([]string, error) {
	first := make([]storagedrivers.Info, len(folders))
	group, ctx := guard.WithContext(ctx, atOnce)
	for i, folder := range folders {
		name, after := l.alias.Filename(folder), ""
		switch {
		case !l.wants(folder):
			continue
		case l.isWithin(name):
			after = l.after
		case name <= l.after:
			continue
		case !l.alias.Storage.Features().EmptyFolders:
			first[i].Key = folder
			continue
		}
		group.Go(func() (err error) {
			first[i], err = firstBelow(ctx, l.alias, folder, after)
			return err
		})
	}
	err := group.Wait()
	var filled []string
	for i, folder := range folders {
		if first[i].Key != "" {
			filled = append(filled, folder)
		}
	}
	return filled, err
}

// isWithin reports whether the last name is behind a prefix that it begins with. The prefix is then
// in the list if another name with it follows.
func (l *listing) isWithin(prefix string) bool {
	return prefix < l.after && strings.HasPrefix(l.after, prefix)
}

// hiddenFolders returns the markers of the folders that a list enters with an object whose key
// comes before theirs: the name of a folder comes before the names of its items.
func (l *listing) hiddenFolders(ctx context.Context, key string) (markers []storagedrivers.Info, err error) {
	name := l.alias.Filename(key)
	for at := range len(name) - 1 {
		folder, isBelow := name[:at+1], strings.HasPrefix(name, l.prefix) && at+1 >= len(l.prefix)
		if name[at] != '/' || !isBelow || strings.HasPrefix(l.after, folder) || name[at+1:] >= naming.FolderMarker {
			continue
		}
		info, err := item.Stat(ctx, l.alias.Storage, l.alias.MarkerKey(name[:at]))
		if err != nil {
			return nil, err
		}
		if info.Key != "" {
			markers = append(markers, info)
		}
	}
	return markers, nil
}
