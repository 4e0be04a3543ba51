package cache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	// chunkSize is the number of payload bytes that share a checksum.
	chunkSize = 64 << 10
	// frameSize is the size of a chunk with its checksum.
	frameSize = chunkSize + 4
	// entrySize is the size of a journal entry: identity, offset, length, checksum.
	entrySize = 32
	// unit is the alignment of records, so that a position fits in 64 bits.
	unit = 64
	// maxPayload is the largest record.
	maxPayload = 16 << 20
	// maxSegment is the largest segment.
	maxSegment = 1 << 30
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errDamaged = errors.New("damaged record")
)

// identity names a record. It is a part of a SHA-256.
type identity [16]byte

// short returns the key of the index.
func (id identity) short() uint64 { return binary.LittleEndian.Uint64(id[:]) }

// sum returns the checksum of a chunk. It covers the identity and the position, so that a chunk of
// another record is no valid one.
func (id identity) sum(length, number int, chunk []byte) uint32 {
	var b [24]byte
	copy(b[:], id[:])
	binary.LittleEndian.PutUint32(b[16:], uint32(length))
	binary.LittleEndian.PutUint32(b[20:], uint32(number))
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, chunk)
}

// chunks returns the number of chunks of a payload.
func chunks(length int) int { return (length + chunkSize - 1) / chunkSize }

// framed returns the size of a payload with its checksums.
func framed(length int) int64 { return int64(length) + 4*int64(chunks(length)) }

// aligned returns the size of a file up to the next record.
func aligned(size int64) int64 { return (size + unit - 1) / unit * unit }

// position is the value of the index: the segment's slot (15 bits), the offset in units (24), the
// length less one (24), and whether the record was read since it was written (1).
type position uint64

const (
	slots             = 1 << 15
	wasRead  position = 1
	fieldLen          = 24
)

func newPosition(number, offset int64, length int) position {
	return position(number%slots)<<(2*fieldLen+1) | position(offset/unit)<<(fieldLen+1) | position(length-1)<<1
}

func (p position) slot() int64   { return int64(p >> (2*fieldLen + 1)) }
func (p position) offset() int64 { return int64(p>>(fieldLen+1)&(1<<fieldLen-1)) * unit }
func (p position) length() int   { return int(p>>1&(1<<fieldLen-1)) + 1 }

// same reports whether two positions are of the same record.
func (p position) same(other position) bool { return p|wasRead == other|wasRead }

// entry is an entry of a journal. It describes a record of the segment, or the removal of one if
// its length is 0.
type entry struct {
	id     identity
	offset int64
	length int
}

// encode returns the bytes of an entry. Its checksum covers the number of the segment.
func (e entry) encode(number int64) [entrySize]byte {
	var b [entrySize]byte
	copy(b[:], e.id[:])
	binary.LittleEndian.PutUint64(b[16:], uint64(e.offset))
	binary.LittleEndian.PutUint32(b[24:], uint32(e.length))
	binary.LittleEndian.PutUint32(b[28:], entrySum(number, b[:28]))
	return b
}

func entrySum(number int64, b []byte) uint32 {
	return crc32.Update(crc32.Checksum(binary.LittleEndian.AppendUint64(nil, uint64(number)), castagnoli), castagnoli, b)
}

// segment is a data file with its journal.
type segment struct {
	number  int64
	data    *os.File
	journal *os.File
	end     int64 // of data, aligned
	entries int64

	// using is shared while data is read. A removed segment is deleted after its last reader.
	using sync.RWMutex
}

func dataName(number int64) string    { return fmt.Sprintf("%08d.data", number) }
func journalName(number int64) string { return fmt.Sprintf("%08d.log", number) }

// openSegment opens or creates the files of a segment.
func openSegment(folder string, number int64) (*segment, error) {
	s := &segment{number: number}
	var err error
	if s.data, err = os.OpenFile(filepath.Join(folder, dataName(number)), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	s.journal, err = os.OpenFile(filepath.Join(folder, journalName(number)), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = s.measure()
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// measure sets the sizes. A torn tail counts, and new records follow it.
func (s *segment) measure() error {
	data, err := s.data.Stat()
	if err != nil {
		return err
	}
	journal, err := s.journal.Stat()
	if err != nil {
		return err
	}
	s.end, s.entries = aligned(data.Size()), (journal.Size()+entrySize-1)/entrySize
	return nil
}

// size returns the largest size of both files.
func (s *segment) size() int64 { return s.end + s.entries*entrySize }

// each calls f for the valid entries in their order. It returns the number of invalid ones, without
// a torn tail.
func (s *segment) each(f func(entry)) (damaged int, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(s.journal, 0, s.entries*entrySize), chunkSize)
	var b [entrySize]byte
	seed := crc32.Checksum(binary.LittleEndian.AppendUint64(nil, uint64(s.number)), castagnoli)
	for {
		switch _, err := io.ReadFull(r, b[:]); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return damaged, nil
		case err != nil:
			return damaged, err
		}
		e := entry{identity(b[:16]), int64(binary.LittleEndian.Uint64(b[16:])), int(binary.LittleEndian.Uint32(b[24:]))}
		valid := binary.LittleEndian.Uint32(b[28:]) == crc32.Update(seed, castagnoli, b[:28]) &&
			e.length <= maxPayload && e.offset >= 0 && e.offset%unit == 0 && e.offset < maxSegment
		if !valid {
			damaged++
			continue
		}
		f(e)
	}
}

// frame reads a chunk with its checksum into buf, which has frameSize bytes.
func (s *segment) frame(e entry, number int, buf []byte) ([]byte, error) {
	n := min(chunkSize, e.length-number*chunkSize)
	if n <= 0 {
		return nil, errDamaged
	}
	buf = buf[:n+4]
	if _, err := s.data.ReadAt(buf, e.offset+int64(number)*frameSize); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if binary.LittleEndian.Uint32(buf[n:]) != e.id.sum(e.length, number, buf[:n]) {
		return nil, errDamaged
	}
	return buf, nil
}

// add appends a record of length bytes, whose chunks with checksums are those of frame, or the
// removal of one if length is 0. If it fails, nothing is added.
func (s *segment) add(id identity, length int, frame func(number int) ([]byte, error)) (position, error) {
	e := entry{id, s.end, length}
	write := func() error {
		for i := range chunks(length) {
			b, err := frame(i)
			if err != nil {
				return err
			}
			if _, err = s.data.WriteAt(b, s.end+int64(i)*frameSize); err != nil {
				return err
			}
		}
		b := e.encode(s.number)
		_, err := s.journal.WriteAt(b[:], s.entries*entrySize)
		return err
	}
	if err := write(); err != nil {
		return 0, errors.Join(err, s.data.Truncate(s.end), s.journal.Truncate(s.entries*entrySize))
	}
	s.end += aligned(framed(length))
	s.entries++
	if length == 0 {
		return 0, nil
	}
	return newPosition(s.number, e.offset, length), nil
}

// close closes the files after their last reader.
func (s *segment) close() error {
	s.using.Lock()
	defer s.using.Unlock()
	var err error
	for _, file := range []*os.File{s.data, s.journal} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// remove closes and deletes the files.
func (s *segment) remove() error {
	err := s.close()
	for _, file := range []*os.File{s.data, s.journal} {
		if e := os.Remove(file.Name()); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
