package imaging

import (
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
)

// Decode decodes a JPEG or PNG picture that passed [CheckImage]. The pixels are returned as stored,
// without applying the orientation, and of an animated PNG only the still picture. The memory used
// is that of the decoder of the standard library.
//
// The error is a [*ContentError] for a truncated or damaged picture, or wraps a failure of r.
func Decode(r io.ReadSeeker, info Info) (image.Image, error) {
	decode := jpeg.Decode
	if info.Format == PNG {
		decode = png.Decode
	}
	return decodeWith(r, info, decode)
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
	picture, err := decode(s)
	if err != nil {
		return none, refuseDamaged(s, info.Format, err)
	}
	return picture, nil
}

// refuseDamaged is refuseRaster for a picture whose structure is valid.
func refuseDamaged(s *source, format Format, cause error) error {
	if err := s.ioError(); err != nil {
		return err
	}
	if unsupported(cause) {
		return contentErrorf("the %s picture uses a feature that is not supported", format)
	}
	return contentErrorf("the %s picture is damaged: not all of it can be decoded", format)
}

// unsupported reports whether a decoder refused a feature.
func unsupported(cause error) bool {
	var noJPEG jpeg.UnsupportedError
	var noPNG png.UnsupportedError
	return errors.As(cause, &noJPEG) || errors.As(cause, &noPNG)
}
