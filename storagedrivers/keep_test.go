package storagedrivers_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// keeping commits the replacement of "key" and the removal of "removed", which are kept, and an
// object "z" in the step between.
func keeping(t *testing.T, s *storagedrivers.Storage) error {
	t.Helper()
	var staged []storagedrivers.Staged
	keep := func(key string) storagedrivers.Change {
		source, err := s.Stat(t.Context(), key)
		test.Must(t, err)
		st, err := s.StageKept(t.Context(), source)
		test.Must(t, err)
		staged = append(staged, st)
		return storagedrivers.Change{Staged: st, Key: "kept/" + key, Options: create, Keeps: true}
	}
	staged = append(staged, stage(t, s, "text"), stage(t, s, "z"))
	z := storagedrivers.Change{Staged: staged[1], Key: "z", Options: overwrite, Follows: true}
	_, err := s.Commit(
		t.Context(), keep("key"), storagedrivers.Change{Staged: staged[0], Key: "key", Options: overwrite}, z,
		keep("removed"), storagedrivers.Change{Key: "removed"}, storagedrivers.Change{Key: "last"},
	)
	for _, st := range staged {
		test.Is(t, st.Close(), nil)
	}
	return err
}

// TestKeepUndone: after a failed commit a replaced or removed object is back, or it is kept. What
// the driver may still change is kept too.
func TestKeepUndone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		fails    []string // operations
		replaced []int
		left     map[string]string // the objects, but for "last"
	}{
		{"nothing", nil, nil, map[string]string{"key": "text", "z": "z", "kept/key": "old", "kept/removed": "removed"}},
		{"kept", []string{"copy kept/removed"}, nil, map[string]string{"key": "old", "removed": "removed"}},
		{"replaced", []string{"put key"}, nil, map[string]string{"key": "old", "removed": "removed", "kept/key": "old"}},
		{"follower", []string{"put z"}, nil, map[string]string{"key": "old", "removed": "removed"}},
		{"removed", []string{"delete removed"}, nil, map[string]string{"key": "old", "removed": "removed", "kept/removed": "removed"}},
		{"last", []string{"delete last"}, nil, map[string]string{"key": "old", "removed": "removed"}},
		{
			"not brought back",
			[]string{"delete last", "copy key", "copy removed"},
			[]int{1, 4},
			map[string]string{"key": "text", "kept/key": "old", "kept/removed": "removed"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := memory.New()
			s := open(t, d, storagedrivers.Options{})
			put(t, s, "key", "old")
			put(t, s, "removed", "removed")
			put(t, s, "last", "last")
			d.Fail = func(op, key string) error {
				if slices.Contains(tt.fails, op+" "+key) {
					return fs.ErrPermission
				}
				return nil
			}
			err := keeping(t, s)
			d.Fail = nil
			failed, ok := errors.AsType[*storagedrivers.CommitError](err)
			if ok != (tt.fails != nil) {
				t.Fatalf("error %v", err)
			}
			if ok && (!slices.Equal(failed.Replaced, tt.replaced) || failed.Stored != nil || (failed.Undo != nil) != (tt.replaced != nil)) {
				t.Errorf("got %+v", failed)
			}
			if tt.fails != nil {
				tt.left["last"] = "last"
			}
			var keys []string
			for info, err := range s.All(t.Context(), "") {
				test.Must(t, err)
				keys = append(keys, info.Key)
				has(t, s, info.Key, tt.left[info.Key])
			}
			if len(keys) != len(tt.left) {
				t.Errorf("left are %q, want %v", keys, tt.left)
			}
		})
	}
}

// TestKeepThrough: an object that the backend does not copy is read and sent, if it is not too
// large.
func TestKeepThrough(t *testing.T) {
	t.Parallel()
	for name, copies := range map[string]bool{"refused at the commit": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := copying(slices.Repeat([]error{errors.ErrUnsupported}, 3))
			features := d.Driver.Features()
			features.Copies = copies
			d.features = &features
			s := open(t, d, storagedrivers.Options{})
			put(t, s, "key", "text")
			source, err := s.Stat(t.Context(), "key")
			test.Must(t, err)
			keep := func(source storagedrivers.Info) error {
				staged, err := s.StageKept(t.Context(), source)
				test.Must(t, err)
				_, err = s.Commit(
					t.Context(), storagedrivers.Change{Staged: staged, Key: "kept", Options: create, Keeps: true}, storagedrivers.Change{Key: "key"},
				)
				return errors.Join(err, staged.Close())
			}
			large := source
			large.Size = 1<<30 + 1
			test.Is(t, keep(large), storagedrivers.ErrUnkept)
			has(t, s, "key", "text")
			test.Is(t, keep(source), nil)
			has(t, s, "kept", "text")
			missing(t, s, "key")
		})
	}
}

// uncopied is an untagged driver that does not copy, such as SFTP.
type uncopied struct{ untagged }

func (u uncopied) Features() storagedrivers.Features {
	features := u.Driver.Features()
	features.Copies = false
	return features
}

func (u uncopied) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := u.Driver.Open(ctx, key, rng)
	info.ETag = ""
	return body, info, err
}

// TestKeepOfOther: where the backend has no entity tags, what another writer stores while an object
// is kept, or before one is brought back, stays.
func TestKeepOfOther(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"put kept/key", "put z"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d := memory.New()
			s := open(t, uncopied{untagged{d}}, storagedrivers.Options{})
			put(t, s, "key", "old")
			put(t, s, "removed", "removed")
			put(t, s, "last", "last")
			d.Fail = func(op, key string) error {
				if op+" "+key == at {
					put(t, s, "key", "of another writer")
					if key == "z" {
						return fs.ErrPermission
					}
				}
				return nil
			}
			if err := keeping(t, s); err == nil {
				t.Error("it is committed")
			}
			d.Fail = nil
			has(t, s, "key", "of another writer")
			has(t, s, "removed", "removed")
			if at == "put z" {
				has(t, s, "kept/key", "old")
			} else {
				missing(t, s, "kept/key")
			}
		})
	}
}

// TestKeepsInvalid: what keeps an object is created, and the next change is the object's.
func TestKeepsInvalid(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), storagedrivers.Options{})
	put(t, s, "key", "text")
	staged := stage(t, s, "other")
	removal := storagedrivers.Change{Key: "key"}
	for _, changes := range [][]storagedrivers.Change{
		{{Staged: staged, Key: "kept", Options: overwrite, Keeps: true}, removal},
		{removal, {Staged: staged, Key: "kept", Options: create, Keeps: true}},
		{{Key: "kept", Keeps: true}, removal},
	} {
		if _, err := s.Commit(t.Context(), changes...); err == nil {
			t.Errorf("%+v is committed", changes)
		}
	}
	test.Is(t, staged.Close(), nil)
	has(t, s, "key", "text")
	missing(t, s, "kept")
}
