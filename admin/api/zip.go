package api

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// The maximum number of items of a zip.
	maxZipItems = 1000
	// Items of a selection that are looked up at once.
	zipStats = 8
)

// zipItem is an item of a zip, as it was when it was selected.
type zipItem struct {
	name     string // in the zip
	filename string // relative to the alias
	info     storagedrivers.Info
}

// zipRequest is a selection of items.
type zipRequest struct {
	Kind      media.Kind `json:"kind"`
	Alias     string     `json:"alias"`
	Filenames []string   `json:"filenames"`
}

const exampleZip = `{"kind": "img", "alias": "photos", "filenames": ["a.jpg"]}`

type zipAnswer struct {
	// Address is relative to the page of the panel.
	Address string `json:"address"`
	// Size of the zip in bytes.
	Size  int64 `json:"size"`
	Items int   `json:"items"`
	// Missing are the filenames without an item.
	Missing []string `json:"missing"`
}

// selectZip keeps a selection of items for its user and returns the address of their zip.
func (c *call) selectZip() error {
	var body zipRequest
	if err := c.readJSON(&body, exampleZip); err != nil {
		return err
	}
	if n := len(body.Filenames); n == 0 || n > maxZipItems {
		return failf(http.StatusBadRequest, "A zip has 1 to %d items, not %d.", maxZipItems, n)
	}
	c.args = []string{string(body.Kind), body.Alias}
	alias, err := c.alias()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	items, missing, err := zipItems(ctx, alias, body.Filenames)
	if err != nil {
		return c.itemFailed(alias, err)
	}
	if len(items) == 0 {
		return failf(http.StatusNotFound, "None of these items is stored any more.")
	}
	id := c.handler.selections.add(selection{
		user: c.actor().Owner(), kind: alias.Kind, alias: alias.Name, items: items, selected: c.handler.now(),
	})
	return c.answer(zipAnswer{
		Address: "api/zip/" + id + "/" + alias.Name + ".zip", Size: zipSize(items), Items: len(items), Missing: missing,
	})
}

