package integration

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

const describedHead = len("media-test 0123456789 ") + 2*sha256.Size + 1

// described returns content that states its own size and bytes. So complete content can be
// distinguished from a part of it and from a mix.
func described(seed uint64, size int) []byte {
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

// whole checks that b is complete content of described.
func whole(b []byte) error {
	if len(b) == 0 {
		return errors.New("it is empty")
	}
	if len(b) < describedHead {
		if !bytes.Equal(b, described(0, len(b))) {
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

func TestDescribed(t *testing.T) {
	for _, size := range []int{1, describedHead - 1, describedHead, describedHead + 1, 5000} {
		b := described(1, size)
		if err := whole(b); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if whole(b[:size-1]) == nil {
			t.Errorf("%d bytes: a part passes for the whole", size)
		}
		mixed := bytes.Clone(b)
		mixed[size-1] ^= 1
		if whole(mixed) == nil {
			t.Errorf("%d bytes: a changed one passes", size)
		}
	}
}
