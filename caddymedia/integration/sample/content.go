package sample

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
)

const describedHead = len("media-test 0123456789 ") + 2*sha256.Size + 1

// Described returns content that states its own size and bytes. So complete content can be
// distinguished from a part of it and from a mix.
func Described(seed uint64, size int) []byte {
	b := make([]byte, size)
	if size < describedHead {
		for i := range b {
			b[i] = '!' + byte(size)
		}
		return b
	}
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	source := rand.NewChaCha8(key)
	_, _ = source.Read(b[describedHead:]) // it never fails
	copy(b, fmt.Sprintf("media-test %010d %x\n", size, sha256.Sum256(b[describedHead:])))
	return b
}

// Verify checks that b is complete content of Described.
func Verify(b []byte) error {
	if len(b) == 0 {
		return errors.New("it is empty")
	}
	if len(b) < describedHead {
		if !bytes.Equal(b, Described(0, len(b))) {
			return fmt.Errorf("no small content of %d bytes: %.20q", len(b), b)
		}
		return nil
	}
	head := fmt.Sprintf("media-test %010d %x\n", len(b), sha256.Sum256(b[describedHead:]))
	if string(b[:describedHead]) != head {
		return fmt.Errorf("it is %d bytes and begins with %q, which should be %q", len(b), b[:describedHead], head)
	}
	return nil
}
