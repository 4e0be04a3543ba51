package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// A rendition is stored under a key that depends on its settings and on the generation of its
// picture. After a change of either it has another key. So an outdated rendition is never found, even
// if another process stores it late:
//
//	img/content@renditions/3/26-11/20/photo.jpg/thumb.2a1f6c03.9d1b0c7e5f24a683.webp
//
// The number is that of the segments of the filename. So the folder of a picture is never a
// rendition of another one.

// renditionVersion is raised when the same settings have other results.
const renditionVersion = 1

// RenditionRoot returns the folder of all renditions, which is outside of the folder of the items.
func (a *Alias) RenditionRoot() string { return a.Prefix + RenditionSuffix }

// RenditionLocation returns the location of all renditions.
func (a *Alias) RenditionLocation() storagedrivers.Location {
	return a.Storage.Location().Join(a.RenditionRoot())
}

// renditionFolder returns the beginning of the keys of all renditions of a picture.
func (a *Alias) renditionFolder(filename string) string {
	return a.RenditionRoot() + "/" + strconv.Itoa(strings.Count(filename, "/")+1) + "/" + filename + "/"
}

// fingerprint identifies the settings of a file.
func (f renditionFile) fingerprint() string {
	return shortHash(4, "%d %+v %s %d", renditionVersion, f.rendition.Box, f.format, f.rendition.Quality)
}

// Fingerprint identifies the settings of a rendition.
func (r *Rendition) Fingerprint() string { return renditionFile{r, r.Format}.fingerprint() }

// name returns the last segment of the key of a file, for a generation of the picture.
func (f renditionFile) name(picture storagedrivers.Info) string {
	return f.rendition.Name + "." + f.fingerprint() + "." + generation(picture) + "." + f.format.Extension()
}

// generation identifies a generation of a picture, as far as the backend does.
func generation(picture storagedrivers.Info) string {
	return shortHash(8, "%d %q %d", picture.Size, picture.ETag, picture.ModTime.UnixNano())
}

// renditionKey returns the key of a file, for a generation of the picture.
func (a *Alias) renditionKey(filename string, f renditionFile, picture storagedrivers.Info) string {
	return a.renditionFolder(filename) + f.name(picture)
}

// shortHash returns the first bytes of a SHA-256 sum in hexadecimal digits.
func shortHash(size int, format string, args ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return hex.EncodeToString(sum[:size])
}

// pictureOfRendition returns the filename of the picture and the last segment of a rendition's key.
func (a *Alias) pictureOfRendition(key string) (filename, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, a.RenditionRoot()+"/")
	depth, rest, cut := strings.Cut(rest, "/")
	last := strings.LastIndexByte(rest, '/')
	if !ok || !cut || last < 0 {
		return "", "", false
	}
	filename = rest[:last]
	return filename, rest[last+1:], depth == strconv.Itoa(strings.Count(filename, "/")+1)
}

// renditionOptions returns the options of a stored rendition. Of two makers the first one wins.
func (a *Alias) renditionOptions() storagedrivers.PutOptions {
	return storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly, CacheControl: a.RenditionCacheControl}
}

// storedRenditions returns the keys of all renditions of a picture, of any settings and generation.
func (a *Alias) storedRenditions(ctx context.Context, filename string) ([]string, error) {
	opts := storagedrivers.ListOptions{Prefix: a.renditionFolder(filename), Shallow: true}
	if err := storagedrivers.ValidKey(opts.Prefix + "x"); err != nil {
		return nil, nil //nolint:nilerr // it has none
	}
	var keys []string
	for {
		page, err := a.Storage.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		for _, info := range page.Objects {
			keys = append(keys, info.Key)
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			return keys, nil
		}
	}
}

// removeRenditions removes all renditions of a picture, as far as it can.
func (a *Alias) removeRenditions(ctx context.Context, filename string) error {
	keys, err := a.storedRenditions(ctx, filename)
	for _, key := range keys {
		err = errors.Join(err, remove(ctx, a.Storage, key))
	}
	return err
}
