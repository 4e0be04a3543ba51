package mediaapp

import "testing"

// TestUploadsShareConnections: an account leaves something to the others, whatever its own limit is.
func TestUploadsShareConnections(t *testing.T) {
	t.Parallel()
	u := newUploadCounts(8)
	begin := func(owner string, limit, want int) {
		t.Helper()
		n := 0
		for u.begin(owner, limit) {
			n++
		}
		if n != want {
			t.Errorf("%s began %d uploads, want %d", owner, n, want)
		}
	}
	begin("greedy", 100, 4)
	begin("modest", 1, 1)
	begin("late", 100, 1)
	for range 4 {
		u.end("greedy")
	}
	begin("greedy", 3, 3)
	for range 3 {
		u.end("greedy")
	}
	u.end("modest")
	u.end("late")
	if len(u.by) != 0 || u.shares.Used() != 0 {
		t.Errorf("left: %v and %d shares", u.by, u.shares.Used())
	}
}
