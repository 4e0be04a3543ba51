package ingest

import (
	"slices"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/naming"
)

// Rendition is a named size of the pictures of an alias.
type Rendition struct {
	Name string
	// Box is the size in pixels.
	Box scale.Box
	// Format of the file; empty for that of the picture.
	Format imaging.Format
	// Quality of lossy encoding, 1 to 100. 0 means the default.
	Quality int
	// Eager makes the rendition with the upload, otherwise it is made when it is first requested.
	Eager bool
}

// Rendition returns the rendition of a name, and false if the alias has none.
func (a *Alias) Rendition(name string) (*Rendition, bool) {
	i := slices.IndexFunc(a.Renditions, func(r Rendition) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return &a.Renditions[i], true
}

// IsRendered reports whether filename (relative to the alias) is the name of a picture that can be
// decoded, so that it may have renditions.
func (a *Alias) IsRendered(filename string) bool {
	return a.Kind == Image && imaging.FormatOf(naming.Extension(filename)).Decodable() && !a.IsVariant(filename)
}

// RenditionURL is [Alias.URL] for a rendition.
func (a *Alias) RenditionURL(base, rendition, filename string) string {
	return a.base(base) + a.Path() + "@" + rendition + "/" + escapePath(filename)
}

// RenditionURLs returns the addresses of all renditions of a picture by their names, but those that
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

// renditionFile is a file of a rendition. A rendition in the format of its picture also has a WebP
// file for clients that prefer WebP, if the alias negotiates.
type renditionFile struct {
	rendition *Rendition
	format    imaging.Format
}

// fileOf returns the file of a rendition of a picture; webp prefers WebP.
func (r *Rendition) fileOf(filename string, webp bool) renditionFile {
	switch {
	case r.Format != "":
		return renditionFile{r, r.Format}
	case webp:
		return renditionFile{r, imaging.WebP}
	default:
		return renditionFile{r, imaging.FormatOf(naming.Extension(filename))}
	}
}

// renditionFiles returns the files of all renditions of a picture, or only of the eager ones.
func (a *Alias) renditionFiles(filename string, eager bool) []renditionFile {
	if !a.IsRendered(filename) {
		return nil
	}
	var files []renditionFile
	for i := range a.Renditions {
		r := &a.Renditions[i]
		if eager && !r.Eager {
			continue
		}
		files = append(files, r.fileOf(filename, false))
		if a.Negotiates(r, filename) {
			files = append(files, r.fileOf(filename, true))
		}
	}
	return files
}

// Negotiates reports whether the format of a rendition depends on the client.
func (a *Alias) Negotiates(r *Rendition, filename string) bool {
	return a.Negotiate && r.Format == "" && a.MayHaveVariant(filename)
}

func (f renditionFile) output() render.Output {
	return render.Output{Format: f.format, Box: f.rendition.Box, Quality: f.rendition.Quality, FirstFrame: true}
}
