package imaging

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

const (
	// maxICCPart is the most of a profile in one segment of a JPEG: 65,535 bytes less the length of
	// the segment, the prefix, and the two numbers of the part.
	maxICCPart = 65_535 - 2 - len(iccPrefix) - 2
	// pngHeader is the size of the signature and the IHDR chunk, which begin every PNG.
	pngHeader = len(pngSignature) + 8 + 13 + 4
)

// WithProfile returns a JPEG or PNG file without a profile, as the encoders of the standard library
// write it, with an ICC profile of at most 64 KiB. Without a profile it returns the file itself.
func WithProfile(file []byte, format Format, profile []byte) ([]byte, error) {
	if len(profile) == 0 {
		return file, nil
	}
	switch {
	case format == JPEG && len(file) > 2:
		return slices.Insert(file, 2, jpegProfile(profile)...), nil // after SOI
	case format == PNG && len(file) > pngHeader:
		return slices.Insert(file, pngHeader, pngProfile(profile)...), nil
	}
	return nil, fmt.Errorf("a %s of %d bytes cannot hold a colour profile", format, len(file))
}

// jpegProfile returns the APP2 segments of a profile (ICC.1:2022, annex B.4).
func jpegProfile(profile []byte) []byte {
	parts := slices.Collect(slices.Chunk(profile, maxICCPart))
	var b []byte
	for i, part := range parts {
		b = append(b, 0xFF, jpegAPP0+2)
		b = binary.BigEndian.AppendUint16(b, uint16(2+len(iccPrefix)+2+len(part)))
		b = append(b, iccPrefix...)
		b = append(b, byte(i+1), byte(len(parts)))
		b = append(b, part...)
	}
	return b
}

// pngProfile returns the iCCP chunk of a profile (W3C PNG, section 11.3.2.3).
func pngProfile(profile []byte) []byte {
	var data bytes.Buffer
	data.WriteString("iCCPicc\x00\x00") // the type of the chunk, a name, the compression method
	z := zlib.NewWriter(&data)
	_, _ = z.Write(profile) // a bytes.Buffer takes everything
	_ = z.Close()
	b := binary.BigEndian.AppendUint32(nil, uint32(data.Len()-len("iCCP")))
	b = append(b, data.Bytes()...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(data.Bytes()))
}
