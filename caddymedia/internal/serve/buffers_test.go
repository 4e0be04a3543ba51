package serve

import (
	"bytes"
	"testing"
)

func TestBuffers(t *testing.T) {
	t.Parallel()
	b := newBuffers(smallItem + 4<<10)
	large, release, ok := b.take(smallItem)
	if !ok || len(large) != smallItem {
		t.Fatalf("%d bytes, %t", len(large), ok)
	}
	if _, _, ok := b.take(smallItem); ok {
		t.Error("there is more than the room")
	}
	little, releaseLittle, ok := b.take(10)
	if !ok || len(little) != 10 {
		t.Errorf("%d bytes, %t", len(little), ok)
	}
	if _, _, ok := b.take(smallItem + 1); ok {
		t.Error("a buffer beyond the largest")
	}
	release()
	releaseLittle()
	again, release, ok := b.take(smallItem)
	if !ok || !bytes.Equal(again[:0], large[:0]) {
		t.Error("no room after all was released")
	}
	release()
}
