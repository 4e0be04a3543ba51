package storagedrivers_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// commit commits staged data of s under key.
func commit(
	ctx context.Context, s *storagedrivers.Storage, staged storagedrivers.Staged, key string, opts storagedrivers.PutOptions,
) error {
	_, err := s.Commit(ctx, storagedrivers.Change{Staged: staged, Key: key, Options: opts})
	return err
}

// commitText stages text and commits it under key.
func commitText(
	ctx context.Context, t *testing.T, s *storagedrivers.Storage, key, text string, opts storagedrivers.PutOptions,
) error {
	t.Helper()
	staged, err := s.Stage(ctx)
	test.Must(t, err)
	_, err = io.WriteString(staged, text)
	test.Must(t, err)
	err = commit(ctx, s, staged, key, opts)
	test.Is(t, staged.Close(), nil)
	return err
}

// commitTwo commits "text" under "key" and then "z". It returns the CommitError.
func commitTwo(t *testing.T, s *storagedrivers.Storage, opts storagedrivers.PutOptions) *storagedrivers.CommitError {
	t.Helper()
	first, last := stage(t, s, "text"), stage(t, s, "last")
	_, err := s.Commit(t.Context(), storagedrivers.Change{Staged: first, Key: "key", Options: opts},
		storagedrivers.Change{Staged: last, Key: "z", Options: overwrite, Follows: true}, storagedrivers.Change{Key: "removed"})
	test.Is(t, first.Close(), nil)
	test.Is(t, last.Close(), nil)
	failed, ok := errors.AsType[*storagedrivers.CommitError](err)
	if !ok {
		t.Fatalf("error %v, want a CommitError", err)
	}
	return failed
}

// TestCommitForeign: a storage refuses the staged data of another one.
func TestCommitForeign(t *testing.T) {
	t.Parallel()
	one, other := open(t, memory.New(), storagedrivers.Options{}), open(t, memory.New(), storagedrivers.Options{})
	staged := stage(t, other, "text")
	test.Fails(t, commit(t.Context(), one, staged, "key", create), "committed")
	test.Is(t, commit(t.Context(), other, staged, "key", create), nil)
	test.Is(t, staged.Close(), nil)
	has(t, other, "key", "text")
}

// shortened is a driver that commits less than was staged.
type shortened struct {
	storagedrivers.Driver
	storagedrivers.Stager
}

type discarded struct{ *strings.Reader }

func (discarded) Write(p []byte) (int, error) { return len(p), nil }

func (discarded) Close() error { return nil }

func (shortened) Stage(context.Context) (storagedrivers.Staged, error) {
	return discarded{strings.NewReader("")}, nil
}

func (shortened) Commit(_ context.Context, changes []storagedrivers.Change) ([]storagedrivers.Info, error) {
	return make([]storagedrivers.Info, len(changes)), nil
}

// TestCommitShortened: an object with another size than was staged is an error, and may stay.
func TestCommitShortened(t *testing.T) {
	t.Parallel()
	s := open(t, shortened{Driver: memory.New()}, storagedrivers.Options{})
	staged := stage(t, s, "text")
	err := commit(t.Context(), s, staged, "key", create)
	test.Is(t, staged.Close(), nil)
	failed, ok := errors.AsType[*storagedrivers.CommitError](err)
	if !ok || !errors.Is(err, storagedrivers.ErrSizeMismatch) || !slices.Equal(failed.Stored, []int{0}) {
		t.Errorf("error %v", err)
	}
}

// TestCommitUndone: an object that existed before, or was stored after its commit, is never
// removed.
func TestCommitUndone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		before, after string // what others store
		opts          storagedrivers.PutOptions
		replaced      []int
		left          string
	}{
		{"created", "", "", create, nil, ""},
		{"created by overwrite", "", "", overwrite, nil, ""},
		{"replaced", "before", "", overwrite, []int{0}, "text"},
		{"created, then replaced", "", "late", create, nil, "late"},
		{"replaced, then replaced", "before", "late", overwrite, []int{0}, "late"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := memory.New()
			s := open(t, d, storagedrivers.Options{})
			put(t, s, "removed", "old")
			if tt.before != "" {
				put(t, s, "key", tt.before)
			}
			d.Fail = func(op, key string) error {
				if op != "put" || key != "z" {
					return nil
				}
				if tt.after != "" {
					put(t, s, "key", tt.after)
				}
				return fs.ErrPermission
			}
			failed := commitTwo(t, s, tt.opts)
			test.Is(t, failed, fs.ErrPermission)
			if failed.Index != 1 || !slices.Equal(failed.Replaced, tt.replaced) || failed.Stored != nil {
				t.Errorf("got %+v", failed)
			}
			has(t, s, "removed", "old")
			if tt.left != "" {
				has(t, s, "key", tt.left)
				return
			}
			missing(t, s, "key")
		})
	}
}

