package storagedrivers_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// copying returns a stub whose copies fail with errs, each one once.
func copying(errs []error) *stub {
	d := &stub{Driver: memory.New()}
	d.Fail = func(op, _ string) error {
		if op != "copy" || len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
	return d
}

// TestStageCopy: a commit copies within the backend, with repetitions, or stores bytes that were read.
func TestStageCopy(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789abcdef", 5<<12) // 320 KiB
	for name, tt := range map[string]struct {
		read     int
		errs     []error
		observed []string
		err      error
	}{
		"unread":      {0, nil, []string{"copy"}, nil},
		"head":        {10, nil, []string{"open", "copy"}, nil},
		"all":         {len(content), nil, []string{"open", "open", "copy"}, nil},
		"repeated":    {0, []error{storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable}, []string{"copy"}, nil},
		"unsupported": {0, []error{errors.ErrUnsupported}, []string{"copy"}, errors.ErrUnsupported},
		"head, then unsupported": {
			10, []error{errors.ErrUnsupported}, []string{"open", "copy"}, errors.ErrUnsupported,
		},
		"all, then unsupported": {
			len(content), []error{errors.ErrUnsupported, io.ErrClosedPipe}, []string{"open", "open", "copy", "commit"}, nil,
		},
		"changed": {0, []error{storagedrivers.ErrChanged}, []string{"copy"}, storagedrivers.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
				var observed []string
				s := open(t, copying(tt.errs), storagedrivers.Options{
					Observe: func(op string, _ time.Duration, _ error) { observed = append(observed, op) },
				})
				put(t, s, "source", content)
				source, err := s.Stat(t.Context(), "source")
				test.Is(t, err, nil)
				observed = nil
				staged, err := s.StageCopy(t.Context(), source)
				test.Is(t, err, nil)
				got := make([]byte, tt.read)
				if _, err := io.ReadFull(staged, got); err != nil || string(got) != content[:tt.read] {
					t.Errorf("read %d bytes, error %v", len(got), err)
				}
				test.Is(t, commit(t.Context(), s, staged, "key", opts), tt.err)
				test.Same(t, observed, tt.observed, "observed")
				test.Is(t, staged.Close(), nil)
				if tt.err == nil {
					has(t, s, "key", content)
				}
			}
		})
	}
}

// TestStageCopyRefused: a driver that does not copy, an invalid key and a closed storage.
func TestStageCopyRefused(t *testing.T) {
	t.Parallel()
	without := open(t, &stub{Driver: memory.New(), features: &storagedrivers.Features{}}, storagedrivers.Options{})
	_, err := without.StageCopy(t.Context(), storagedrivers.Info{Key: "key"})
	test.Is(t, err, errors.ErrUnsupported)
	s := storagedrivers.New("test", memory.New(), storagedrivers.Options{})
	_, err = s.StageCopy(t.Context(), storagedrivers.Info{Key: "../key"})
	test.Is(t, err, storagedrivers.ErrInvalidKey)
	put(t, s, "source", "text")
	source, err := s.Stat(t.Context(), "source")
	test.Is(t, err, nil)
	staged, err := s.StageCopy(t.Context(), source)
	test.Is(t, err, nil)
	_, err = io.WriteString(staged, "more")
	test.Is(t, err, errors.ErrUnsupported)
	test.Is(t, s.Close(), nil)
	test.Is(t, commit(t.Context(), s, staged, "key", create), nil) // the staged object has a reference
	_, err = s.StageCopy(t.Context(), source)
	test.Is(t, err, storagedrivers.ErrClosed)
	test.Is(t, staged.Close(), nil)
}

// TestStageCopyTogether: a copy and another object are stored together, or neither is.
func TestStageCopyTogether(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		d := memory.New()
		s := open(t, d, storagedrivers.Options{})
		put(t, s, "source", "text")
		source, err := s.Stat(t.Context(), "source")
		test.Is(t, err, nil)
		d.Fail = func(op, key string) error {
			if fails && op == "put" && key == "variant" {
				return io.ErrClosedPipe
			}
			return nil
		}
		staged, err := s.StageCopy(t.Context(), source)
		test.Is(t, err, nil)
		variant := stage(t, s, "variant")
		_, err = s.Commit(t.Context(), storagedrivers.Change{Staged: staged, Key: "key", Options: create},
			storagedrivers.Change{Staged: variant, Key: "variant", Options: overwrite, Follows: true})
		test.Is(t, staged.Close(), nil)
		test.Is(t, variant.Close(), nil)
		if !fails {
			test.Is(t, err, nil)
			has(t, s, "key", "text")
			continue
		}
		test.Is(t, err, io.ErrClosedPipe)
		page, err := s.List(t.Context(), storagedrivers.ListOptions{})
		if err != nil || len(page.Objects) != 1 {
			t.Errorf("stored %v, error %v", page.Objects, err)
		}
	}
}
