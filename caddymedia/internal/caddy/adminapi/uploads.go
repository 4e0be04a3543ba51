package adminapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// maxListTime bounds listing the uploads of one storage, so that the others are listed too.
const maxListTime = 15 * time.Second

// uploadAnswer is an unfinished resumable upload.
type uploadAnswer struct {
	Storage string `json:"storage"`
	// Name identifies the upload on its storage. It is no address that a client could use.
	Name      string    `json:"name"`
	Account   string    `json:"account"`
	User      string    `json:"user,omitempty"` // of an account with users
	Origin    string    `json:"origin"`
	Client    string    `json:"client"`
	Kind      item.Kind `json:"kind"`
	Alias     string    `json:"alias"`
	SubFolder string    `json:"sub_folder"`
	Filename  string    `json:"filename"`
	// Partial means that the upload is a part of others.
	Partial bool `json:"partial"`
	// Held means that the upload is complete, and waits until it is kept.
	Held   bool  `json:"held"`
	Offset int64 `json:"offset"`
	// Length is null until the client has sent it.
	Length   *int64 `json:"length"`
	Created  string `json:"created"`
	LastByte string `json:"last_byte"`
	Expires  string `json:"expires"`
}

// uploadsProblem is why uploads of a storage are missing in an answer.
type uploadsProblem struct {
	Storage string `json:"storage"`
	Message string `json:"message"`
	Detail  string `json:"detail"`
}

type uploadsAnswer struct {
	// On is false if the configuration refuses resumable uploads.
	On       bool             `json:"on"`
	Uploads  []uploadAnswer   `json:"uploads"`
	Problems []uploadsProblem `json:"problems"`
	Next     string           `json:"next"`
}

// maxListings is the maximum number of listings of a storage for one answer. Some may be empty.
const maxListings = 20

// position is the progress of a list of uploads: the page of a storage, and the storage.
type position struct {
	Page  string `json:"p,omitempty"`
	After string `json:"a,omitempty"`
}

// String returns the position as a cursor.
func (p position) String() string {
	raw, _ := json.Marshal(p) // of two texts
	return base64.RawURLEncoding.EncodeToString(raw)
}

// positionOf returns the position of a cursor; an empty one is the beginning.
func positionOf(cursor string) (from position, err error) {
	if cursor == "" {
		return from, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, &from)
	}
	if err != nil {
		return from, failf(http.StatusBadRequest, "The cursor is not from an earlier answer.")
	}
	return from, nil
}

const (
	// Uploads per page.
	defaultLimit = 60
	maxLimit     = 200
)

// limitOf returns the maximum number of uploads of a page.
func limitOf(query url.Values) (int, error) {
	raw := query.Get("limit")
	if raw == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(raw)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, failf(http.StatusBadRequest, "The limit is a number from 1 to %d.", maxLimit)
	}
	return limit, nil
}

// uploads returns a page of the unfinished resumable uploads of all storages. A storage that fails
// is a problem of the answer and hides no upload of another one.
func (c *call) uploads() error {
	query := c.r.URL.Query()
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	from, err := positionOf(query.Get("cursor"))
	if err != nil {
		return err
	}
	store := c.service.Uploads()
	answer := uploadsAnswer{On: store != nil, Uploads: []uploadAnswer{}, Problems: []uploadsProblem{}}
	if store == nil {
		return c.answer(answer)
	}
	storages := slices.SortedFunc(slices.Values(store.Storages), func(a, b *storagedrivers.Storage) int {
		return strings.Compare(a.Name(), b.Name())
	})
	ctx, cancel := c.bounded()
	defer cancel()
	for _, storage := range storages {
		cursor := ""
		switch name := storage.Name(); {
		case name < from.After:
			continue
		case name == from.After:
			cursor = from.Page
		}
		if len(answer.Uploads) >= limit || ctx.Err() != nil {
			answer.Next = position{After: storage.Name()}.String()
			break
		}
		if answer.Next = c.uploadsOf(ctx, storage, cursor, limit, &answer); answer.Next != "" {
			break
		}
	}
	return c.answer(answer)
}

// uploadsOf adds the uploads of a storage to an answer until that is full. It returns the cursor of
// the rest, empty if there is none.
func (c *call) uploadsOf(
	ctx context.Context, storage *storagedrivers.Storage, cursor string, limit int, answer *uploadsAnswer,
) (next string) {
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	for range maxListings {
		found, following, err := c.service.Uploads().List(ctx, storage, cursor, limit-len(answer.Uploads))
		for _, u := range found {
			if u.Form == resumable.Keep {
				continue // its parts are there
			}
			described := uploadAnswer{
				Storage: storage.Name(), Name: u.Name(), Account: u.Account, User: u.User, Origin: u.Origin, Client: u.Client,
				Kind: u.ItemKind(), Alias: u.Alias, SubFolder: u.SubFolder, Filename: u.Filename, Partial: !u.Form.HasItem(), Held: u.Held != nil,
				Offset: u.Offset(), Created: stamp(u.Created), LastByte: stamp(u.Changed()), Expires: stamp(u.Expires()),
			}
			if u.Length >= 0 {
				described.Length = &u.Length
			}
			answer.Uploads = append(answer.Uploads, described)
		}
		if err != nil {
			answer.Problems = append(answer.Problems, uploadsProblem{
				storage.Name(), explain(c.app.Driver(storage.Name()).Describe(), err), c.redacted(err.Error()),
			})
		}
		if cursor = following; cursor == "" {
			return ""
		}
		if len(answer.Uploads) >= limit {
			break
		}
	}
	return position{Page: cursor, After: storage.Name()}.String()
}

// endUpload terminates an unfinished resumable upload.
func (c *call) endUpload() error {
	none := failf(http.StatusNotFound, "There is no such upload: it has ended or has expired.")
	storage, ok := c.service.Storage(c.args[0])
	if !ok {
		return none
	}
	ctx, cancel := c.bounded()
	defer cancel()
	err := c.service.EndUpload(ctx, storage, c.args[1], c.actor())
	if errors.Is(err, fs.ErrNotExist) {
		return none
	}
	if err != nil {
		return storageFailed(c.app.Driver(storage.Name()).Describe(), err)
	}
	return c.noContent()
}
