package imaging

import (
	"image/jpeg"
	"io"
)

// ReadHeader is [CheckImage] for an image that passed it before: it reads only the header of a JPEG,
// and does not check the rest. The result has no Profile and cannot be stripped.
func ReadHeader(r io.ReadSeeker, size int64, ext string, opts Options) (Info, error) {
	read := CheckImage
	if FormatOf(ext) == JPEG {
		read = readJPEGHeader
	}
	info, err := read(r, size, ext, opts)
	info.Profile, info.layout, info.frames = nil, layout{}, nil
	return info, err
}

func readJPEGHeader(r io.ReadSeeker, size int64, ext string, _ Options) (Info, error) {
	s, err := newSource(r)
	if err != nil {
		return Info{}, err
	}
	defer s.release()
	info := Info{Format: JPEG, Frames: 1, Orientation: Upright, End: size}
	if err := walkJPEGHeader(s, &info); err != nil {
		return Info{}, refuseRaster(s, JPEG, ext, err)
	}
	if err := s.rewind(); err != nil {
		return Info{}, err
	}
	config, err := jpeg.DecodeConfig(s)
	if err != nil {
		return Info{}, refuseRaster(s, JPEG, ext, err)
	}
	info.Width, info.Height = config.Width, config.Height
	info.FramePixels = int64(info.Width) * int64(info.Height)
	return info, nil
}

// walkJPEGHeader is walkJPEG up to the first frame header, before which a JPEG has its orientation,
// its profile and the index of its images.
func walkJPEGHeader(s *source, info *Info) error {
	if err := startJPEG(s); err != nil {
		return err
	}
	j := jpegSegments{info: info}
	for range maxBlocks {
		done, err := j.next(s)
		if err != nil {
			return err
		}
		if done || j.framed {
			info.HDR = j.claimsGainMap()
			j.describeProfile()
			return nil
		}
	}
	return tooLargef("the JPEG image has too many segments")
}