// TestCommitUndoneUntagged: an object of another writer stays, also if the backend has no entity
// tags.
func TestCommitUndoneUntagged(t *testing.T) {
	t.Parallel()
	d := memory.New()
	s := open(t, untagged{d}, storagedrivers.Options{})
	d.Fail = func(op, key string) error {
		if op != "put" || key != "z" {
			return nil
		}
		put(t, s, "key", "late")
		return fs.ErrPermission
	}
	test.Is(t, commitTwo(t, s, create), fs.ErrPermission)
	has(t, s, "key", "late")
}

// untagged is a driver without entity tags.
type untagged struct{ storagedrivers.Driver }

func (u untagged) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	info, err := u.Driver.Put(ctx, key, r, opts)
	info.ETag = ""
	return info, err
}

func (u untagged) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := u.Driver.Stat(ctx, key)
	info.ETag = ""
	return info, err
}

// TestCommitWithoutLease: a commit that fails after its lease is lost leaves its objects, because
// others may have taken them for their own.
func TestCommitWithoutLease(t *testing.T) {
	t.Parallel()
	for lostAt, want := range map[string][]int{"put": {0}, "stat": {0}, "delete": nil} {
		t.Run(lostAt, func(t *testing.T) {
			t.Parallel()
			d := memory.New()
			s, failing, isLost := open(t, d, storagedrivers.Options{}), false, false
			d.Fail = func(op, key string) error {
				failing = failing || op == "put" && key == "z"
				isLost = isLost || failing && op == lostAt
				if op == "put" && key == "z" {
					return fs.ErrPermission
				}
				return nil
			}
			_, err := s.Commit(storagedrivers.WithLease(t.Context(), func() bool { return isLost }),
				storagedrivers.Change{Staged: stage(t, s, "text"), Key: "key", Options: create},
				storagedrivers.Change{Staged: stage(t, s, "text"), Key: "z", Options: overwrite}) // in another step
			failed, ok := errors.AsType[*storagedrivers.CommitError](err)
			if !ok || !errors.Is(err, fs.ErrPermission) || !slices.Equal(failed.Stored, want) {
				t.Fatalf("got %+v", err)
			}
			if _, err := s.Stat(t.Context(), "key"); (err == nil) != (want != nil) {
				t.Errorf("the object: %v", err)
			}
		})
	}
}

func TestCommitCannotBeUndone(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"stat", "delete"} {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			d := memory.New()
			broken := false
			d.Fail = func(op, key string) error {
				if op == "put" && key == "z" {
					broken = true
					return storagedrivers.ErrNoSpace
				}
				if broken && op == failing {
					return fs.ErrPermission
				}
				return nil
			}
			failed := commitTwo(t, open(t, d, storagedrivers.Options{}), create)
			test.Is(t, failed.Err, storagedrivers.ErrNoSpace)
			test.Is(t, failed.Undo, fs.ErrPermission)
			if !slices.Equal(failed.Stored, []int{0}) || failed.Replaced != nil {
				t.Errorf("got %+v", failed)
			}
		})
	}
}

// TestRemovalFails: removals come last, so that a failed one leaves no created object. Those before
// it stay.
func TestRemovalFails(t *testing.T) {
	t.Parallel()
	d := memory.New()
	s := open(t, d, storagedrivers.Options{})
	put(t, s, "a", "a")
	put(t, s, "b", "b")
	d.Fail = func(op, key string) error {
		if op == "delete" && key == "b" {
			return fs.ErrPermission
		}
		return nil
	}
	staged := stage(t, s, "text")
	_, err := s.Commit(t.Context(), storagedrivers.Change{Key: "a"}, storagedrivers.Change{Key: "b"},
		storagedrivers.Change{Staged: staged, Key: "key"})
	test.Is(t, staged.Close(), nil)
	test.Is(t, err, fs.ErrPermission)
	if failed, ok := errors.AsType[*storagedrivers.CommitError](err); !ok || failed.Index != 1 || !slices.Equal(failed.Replaced, []int{0}) {
		t.Errorf("got %+v", failed)
	}
	has(t, s, "b", "b")
	for _, key := range []string{"a", "key"} {
		missing(t, s, key)
	}
}

