package queue

import "testing"

func TestPool(t *testing.T) {
	t.Parallel()
	p := NewPool(12)
	for _, c := range []struct {
		owner string
		want  int
	}{{"a", 6}, {"b", 3}, {"c", 1}, {"d", 1}} {
		n := 0
		for p.Acquire(c.owner, 1) {
			n++
		}
		if n != c.want {
			t.Errorf("%s got %d, want %d", c.owner, n, c.want)
		}
	}
	for owner, n := range map[string]int64{"a": 6, "b": 3, "c": 1, "d": 1} {
		p.Release(owner, n)
	}
	if p.Used() != 0 || len(p.held) != 0 {
		t.Errorf("%d are lent to %d owners in the end", p.Used(), len(p.held))
	}
	if p.Acquire("a", 7) || !p.Acquire("a", 6) {
		t.Error("one owner may take a half, and no more")
	}
}

// TestPoolWithin: an owner leaves capacity to others, whatever its own limit is.
func TestPoolWithin(t *testing.T) {
	t.Parallel()
	p := NewPool(8)
	take := func(owner string, limit int64, want int) {
		t.Helper()
		n := 0
		for p.AcquireWithin(owner, 1, limit) {
			n++
		}
		if n != want {
			t.Errorf("%s took %d, want %d", owner, n, want)
		}
	}
	take("greedy", 100, 4)
	take("modest", 1, 1)
	take("late", 100, 1)
	p.Release("greedy", 4)
	take("greedy", 3, 3)
	p.Release("greedy", 3)
	p.Release("modest", 1)
	p.Release("late", 1)
	if len(p.held) != 0 || p.Used() != 0 {
		t.Errorf("left: %v, %d used", p.held, p.Used())
	}
}
