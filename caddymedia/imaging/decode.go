package imaging

import (
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
)

// Decode decodes a JPEG, PNG or WebP image that passed [CheckImage]. The pixels are returned as
// stored, without applying the orientation. Of an animated PNG it returns only the still image,
// of an animated WebP the first canvas.
//
// A lossy WebP without alpha becomes an *image.YCbCr of ratio 4:2:0 in the full range of JPEG, any
// other WebP an *image.NRGBA. The memory used is that of the decoder of the standard library, or
// for a WebP that of golang.org/x/image: per pixel 1.5 bytes (lossy), 5 (lossless) or 11 (lossy
// with alpha), and up to 150 MiB for the codes of a hostile lossless image or alpha.
//
// The error is a [*ContentError] for a truncated or damaged image, or wraps a failure of r.
func Decode(r io.ReadSeeker, info Info) (image.Image, error) {
	switch info.Format {
	case PNG:
		return decodeWith(r, info, png.Decode)
	case WebP:
		return decodeWebP(r, info)
	default:
		return decodeWith(r, info, jpeg.Decode)
	}
}

// DecodeGIF is [Decode] for a GIF: it returns all frames separately, not composed.
func DecodeGIF(r io.ReadSeeker, info Info) (*gif.GIF, error) {
	return decodeWith(r, info, gif.DecodeAll)
}

func decodeWith[T any](r io.ReadSeeker, info Info, decode func(io.Reader) (T, error)) (T, error) {
	var none T
	s, err := newSource(r)
	if err != nil {
		return none, err
	}
	defer s.release()
	img, err := decode(s)
	if err != nil {
		return none, refuseDamaged(s, info.Format, err)
	}
	return img, nil
}

// refuseDamaged is refuseRaster for an image whose structure is valid.
func refuseDamaged(s *source, format Format, cause error) error {
	if err := s.ioError(); err != nil {
		return err
	}
	if unsupported(cause) {
		return contentErrorf("the %s image uses a feature that is not supported", format)
	}
	return contentErrorf("the %s image is damaged: not all of it can be decoded", format)
}

// unsupported reports whether a decoder, or a walk, refused a feature.
func unsupported(cause error) bool {
	var noJPEG jpeg.UnsupportedError
	var noPNG png.UnsupportedError
	return errors.As(cause, &noJPEG) || errors.As(cause, &noPNG) || errors.Is(cause, errUnsupported)
}
