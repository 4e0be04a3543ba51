package upload

import (
	"context"
	"io"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
)

// Holder takes the files of a request that have passed the checks, all or none, in place of a
// commit. Their content is closed when it returns. Its error is that of a commit.
type Holder func(ctx context.Context, files []Checked) error

// HoldAll is the [Upload.Hold] of a request whose files are held, whatever its form says.
func HoldAll(hold Holder) func(string) (Holder, *item.Failure) {
	return func(string) (Holder, *item.Failure) { return hold, nil }
}

// Checked is a file that has passed the checks, and has no name in its alias.
type Checked struct {
	// Name is that of which the filename is made, without folders.
	Name             string
	Alias, SubFolder string
	Content          io.ReadSeeker
	// Size in bytes.
	Size int64
	// ContentType is that of the item that it would be.
	ContentType string
	// Facts are those of an image whose alias wants them; otherwise nil.
	Facts *derived.Facts
}

// setHold sets what takes the files of the request, as far as its form is received.
func (b *batch) setHold() error {
	if b.form.Hold == nil {
		return nil // they are stored
	}
	hold, failure := b.form.Hold(b.fields["hold"])
	switch {
	case failure != nil:
		return failure
	case hold != nil && (b.req.Purge || b.condition != nil):
		return item.Failf(item.BadRequest, "purge and conditions are for items that are stored at once: leave them out, or hold")
	}
	b.hold = hold
	return nil
}

// checked returns the files of the request.
func (b *batch) checked() []Checked {
	files := make([]Checked, len(b.uploads))
	for i, up := range b.uploads {
		files[i] = Checked{
			Name: naming.FileNameOf(b.givenName(up)), Alias: b.alias.Name, SubFolder: b.folderOf(up), Content: up.content(), Size: up.size,
			ContentType: b.alias.ContentType(naming.Extension(up.filename)),
		}
		if b.alias.Facts != item.NoFacts {
			files[i].Facts = b.uploader.Derived.FactsOf(b.alias, "", up.filename, up.image, up.hash)
		}
	}
	return files
}
