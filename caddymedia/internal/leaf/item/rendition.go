package item

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Rendition is a named size of the images of an alias.
type Rendition struct {
	Name string
	// Box is the size in pixels.
	Box scale.Box
	// Format of the file; empty for that of the image, or PNG for a GIF.
	Format imaging.Format
	// Quality of lossy encoding, 1 to 100. 0 means the default.
	Quality int
	// Eager makes the rendition with the upload, otherwise it is made when it is first requested.
	Eager bool
	// Still makes no animation.
	Still bool
}

// Thumbnail is the rendition for lists of items in the panel. No alias has it among its renditions,
// and no configuration can have its name, so it has no public address. It is stored like the
// others.
var Thumbnail = Rendition{Name: "@thumbnail", Box: scale.Box{Width: 320, Height: 320}, Quality: 70, Still: true}

// Rendition returns the rendition of a name, and false if the alias has none.
func (a *Alias) Rendition(name string) (*Rendition, bool) {
	i := slices.IndexFunc(a.Renditions, func(r Rendition) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return &a.Renditions[i], true
}

// IsRendered reports whether filename (relative to the alias) is the name of an image that can be
// decoded, so that it may have renditions.
func (a *Alias) IsRendered(filename string) bool {
	return a.Kind == Image && imaging.FormatOf(naming.Extension(filename)).Decodable() && !a.IsVariant(filename)
}

// RenditionURL is [Alias.URL] for a rendition.
func (a *Alias) RenditionURL(base, rendition, filename string) string {
	return a.base(base) + a.Path() + "@" + rendition + "/" + escapePath(filename)
}

// RenditionURLs returns the addresses of all renditions of an image by their names, but those that
// it cannot have; nil if there are none.
func (a *Alias) RenditionURLs(base, filename string, impossible ...string) map[string]string {
	if len(a.Renditions) == 0 || !a.IsRendered(filename) && naming.Extension(filename) != "svg" {
		return nil
	}
	urls := make(map[string]string, len(a.Renditions))
	for _, r := range a.Renditions {
		if !slices.Contains(impossible, r.Name) {
			urls[r.Name] = a.RenditionURL(base, r.Name, filename)
		}
	}
	if len(urls) == 0 {
		return nil
	}
	return urls
}

// RenditionFile is a file of a rendition. A rendition in the format of its image also has a WebP
// file for clients that prefer WebP, if the alias negotiates.
type RenditionFile struct {
	Rendition *Rendition
	Format    imaging.Format
}

// FileOf returns the file of a rendition of an image; webp prefers WebP.
func (r *Rendition) FileOf(filename string, webp bool) RenditionFile {
	format := imaging.FormatOf(naming.Extension(filename))
	switch {
	case r.Format != "":
		format = r.Format
	case webp:
		format = imaging.WebP
	case format == imaging.GIF:
		format = imaging.PNG // a smaller image has more colours than a GIF can have
	}
	return RenditionFile{r, format}
}

// RenditionFiles returns the files of all renditions of an image, or only of the eager ones.
func (a *Alias) RenditionFiles(filename string, eager bool) []RenditionFile {
	if !a.IsRendered(filename) {
		return nil
	}
	var files []RenditionFile
	for i := range a.Renditions {
		r := &a.Renditions[i]
		if eager && !r.Eager {
			continue
		}
		files = append(files, r.FileOf(filename, false))
		if a.Negotiates(r, filename) {
			files = append(files, r.FileOf(filename, true))
		}
	}
	return files
}

// Negotiates reports whether the format of a rendition depends on the client.
func (a *Alias) Negotiates(r *Rendition, filename string) bool {
	return a.Negotiate && r.Format == "" && a.MayHaveVariant(filename)
}

// ContentType returns the media type of the file.
func (f RenditionFile) ContentType() string {
	return storagedrivers.ContentType("." + f.Format.Extension())
}

// Output returns the options of encoding the file.
func (f RenditionFile) Output() render.Output {
	return render.Output{
		Format: f.Format, Box: f.Rendition.Box, Quality: f.Rendition.Quality, FirstFrame: true, Still: f.Rendition.Still,
	}
}

// A rendition is stored under a key that depends on its settings and on the generation of its
// image. After a change of either it has another key. So an outdated rendition is never found, even
// if another process stores it late:
//
//	img/content@renditions/3/26-11/20/photo.jpg/thumb.2a1f6c03.9d1b0c7e5f24a683.webp
//
// The number is that of the segments of the filename. So the folder of an image is never a
// rendition of another one.

// renditionVersion is raised when the same settings have other results.
const renditionVersion = 1

// RenditionRoot returns the folder of all renditions, which is outside of the folder of the items.
func (a *Alias) RenditionRoot() string { return a.Prefix + RenditionSuffix }

// RenditionLocation returns the location of all renditions.
func (a *Alias) RenditionLocation() storagedrivers.Location {
	return a.Storage.Location().Join(a.RenditionRoot())
}

// RenditionFolder returns the beginning of the keys of all renditions of an image.
func (a *Alias) RenditionFolder(filename string) string {
	return a.RenditionRoot() + "/" + strconv.Itoa(strings.Count(filename, "/")+1) + "/" + filename + "/"
}

// Fingerprint identifies the settings of a file.
func (f RenditionFile) Fingerprint() string {
	return shortHash(4, "%d %+v %s %d", renditionVersion, f.Rendition.Box, f.Format, f.Rendition.Quality)
}

// Fingerprint identifies the settings of a rendition.
func (r *Rendition) Fingerprint() string { return RenditionFile{r, r.Format}.Fingerprint() }

// Generation identifies a generation of an image, as far as the backend does.
func Generation(image storagedrivers.Info) string {
	return shortHash(8, "%d %q %d", image.Size, image.ETag, image.ModTime.UnixNano())
}

// RenditionKey returns the key of a file, for a generation of the image.
func (a *Alias) RenditionKey(filename string, f RenditionFile, image storagedrivers.Info) string {
	name := f.Rendition.Name + "." + f.Fingerprint() + "." + Generation(image) + "." + f.Format.Extension()
	return a.RenditionFolder(filename) + name
}

// RenditionKeys returns the keys of the files of all renditions, for a generation of the image.
func (a *Alias) RenditionKeys(filename string, image storagedrivers.Info) []string {
	files := a.RenditionFiles(filename, false)
	keys := make([]string, len(files))
	for i, f := range files {
		keys[i] = a.RenditionKey(filename, f, image)
	}
	return keys
}

// ThumbnailKeys returns the keys that the [Thumbnail] may have, for a generation of the image.
func (a *Alias) ThumbnailKeys(filename string, image storagedrivers.Info) []string {
	return []string{
		a.RenditionKey(filename, Thumbnail.FileOf(filename, false), image),
		a.RenditionKey(filename, Thumbnail.FileOf(filename, true), image),
	}
}

// shortHash returns the first bytes of a SHA-256 sum in hexadecimal digits.
func shortHash(size int, format string, args ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return hex.EncodeToString(sum[:size])
}

// ImageOfRendition returns the filename of the image that a rendition's key belongs to.
func (a *Alias) ImageOfRendition(key string) (filename string, ok bool) {
	rest, ok := strings.CutPrefix(key, a.RenditionRoot()+"/")
	depth, rest, cut := strings.Cut(rest, "/")
	last := strings.LastIndexByte(rest, '/')
	if !ok || !cut || last < 0 {
		return "", false
	}
	filename = rest[:last]
	return filename, depth == strconv.Itoa(strings.Count(filename, "/")+1)
}

// StoredRenditions returns the keys of all stored renditions of an image, of any settings and
// generation.
func (a *Alias) StoredRenditions(ctx context.Context, filename string) ([]string, error) {
	opts := storagedrivers.ListOptions{Prefix: a.RenditionFolder(filename), Shallow: true}
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

// RemoveRenditions removes all renditions of an image, as far as it can.
func (a *Alias) RemoveRenditions(ctx context.Context, filename string) error {
	keys, err := a.StoredRenditions(ctx, filename)
	for _, key := range keys {
		err = errors.Join(err, Remove(ctx, a.Storage, key))
	}
	return err
}
