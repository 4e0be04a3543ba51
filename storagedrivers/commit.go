package storagedrivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"go.opentelemetry.io/otel/attribute"
)

// A Change stores a staged object under a key, or removes an object.
type Change struct {
	// Staged is the object to store. Nil removes the object under Key; a missing one is no error.
	Staged Staged
	// Key of the object. No other change of the call may have it.
	Key string
	// Options of storing the object.
	Options PutOptions
}

// ExistsError is the error of a commit whose keys are taken. It matches fs.ErrExist.
type ExistsError struct {
	// Taken are the indexes of changes whose keys exist, or belong to an earlier change: at least one,
	// in ascending order. Further keys may be taken.
	Taken []int
}

// Error returns the number of taken keys.
func (e *ExistsError) Error() string { return fmt.Sprintf("%d keys exist already", len(e.Taken)) }

// Is reports whether target is fs.ErrExist.
func (e *ExistsError) Is(target error) bool { return target == fs.ErrExist }

// CommitError is the error of a commit that failed at one change, or that could not be undone.
type CommitError struct {
	// Index of the change that failed; -1 if it was not a single one.
	Index int
	// Replaced are the indexes of changes whose objects stay replaced or removed. Stored are those of
	// objects that may stay stored, or that the driver stores or removes later. Both are empty if
	// nothing has changed.
	Replaced, Stored []int
	// Err is the cause, and Undo why changes could not be undone, if that is known.
	Err, Undo error
}

