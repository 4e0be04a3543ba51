package media

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
)

// ImageSrcset returns the value of a srcset attribute for a stored image: "<address> 320w, ..." in
// ascending order, of its renditions with a width and of the image itself. A width is that of the
// image that a client gets, and occurs once. An SVG has no widths, so the result is its address
// alone. It is empty if there is no such image, or if the storage cannot be read.
//
// The error is that of an unknown alias.
func (s *Service) ImageSrcset(ctx context.Context, name, filename string) (string, error) {
	alias, ok := s.Alias(aliases.Image, name)
	if !ok {
		return "", fmt.Errorf("unknown alias %q", name)
	}
	_, release, err := s.Acquire()
	if err != nil {
		return "", nil // a page of an earlier configuration lacks the attribute
	}
	defer release()
	sizes, err := s.uploader.Derived.Sizes(ctx, alias, filename)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("finding the sizes of an image", "alias", name, "filename", filename, "error", err)
		}
		return "", nil
	}
	return derived.Srcset(sizes), nil
}
