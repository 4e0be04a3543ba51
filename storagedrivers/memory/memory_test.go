package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for _, repeats := range []bool{false, true} {
		t.Run(fmt.Sprint("repeats ", repeats), func(t *testing.T) { testConformance(t, repeats) })
	}
}

func testConformance(t *testing.T, repeats bool) {
	t.Helper()
	var buckets sync.Map // by test
	at := func(t *testing.T) *bucket {
		p, ok := buckets.Load(t)
		if !ok {
			t.Fatal("no bucket was created for this test")
		}
		return p.(*bucket)
	}
	drivertest.Run(t, drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			d := New()
			d.Repeats = repeats
			buckets.Store(t, d.bucket)
			t.Cleanup(func() { buckets.Delete(t) })
			return d
		},
		Another: func(t *testing.T) storagedrivers.Driver {
			d := on(at(t))
			d.Repeats = repeats
			return d
		},
		Leftovers: func(t *testing.T) []string {
			p := at(t)
			p.mu.RLock()
			defer p.mu.RUnlock()
			return slices.Collect(maps.Keys(p.objects))
		},
		MaxMemory: 512 << 20, // the objects are in it
	})
}

func TestFail(t *testing.T) {
	t.Parallel()
	var ops []string
	broken := errors.New("broken")
	d := New()
	d.Fail = func(op, key string) error {
		ops = append(ops, op+" "+key)
		return broken
	}
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	ctx := t.Context()
	_, putErr := s.Put(ctx, "key", strings.NewReader("x"), storagedrivers.PutOptions{})
	_, _, openErr := s.Open(ctx, "key", storagedrivers.Range{})
	_, statErr := s.Stat(ctx, "key")
	_, listErr := s.List(ctx, storagedrivers.ListOptions{Prefix: "prefix"})
	for op, err := range map[string]error{
		"put": putErr, "open": openErr, "stat": statErr, "list": listErr,
	} {
		test.Is(t, err, broken, op)
	}
	test.Is(t, s.Delete(ctx, "key"), broken, "delete")
	test.Is(t, s.Check(ctx), broken, "check")
	want := []string{"put key", "open key", "stat key", "list prefix", "delete key", "check "}
	test.Same(t, ops, want)
}
