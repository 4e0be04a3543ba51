package imaging

import (
	"bytes"
	"compress/zlib"
	"io"
	"slices"
)

// maxProfile is the largest ICC profile that is worth carrying into another file. Real ones have 0.5 to 4 KiB; those
// of printers have megabytes, but are of CMYK.
const maxProfile = 64 << 10

// iccPrefix begins the APP2 segments of a JPEG that hold a profile (ICC.1:2022, annex B.4).
const iccPrefix = "ICC_PROFILE\x00"

// usableProfile returns the profile when it is one of RGB colours, else nil.
func usableProfile(profile []byte) []byte {
	if len(profile) < 128 || len(profile) > maxProfile || string(profile[16:20]) != "RGB " {
		return nil
	}
	return profile
}

// iccParts puts together a profile that is cut into the segments of a JPEG.
type iccParts struct {
	parts  [][]byte // by number, from 0; nil where one is missing
	size   int
	broken bool
}

// add takes what follows the prefix: the number of the part, from 1, how many there are, and the part.
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
	c.parts[b[0]-1] = bytes.Clone(b[2:])
	c.size += len(b) - 2
}

func (c *iccParts) fits(b []byte) bool {
	if len(b) < 2 || b[0] < 1 || b[0] > b[1] || c.size+len(b)-2 > maxProfile {
		return false
	}
	return c.parts == nil || len(c.parts) == int(b[1]) && c.parts[b[0]-1] == nil
}

// join returns the profile, nil when a part is missing.
func (c *iccParts) join() []byte {
	for _, part := range c.parts {
		if part == nil {
			return nil
		}
	}
	return slices.Concat(c.parts...)
}

// inflateProfile returns the profile in the data of an iCCP chunk (W3C PNG, section 11.3.2.3): a name, a zero byte,
// the method of compression, of which there is one, and the compressed profile.
func inflateProfile(data []byte) []byte {
	_, rest, ok := bytes.Cut(data, []byte{0})
	if !ok || len(rest) == 0 || rest[0] != 0 {
		return nil
	}
	z, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return nil
	}
	profile, err := io.ReadAll(io.LimitReader(z, maxProfile+1))
	if err != nil {
		return nil
	}
	return profile
}
