package sample

import (
	"bytes"
	"testing"
)

func TestDescribed(t *testing.T) {
	for _, size := range []int{1, describedHead - 1, describedHead, describedHead + 1, 5000} {
		b := Described(1, size)
		if err := Verify(b); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if Verify(b[:size-1]) == nil {
			t.Errorf("%d bytes: a part passes for the whole", size)
		}
		mixed := bytes.Clone(b)
		mixed[size-1] ^= 1
		if Verify(mixed) == nil {
			t.Errorf("%d bytes: a changed one passes", size)
		}
	}
}
