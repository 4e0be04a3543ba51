package guard_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddymedia/media/storagedrivers/guard"
)

// TestPanics: a panic is the error of its call, wherever it runs, and has its stack. Other errors
// stay as they are.
func TestPanics(t *testing.T) {
	t.Parallel()
	down, own := errors.New("down"), errors.New("own")
	inGroup := func(f func() error) error {
		group := guard.NewGroup(1)
		group.Go(f)
		return group.Wait()
	}
	inContext := func(f func() error) error {
		group, ctx := guard.WithContext(t.Context(), 2)
		group.Go(f)
		group.Go(func() error {
			<-ctx.Done()
			return nil
		})
		return group.Wait()
	}
	each := func(n int) func(f func() error) error {
		return func(f func() error) error {
			errs := guard.Each(n, 2, func(i int) error {
				if i == n-1 {
					return f()
				}
				return nil
			})
			return errs[n-1]
		}
	}
	for name, tt := range map[string]struct {
		call func(f func() error) error
		kind error
	}{
		"call":         {guard.Call, guard.ErrPanic},
		"call as":      {func(f func() error) error { return guard.CallAs(own, f) }, own},
		"group":        {inGroup, guard.ErrPanic},
		"with context": {inContext, guard.ErrPanic},
		"each of one":  {each(1), guard.ErrPanic},
		"each":         {each(5), guard.ErrPanic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.call(func() error { panic("crashed") })
			panicked, ok := errors.AsType[*guard.PanicError](err)
			if !errors.Is(err, tt.kind) || !ok || panicked.Value != "crashed" {
				t.Fatalf("a panic: %v", err)
			}
			if text := err.Error(); !strings.Contains(text, ": crashed\n") || !strings.Contains(text, "guard_test.go") {
				t.Errorf("said %s", text)
			}
			if err := tt.call(func() error { return down }); err != down { //nolint:errorlint // the same one
				t.Errorf("an error: %v", err)
			}
		})
	}
}

// TestGo: a panic in a goroutine is passed on, and only a panic.
func TestGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failed []error
		note := func(err error) { failed = append(failed, err) }
		guard.Go(func() {}, note)
		synctest.Wait()
		guard.Go(func() { panic("crashed") }, note)
		synctest.Wait()
		if len(failed) != 1 || !errors.Is(failed[0], guard.ErrPanic) {
			t.Errorf("failed %v", failed)
		}
	})
}
