package cache

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// chunkSize is the number of payload bytes that share a checksum.
	chunkSize = 64 << 10
	// frameSize is the size of a chunk with its checksum.
	frameSize = chunkSize + 4
	// maxPayload is the largest payload of a file.
	maxPayload = 16 << 20

	// allocation is the unit in which file systems allocate, and nameSize a bound of what the name of
	// a file takes of its folder.
	allocation = 4 << 10
	nameSize   = 128

	// subfolders are the first characters of the names in them. A folder of all files would be slow.
	subfolders = "0123456789abcdef"
	// unfinishedName is the name of the file that is being written.
	unfinishedName = "unfinished"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errDamaged = errors.New("damaged block")
)

// identity names a payload. It is a part of a SHA-256.
type identity [16]byte

// sum returns the checksum of a chunk. It covers the identity, the length of the payload and the
// position, so that a chunk of another file is no valid one. No other header is needed.
func (id identity) sum(length, number int, chunk []byte) uint32 {
	var b [24]byte
	copy(b[:], id[:])
	binary.LittleEndian.PutUint32(b[16:], uint32(length))
	binary.LittleEndian.PutUint32(b[20:], uint32(number))
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, chunk)
}

// sizeOnDisk returns the largest number of bytes that the file of a payload takes.
func sizeOnDisk(length int) int64 {
	chunks := (length + chunkSize - 1) / chunkSize
	file := int64(length + 4*chunks)
	return (file+allocation-1)/allocation*allocation + nameSize
}

// fileName returns the name of a file. It has all that the index needs.
func fileName(id identity, length int) string {
	name := append(hex.AppendEncode(nil, id[:]), '-')
	return string(strconv.AppendInt(name, int64(length), 10))
}

// parseName reverses fileName. It reports false for names that fileName does not return.
func parseName(name string) (id identity, length int, ok bool) {
	hash, size, _ := strings.Cut(name, "-")
	if len(hash) != hex.EncodedLen(len(id)) {
		return id, 0, false
	}
	if _, err := hex.Decode(id[:], []byte(hash)); err != nil {
		return id, 0, false
	}
	length, err := strconv.Atoi(size)
	return id, length, err == nil && length > 0 && length <= maxPayload && name == fileName(id, length)
}

// path returns the path of a file.
func (s *Store) path(id identity, length int) string {
	name := fileName(id, length)
	return filepath.Join(s.folder, name[:1], name)
}

// writeFile writes a payload with its checksums to a new file.
func (s *Store) writeFile(path string, id identity, payload []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for number := 0; number*chunkSize < len(payload) && err == nil; number++ {
		chunk := payload[number*chunkSize : min((number+1)*chunkSize, len(payload))]
		frame := append(s.scratch[:0], chunk...)
		_, err = file.Write(binary.LittleEndian.AppendUint32(frame, id.sum(len(payload), number, chunk)))
	}
	return errors.Join(err, file.Close())
}

// readChunk reads a chunk into buf, which has frameSize bytes, and verifies it.
func readChunk(file *os.File, id identity, length, number int, buf []byte) ([]byte, error) {
	n := min(chunkSize, length-number*chunkSize)
	if n <= 0 {
		return nil, errDamaged
	}
	if _, err := file.ReadAt(buf[:n+4], int64(number)*frameSize); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if binary.LittleEndian.Uint32(buf[n:]) != id.sum(length, number, buf[:n]) {
		return nil, errDamaged
	}
	return buf[:n], nil
}
