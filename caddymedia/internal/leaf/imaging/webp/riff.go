package webp

import (
	"encoding/binary"
	"errors"
	"math"
)

// Identifiers and flags of the WebP container format
// (https://developers.google.com/speed/webp/docs/riff_container).
const (
	extendedID  = "VP8X"
	profileID   = "ICCP"
	lossyID     = "VP8 "
	losslessID  = "VP8L"
	chunkHeader = 8
	fileHeader  = 12

	hasAnimation = 0x02
	hasAlpha     = 0x10
	hasProfile   = 0x20
)

var (
	errFile     = errors.New("not the structure of a WebP file")
	errFileSize = errors.New("the file is larger than the 4 GiB that WebP can hold")
)

// chunk is a part of a file.
type chunk struct {
	id   string
	data []byte
}

// parse splits a file into chunks, which share its memory.
func parse(file []byte) ([]chunk, error) {
	if len(file) < fileHeader || string(file[:4]) != "RIFF" || string(file[8:fileHeader]) != "WEBP" {
		return nil, errFile
	}
	size := int64(binary.LittleEndian.Uint32(file[4:]))
	if size < 4 || size > int64(len(file))-chunkHeader {
		return nil, errFile
	}
	var chunks []chunk
	for rest := file[fileHeader : chunkHeader+size]; len(rest) > 0; {
		if len(rest) < chunkHeader {
			return nil, errFile
		}
		size := int64(binary.LittleEndian.Uint32(rest[4:]))
		if padded := size + size&1; padded > int64(len(rest))-chunkHeader {
			return nil, errFile
		}
		chunks = append(chunks, chunk{string(rest[:4]), rest[chunkHeader:][:size]})
		rest = rest[chunkHeader+size+size&1:]
	}
	return chunks, nil
}

// sizeOf returns the number of bytes of encoded chunks.
func sizeOf(chunks []chunk) int64 {
	var n int64
	for _, c := range chunks {
		size := int64(len(c.data))
		n += chunkHeader + size + size&1
	}
	return n
}

func appendChunks(b []byte, chunks []chunk) []byte {
	for _, c := range chunks {
		b = append(b, c.id...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c.data)))
		b = append(b, c.data...)
		if len(c.data)&1 != 0 {
			b = append(b, 0)
		}
	}
	return b
}

// assemble returns a file of chunks.
func assemble(chunks []chunk) ([]byte, error) {
	size := 4 + sizeOf(chunks)
	if size > math.MaxUint32-chunkHeader-1 {
		return nil, errFileSize
	}
	b := make([]byte, 0, chunkHeader+size)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = append(b, "WEBP"...)
	return appendChunks(b, chunks), nil
}

// withProfile returns the file with its ICC profile added or replaced.
func withProfile(file, profile []byte) ([]byte, error) {
	chunks, err := parse(file)
	if err != nil {
		return nil, err
	}
	head, err := extended(chunks)
	if err != nil {
		return nil, err
	}
	head[0] |= hasProfile
	out := []chunk{{extendedID, head}, {profileID, profile}}
	for _, c := range chunks {
		if c.id != extendedID && c.id != profileID {
			out = append(out, c)
		}
	}
	return assemble(out)
}

// extended returns the data of a VP8X chunk: a copy of the one in the file, or a new one for a
// simple file.
func extended(chunks []chunk) ([]byte, error) {
	if len(chunks) == 0 {
		return nil, errFile
	}
	switch c := chunks[0]; c.id {
	case extendedID:
		if len(c.data) != 10 {
			return nil, errFile
		}
		return append([]byte(nil), c.data...), nil
	case lossyID:
		// RFC 6386, section 9.1: a tag of 3 bytes, a start code, then two sides of 14 bits, each
		// with 2 bits of scale.
		if len(c.data) < 10 || string(c.data[3:6]) != "\x9d\x01\x2a" {
			return nil, errFile
		}
		width := int(binary.LittleEndian.Uint16(c.data[6:])) & 0x3FFF
		height := int(binary.LittleEndian.Uint16(c.data[8:])) & 0x3FFF
		if width == 0 || height == 0 {
			return nil, errFile
		}
		return extendedHead(0, width, height), nil
	case losslessID:
		// RFC 9649, section 3.4: a signature, then two sides less 1 of 14 bits each, then the alpha
		// flag.
		if len(c.data) < 5 || c.data[0] != 0x2F {
			return nil, errFile
		}
		bits := binary.LittleEndian.Uint32(c.data[1:])
		var flags byte
		if bits>>28&1 != 0 {
			flags = hasAlpha
		}
		return extendedHead(flags, int(bits&0x3FFF)+1, int(bits>>14&0x3FFF)+1), nil
	}
	return nil, errFile
}

func extendedHead(flags byte, width, height int) []byte {
	b := []byte{flags, 0, 0, 0}
	return appendUint24(appendUint24(b, width-1), height-1)
}

func appendUint24(b []byte, n int) []byte { return append(b, byte(n), byte(n>>8), byte(n>>16)) }
