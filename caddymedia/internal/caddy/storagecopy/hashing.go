package storagecopy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"

	"github.com/caddymedia/media/storagedrivers"
)

// hashing reads a source that may be rewound, and hashes each byte once.
type hashing struct {
	source io.ReadSeeker
	hash   hash.Hash
	at     int64       // of the next Read
	hashed int64       // bytes from the start
	count  func(int64) // is called with the number of new bytes
}

func newHashing(source io.ReadSeeker, count func(int64)) *hashing {
	return &hashing{source: source, hash: sha256.New(), count: count}
}

// Read reads from the source.
func (h *hashing) Read(p []byte) (int, error) {
	n, err := h.source.Read(p)
	end := h.at + int64(n)
	if h.at <= h.hashed && h.hashed < end {
		h.hash.Write(p[h.hashed-h.at : n])
		h.count(end - h.hashed)
		h.hashed = end
	}
	h.at = end
	return n, err
}

// Seek sets the offset of the next Read.
func (h *hashing) Seek(offset int64, whence int) (int64, error) {
	at, err := h.source.Seek(offset, whence)
	if err == nil {
		h.at = at
	}
	return at, err
}

// sum reads the remaining bytes and returns the checksum of the whole.
func (h *hashing) sum() (string, error) {
	if _, err := h.Seek(h.hashed, io.SeekStart); err != nil {
		return "", err
	}
	if err := drain(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.hash.Sum(nil)), nil
}

const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// drain reads to the end.
func drain(r io.Reader) error {
	buffer := buffers.Get().(*[bufferSize]byte) // what the pool holds
	defer buffers.Put(buffer)
	for {
		if _, err := r.Read(buffer[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// sumOf reads an object to its end and returns its info and its checksum.
func sumOf(
	ctx context.Context, s *storagedrivers.Storage, key string, count func(int64),
) (info storagedrivers.Info, sum string, err error) {
	object, err := s.OpenSeeker(ctx, key)
	if err != nil {
		return storagedrivers.Info{}, "", err
	}
	h := newHashing(object, count)
	sum, err = h.sum()
	if err = errors.Join(err, object.Close()); err != nil {
		return storagedrivers.Info{}, "", err
	}
	if h.hashed != object.Info.Size {
		return storagedrivers.Info{}, "", storagedrivers.ErrSizeMismatch
	}
	return object.Info, sum, nil
}