// TestCommitUndoneAfterLostAnswers: an object of an attempt whose reply was lost does not count as
// one that existed before, and is removed.
func TestCommitUndoneAfterLostAnswers(t *testing.T) {
	t.Parallel()
	for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
		synctest.Test(t, func(t *testing.T) {
			d := &stub{Driver: memory.New()}
			lost := map[string]bool{}
			lose := func(op string, err error) error {
				if lost[op] {
					return err
				}
				lost[op] = true
				return errors.Join(storagedrivers.ErrUnavailable, err)
			}
			d.put = func(
				ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
			) (storagedrivers.Info, error) {
				if key == "z" {
					return storagedrivers.Info{}, fs.ErrPermission
				}
				info, err := d.Driver.Put(ctx, key, r, opts)
				if opts.Mode == storagedrivers.Overwrite { // it would not know its own object
					err = lose("put", err)
				}
				return info, err
			}
			d.remove = func(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
				return lose("delete", d.Driver.Delete(ctx, key, opts))
			}
			s := open(t, d, storagedrivers.Options{})
			test.Is(t, commitTwo(t, s, opts), fs.ErrPermission)
			missing(t, s, "key")
		})
	}
}

// TestRemovalReplyLost: a removal is repeated after its reply was lost, by a backend that reports a
// missing object as another one.
func TestRemovalReplyLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		theirs string // stored meanwhile
		err    error
	}{"missing": {"", nil}, "replaced": {"theirs", storagedrivers.ErrChanged}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, lost := &stub{Driver: memory.New()}, false
				s := open(t, d, storagedrivers.Options{})
				put(t, s, "key", "text")
				info, err := s.Stat(t.Context(), "key")
				test.Is(t, err, nil)
				d.remove = func(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
					err := d.Driver.Delete(ctx, key, opts)
					switch {
					case !lost:
						test.Is(t, err, nil)
						if lost = true; tt.theirs != "" {
							_, err = d.Put(ctx, key, strings.NewReader(tt.theirs), overwrite)
							test.Is(t, err, nil)
						}
						return storagedrivers.ErrUnavailable
					case errors.Is(err, fs.ErrNotExist):
						return storagedrivers.ErrChanged
					}
					return err
				}
				_, err = s.Commit(t.Context(), storagedrivers.Change{Key: "key", Options: storagedrivers.PutOptions{IfMatch: info.ETag}})
				test.Is(t, err, tt.err)
				if !lost {
					t.Error("no reply was lost")
				}
				if tt.theirs != "" {
					has(t, s, "key", tt.theirs)
				}
			})
		})
	}
}

// TestRemovalUncompared: the object is compared right before its removal if the backend does not
// compare.
func TestRemovalUncompared(t *testing.T) {
	t.Parallel()
	d, tried := &stub{Driver: memory.New(), features: &storagedrivers.Features{}}, 0
	d.remove = func(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
		if opts.IfMatch != "" {
			tried++
			return errors.ErrUnsupported
		}
		return d.Driver.Delete(ctx, key, opts)
	}
	s := open(t, d, storagedrivers.Options{})
	put(t, s, "key", "text")
	info, err := s.Stat(t.Context(), "key")
	test.Is(t, err, nil)
	for _, tt := range []struct {
		etag string
		err  error
	}{{`"other"`, storagedrivers.ErrChanged}, {info.ETag, nil}} {
		_, err := s.Commit(t.Context(), storagedrivers.Change{Key: "key", Options: storagedrivers.PutOptions{IfMatch: tt.etag}})
		test.Is(t, err, tt.err)
	}
	missing(t, s, "key")
	test.Equal(t, tried, 2, "the driver was asked", "times")
}

// TestReplacementUncompared: the object is compared right before its replacement if the backend
// does not compare.
func TestReplacementUncompared(t *testing.T) {
	t.Parallel()
	s := open(t, &uncompared{memory.New()}, storagedrivers.Options{})
	put(t, s, "key", "text")
	info, err := s.Stat(t.Context(), "key")
	test.Is(t, err, nil)
	for _, tt := range []struct {
		etag, text string
		err        error
	}{{`"other"`, "text", storagedrivers.ErrChanged}, {info.ETag, "new text", nil}} {
		st := stage(t, s, "new text")
		_, err := s.Commit(t.Context(), storagedrivers.Change{Staged: st, Key: "key", Options: storagedrivers.PutOptions{
			Mode: storagedrivers.Overwrite, IfMatch: tt.etag,
		}})
		test.Is(t, err, tt.err)
		has(t, s, "key", tt.text)
	}
}

// uncompared is a driver that ignores IfMatch.
type uncompared struct{ storagedrivers.Driver }

func (u *uncompared) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	opts.IfMatch = ""
	return u.Driver.Put(ctx, key, r, opts)
}

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

// TestStageCopy: a commit copies within the backend, with repetitions, or stores bytes that were
// read.
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
			len(content), []error{errors.ErrUnsupported, io.ErrClosedPipe}, []string{"open", "open", "copy"}, nil,
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
		test.Is(t, err, nil)
		test.Equal(t, len(page.Objects), 1, "stored", page.Objects)
	}
}
