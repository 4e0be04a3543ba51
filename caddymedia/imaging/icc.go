package imaging

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"slices"
)

// maxProfile is the largest ICC profile that is copied into another file. It is held for the whole
// request, so 200 images of a request hold 12.5 MiB. Real ones have 0.5 to 4 KiB. Those of
// printers have megabytes, but describe CMYK.
const maxProfile = 64 << 10

// iccPrefix begins the APP2 segments of a JPEG that hold a profile (ICC.1:2022, annex B.4).
const iccPrefix = "ICC_PROFILE\x00"

// iccParts joins a profile that is split over the segments of a JPEG.
type iccParts struct {
	parts  [][]byte // by number, from 0; nil where one is missing
	size   int
	space  string // of the first part
	large  bool
	broken bool
}

// add adds the data of a segment after the prefix: the number of the part (from 1), the number of
// parts, the part.
func (c *iccParts) add(b []byte) {
	if c.broken {
		return
	}
	if c.broken = !c.fits(b); c.broken {
		c.parts = nil
		return
	}
	if c.parts == nil {
		c.parts = make([][]byte, b[1])
	}
	at, part := b[0]-1, b[2:]
	if at == 0 {
		c.space = newProfile(part).space
	}
	if c.size += len(part); c.size > maxProfile {
		c.large = true
	}
	if c.large {
		part = nil // only its presence is kept
	}
	c.parts[at] = append([]byte{}, part...)
}

func (c *iccParts) fits(b []byte) bool {
	if len(b) < 2 || b[0] < 1 || b[0] > b[1] {
		return false
	}
	return c.parts == nil || len(c.parts) == int(b[1]) && c.parts[b[0]-1] == nil
}

// join returns the profile, or the zero value if a part is missing.
func (c *iccParts) join() colorProfile {
	for _, part := range c.parts {
		if part == nil {
			return colorProfile{}
		}
	}
	if c.large {
		return colorProfile{space: c.space}
	}
	return newProfile(slices.Concat(c.parts...))
}

// inflateProfile returns the profile in the data of an iCCP chunk (W3C PNG, section 11.3.2.3). The
// data is a name, a zero byte, the compression method (always 0) and the compressed profile. cut
// reports that data is only the start of the chunk.
func inflateProfile(data []byte, cut bool) colorProfile {
	_, rest, ok := bytes.Cut(data, []byte{0})
	if !ok || len(rest) == 0 || rest[0] != 0 {
		return colorProfile{}
	}
	z, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return colorProfile{}
	}
	profile, err := io.ReadAll(io.LimitReader(z, maxProfile+1))
	switch {
	case cut && errors.Is(err, io.ErrUnexpectedEOF):
		return colorProfile{space: newProfile(profile).space}
	case err != nil:
		return colorProfile{}
	}
	return newProfile(profile)
}