// Error returns the causes, and the number of changes that stay.
func (e *CommitError) Error() string {
	if len(e.Replaced)+len(e.Stored) == 0 {
		return e.Err.Error()
	}
	text := fmt.Sprintf("%v; %d changes stay, %d may stay", e.Err, len(e.Replaced), len(e.Stored))
	if e.Undo != nil {
		text += ": " + e.Undo.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *CommitError) Unwrap() error { return e.Err }

// Commit makes all changes or none, and returns the Infos of the stored objects in the order of the
// changes, with a zero Info for a removal. The staged objects are of this storage. An object that is
// stored with [Overwrite] is not older than the objects of earlier changes.
//
// After an *ExistsError nothing has changed, and the staged objects may be committed under other
// keys. If the driver is a [Stager], all or none is true across crashes too. Otherwise the changes
// are made one after the other: those with [CreateOnly], then those with Overwrite, then the
// removals. If one fails, the created objects are removed again, and a *[CommitError] names the
// changes that stay.
func (s *Storage) Commit(ctx context.Context, changes ...Change) ([]Info, error) {
	changes = slices.Clone(changes)
	op, key := "delete", ""
	for i := range changes {
		if changes[i].Staged != nil {
			op = "commit"
			changes[i].Options.fill(changes[i].Key)
		}
	}
	if len(changes) == 1 {
		key = changes[0].Key
	}
	repeated, err := s.validate(changes)
	if err == nil && repeated != nil {
		err = s.taken(ctx, changes, repeated)
	}
	if err != nil {
		return nil, s.wrap(op, key, err)
	}
	if op == "delete" { // a staged object has its own reference
		if !s.references.Acquire() {
			return nil, s.wrap(op, key, ErrClosed)
		}
		defer s.references.Release() //nolint:errcheck // closing late is not this operation's failure
	}
	if stager, ok := s.driver.(Stager); ok {
		return s.together(ctx, stager, op, key, changes)
	}
	infos, err := s.oneByOne(ctx, changes)
	return infos, s.wrap(op, key, err)
}

var errForeign = errors.New("the object was staged by another storage")

// validate checks the changes. A repeated key is taken, or else a mistake of the caller. It returns the
// indexes of changes whose keys belong to an earlier change.
func (s *Storage) validate(changes []Change) (repeated []int, err error) {
	keys := map[string]bool{}
	for i, c := range changes {
		if err := ValidKey(c.Key); err != nil {
			return nil, &CommitError{Index: i, Err: err}
		}
		if c.Staged != nil {
			if st, ok := c.Staged.(*staged); !ok || st.storage != s {
				return nil, fmt.Errorf("%w: %T", errForeign, c.Staged)
			}
		}
		switch {
		case !keys[c.Key]:
			keys[c.Key] = true
		case c.Staged != nil && c.Options.Mode == CreateOnly:
			repeated = append(repeated, i)
		default:
			return nil, fmt.Errorf("%q is changed twice", c.Key)
		}
	}
	return repeated, nil
}

// taken returns an ExistsError of the known indexes and of all others whose keys exist, so that the
// caller need not find them one by one.
func (s *Storage) taken(ctx context.Context, changes []Change, known []int) error {
	all := slices.Clone(known)
	for i, c := range changes {
		if c.Staged == nil || c.Options.Mode != CreateOnly || slices.Contains(known, i) {
			continue
		}
		if _, err := s.driver.Stat(ctx, c.Key); err == nil {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return &ExistsError{all}
}

// together commits by the driver.
func (s *Storage) together(ctx context.Context, stager Stager, op, key string, changes []Change) ([]Info, error) {
	ctx, o := s.begin(ctx, op, key)
	inner, size := slices.Clone(changes), int64(0)
	for i, c := range changes {
		if c.Staged != nil {
			st := c.Staged.(*staged) //nolint:forcetypeassert // validated
			inner[i].Staged = st.inner
			size += st.size
		}
	}
	if op == "commit" {
		note(ctx, attribute.Int64("media.size", size))
	}
	if len(changes) > 1 {
		note(ctx, attribute.Int("media.files", len(changes)))
	}
	var infos []Info
	err := s.admitted(ctx, op, func(ctx context.Context) (err error) { // a commit is not retried
		infos, err = stager.Commit(ctx, inner)
		return blamed(ctx, err)
	})
	if err != nil {
		return nil, o.end(err)
	}
	for i, c := range changes {
		if st, ok := c.Staged.(*staged); ok && infos[i].Size != st.size {
			err = &CommitError{Index: i, Err: ErrSizeMismatch, Stored: []int{i}}
		}
	}
	return infos, o.end(err)
}

// madeChange is a change that was made.
type madeChange struct {
	index    int
	info     Info // zero for a removal
	replaced bool // an object had the key before
}

// oneByOne makes the changes one after the other, and undoes them if one fails.
func (s *Storage) oneByOne(ctx context.Context, changes []Change) ([]Info, error) {
	infos := make([]Info, len(changes))
	var made []madeChange
	for _, i := range inOrder(changes) {
		c := changes[i]
		for _, m := range made {
			if m.info.ModTime.After(c.Options.NotBefore) {
				c.Options.NotBefore = m.info.ModTime
			}
		}
		m, err := s.change(ctx, c)
		if m.index = i; err == nil || m.info.Key != "" {
			made = append(made, m)
		}
		infos[i] = m.info
		if err != nil {
			return nil, s.failed(ctx, changes, i, err, made)
		}
	}
	return infos, nil
}

// inOrder returns the indexes of the changes in the order in which they are made.
func inOrder(changes []Change) []int {
	rank := func(i int) int {
		if changes[i].Staged == nil {
			return int(Overwrite) + 1
		}
		return int(changes[i].Options.Mode)
	}
	order := make([]int, len(changes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	return order
}

// change makes one change. It also returns an object whose size differs from what was sent.
func (s *Storage) change(ctx context.Context, c Change) (madeChange, error) {
	if c.Staged == nil {
		limited, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrUnavailable)
		defer cancel()
		ctx, o := s.begin(limited, "delete", c.Key)
		err := s.attempt(ctx, "delete", func(ctx context.Context) error { return s.deleteExisting(ctx, c.Key) })
		_ = o.end(err) // the caller wraps it
		return madeChange{replaced: true}, err
	}
	var (
		m      madeChange
		looked bool                         // before the first attempt, whose lost reply may have stored the object
		st     = c.Staged.(*staged)         //nolint:forcetypeassert // validated
		bytes  = st.inner.(*spool).reader() //nolint:forcetypeassert // the driver is no Stager
	)
	ctx, o := s.begin(ctx, "commit", c.Key)
	note(ctx, attribute.Int64("media.size", st.size))
	err := s.attempt(s.withProgress(ctx), "commit", func(ctx context.Context) error {
		if c.Options.Mode == Overwrite && !looked {
			_, err := s.driver.Stat(ctx, c.Key)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			looked, m.replaced = true, err == nil
		}
		if _, err := bytes.Seek(0, io.SeekStart); err != nil {
			return err
		}
		info, err := s.driver.Put(ctx, c.Key, watched(ctx, bytes), c.Options)
		if err == nil {
			m.info = info
		}
		return err
	})
	if err == nil && m.info.Size != st.size {
		err = ErrSizeMismatch
	}
	_ = o.end(err) // the caller wraps it
	return m, err
}

// failed undoes the changes that were made before one failed, and returns the error of the commit.
func (s *Storage) failed(ctx context.Context, changes []Change, index int, err error, made []madeChange) error {
	// The undoing does not end with the caller.
	after, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.opts.Timeout, ErrUnavailable)
	defer cancel()
	result := &CommitError{Index: index, Err: err}
	for _, m := range slices.Backward(made) {
		if m.replaced {
			result.Replaced = append(result.Replaced, m.index)
		} else if undoErr := s.deleteOwn(after, m.info); undoErr != nil {
			result.Stored = append(result.Stored, m.index)
			result.Undo = errors.Join(result.Undo, undoErr)
		}
	}
	if !errors.Is(err, fs.ErrExist) {
		return result
	}
	if len(result.Replaced)+len(result.Stored) > 0 {
		result.Err = errors.New(result.Err.Error()) // no other key helps
		return result
	}
	return s.taken(after, changes, []int{index})
}

// deleteOwn removes an object unless another writer has replaced it. It is tried even while the
// circuit is open. It stats the object first, because backends cannot delete on condition of a
// generation: an object that another writer stores between Stat and Delete is lost.
func (s *Storage) deleteOwn(ctx context.Context, own Info) error {
	ctx, o := s.begin(ctx, "delete", own.Key)
	return o.end(s.repeat(ctx, func(ctx context.Context) error {
		info, err := s.driver.Stat(ctx, own.Key)
		if err == nil && info.Same(own) {
			err = s.driver.Delete(ctx, own.Key)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
}