// zipItems looks up items of an alias. It returns those that are stored, each once and in the order
// of filenames, and the names of the others.
func zipItems(ctx context.Context, alias *media.Alias, filenames []string) (items []zipItem, missing []string, err error) {
	infos := make([]storagedrivers.Info, len(filenames)) // without a key if there is no item
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(zipStats)
	for i, filename := range filenames {
		if !alias.MayBeItem(filename) {
			continue
		}
		group.Go(func() error {
			info, err := alias.Storage.Stat(ctx, alias.Key(filename))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storagedrivers.ErrInvalidKey) {
				return nil
			}
			infos[i] = info
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	missing = []string{}
	selected, names := map[string]bool{}, map[string]bool{}
	for i, filename := range filenames {
		switch {
		case selected[filename]:
		case infos[i].Key == "":
			missing = append(missing, filename)
		default:
			items = append(items, zipItem{name: zipName(filename, names), filename: filename, info: infos[i]})
		}
		selected[filename] = true
	}
	return items, missing, nil
}

// zipName returns the name of an item in a zip and adds it to taken. It is safe to unpack:
// [storagedrivers.ValidKey] excludes absolute names, "..", backslashes and control characters. A
// colon is replaced, because Windows would read it as a drive or as a stream of a file.
func zipName(filename string, taken map[string]bool) string {
	name := strings.ReplaceAll(filename, ":", "_")
	for taken[name] {
		name = "_" + name
	}
	taken[name] = true
	return name
}

// header returns the header of an item, whose bytes are stored as they are.
func (i zipItem) header() *zip.FileHeader {
	return &zip.FileHeader{Name: i.name, Method: zip.Store, Modified: i.info.ModTime.UTC()}
}

// Sizes of the parts of a zip in bytes, as zip.Writer writes it (APPNOTE 6.3 of PKWARE). The checksum
// of an item is known only after its bytes, and so it is in a descriptor behind them.
const (
	zipLocalHeader  = 30
	zipDescriptor   = 16
	zipDescriptor64 = 24
	zipDirectory    = 46 // of an item
	zipTime         = 9  // in both headers of an item
	zipDirectory64  = 28 // of an item, in addition
	zipEnd          = 22
	zipEnd64        = 56 + 20 // in addition
	// The first size, offset or number of items that needs ZIP64.
	zip64From      = 1<<32 - 1
	zip64FromItems = 1<<16 - 1
)

// zipSize returns the size of the zip of items in bytes.
func zipSize(items []zipItem) int64 {
	var offset, directory int64
	for _, item := range items {
		named := int64(len(item.name))
		if !item.info.ModTime.IsZero() {
			named += zipTime
		}
		directory += zipDirectory + named
		if item.info.Size >= zip64From || offset >= zip64From {
			directory += zipDirectory64
		}
		offset += zipLocalHeader + named + item.info.Size + zipDescriptor
		if item.info.Size >= zip64From {
			offset += zipDescriptor64 - zipDescriptor
		}
	}
	size := offset + directory + zipEnd
	if len(items) >= zip64FromItems || offset >= zip64From || directory >= zip64From {
		size += zipEnd64
	}
	return size
}

// zip sends the zip of a selection.
func (c *call) zip() error {
	user := c.actor().Owner()
	chosen, ok := c.handler.selections.find(c.args[0], user, c.handler.now())
	if !ok || c.args[1] != chosen.alias+".zip" {
		return failf(http.StatusNotFound, "This download has expired. Select the items again.")
	}
	c.args = []string{string(chosen.kind), chosen.alias}
	alias, err := c.alias()
	if err != nil {
		return err
	}
	size := zipSize(chosen.items)
	header := c.w.Header()
	if c.r.Method != http.MethodHead {
		ended, ok := c.handler.selections.begin(user)
		if !ok {
			header.Set("Retry-After", "30")
			return failf(http.StatusTooManyRequests, "Other zips are being downloaded already. Try again when one of them has ended.")
		}
		defer ended()
	}
	header.Set("Content-Type", "application/zip")
	header.Set("Content-Disposition", "attachment; filename="+chosen.alias+".zip") // names need no quotes
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	to := &countingWriter{to: c.w}
	if err := writeZip(c.r.Context(), to, alias, chosen.items); err != nil || to.sent != size {
		if err == nil {
			err = errors.New("its length is wrong")
		}
		if to.err != nil { // the client is gone
			err = errors.Join(context.Canceled, err)
		}
		c.abort("sending a zip", alias, err, zap.Int64("sent", to.sent), zap.Int64("promised", size))
	}
	return nil
}

// writeZip writes the zip of items. It returns an error that wraps [storagedrivers.ErrChanged] if an
// item is no longer the one that was selected.
func writeZip(ctx context.Context, to io.Writer, alias *media.Alias, items []zipItem) error {
	w := zip.NewWriter(to)
	for _, item := range items {
		entry, err := w.CreateHeader(item.header())
		if err != nil {
			return err
		}
		if err := copyItem(ctx, entry, alias, item); err != nil {
			return err
		}
	}
	return w.Close()
}

// copyItem writes the bytes of an item.
func copyItem(ctx context.Context, to io.Writer, alias *media.Alias, item zipItem) error {
	object, err := alias.Storage.OpenSeeker(ctx, alias.Key(item.filename))
	if err != nil {
		return err
	}
	defer object.Close()
	if !object.Info.Same(item.info) {
		return fmt.Errorf("item %q: %w", item.filename, storagedrivers.ErrChanged)
	}
	_, err = io.CopyN(to, object, item.info.Size)
	if errors.Is(err, io.EOF) { // a file was cut
		err = storagedrivers.ErrChanged
	}
	if err != nil {
		return fmt.Errorf("item %q: %w", item.filename, err)
	}
	return nil
}

// countingWriter counts the bytes that a client has accepted.
type countingWriter struct {
	to   io.Writer
	sent int64
	err  error // the first of writing
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.sent += int64(n)
	if w.err == nil {
		w.err = err
	}
	return n, err
}
