package storagedrivers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers/guard"
)

// A Change stores a staged object under a key, or removes an object.
type Change struct {
	// Staged is the object to store. Nil removes the object under Key; a missing one is no error.
	Staged Staged
	// Key of the object. No other change of the call may have it, but see [ExistsError].
	Key string
	// Options of storing the object. A removal heeds IfMatch alone: the commit fails with [ErrChanged]
	// if another object is under Key, or none and the backend reports that.
	Options PutOptions
	// Follows is true if the object is made from that of the change before it: it is stored later, and
	// its ModTime is not before that of the other one.
	Follows bool
	// Keeps is true if the object is the one that the next change replaces or removes, of
	// [Storage.StageKept]. It is stored first, with CreateOnly. If the next change is made and the
	// commit fails, the object under its key is brought back from this one. If that fails, or if it is
	// not known whether the change will be made, this one stays.
	Keeps bool
}

// ExistsError is the error of a commit whose keys are taken. It matches fs.ErrExist.
type ExistsError struct {
	// Taken are the indexes of changes whose keys exist, or belong to an earlier change: at least one,
	// in ascending order. Further keys may be taken. The keys of objects that follow a taken one are
	// not looked at, because they change with it.
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
// changes, with a zero Info for a removal. The staged objects are of this storage.
//
// After an *ExistsError nothing has changed, and the staged objects may be committed under other
// keys. If the driver is a [Stager], all or none is true across crashes too. Otherwise the changes
// are made in steps: side by side those with [CreateOnly], then those with [Overwrite], then those
// that follow another one, and the removals one after the other. If one fails, the created objects
// are removed again, unless the lease of ctx is lost ([WithLease]), and a *[CommitError] names the
// changes that stay.
//
// A change with an IfMatch is exact among all writers if [Features] have Compare. Otherwise the
// object is compared right before the change.
func (s *Storage) Commit(ctx context.Context, changes ...Change) ([]Info, error) {
	changes = slices.Clone(changes)
	op, key := "delete", ""
	for i := range changes {
		if changes[i].Staged != nil {
			op = "commit"
			if st, ok := changes[i].Staged.(*staged); ok && changes[i].Options.ID == "" {
				changes[i].Options.ID = st.early.id()
			}
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
	infos, err := s.inSteps(ctx, changes)
	return infos, s.wrap(op, key, err)
}

var errForeign = errors.New("the object was staged by another storage")

// validate checks the changes. A repeated key is taken, or else a mistake of the caller. It returns
// the indexes of changes whose keys belong to an earlier change. Those that follow them are renamed
// too, so their keys are not compared yet.
func (s *Storage) validate(changes []Change) (repeated []int, err error) {
	keys, renamed := map[string]bool{}, false // with the change before
	for i, c := range changes {
		if err := ValidKey(c.Key); err != nil {
			return nil, &CommitError{Index: i, Err: err}
		}
		if c.Staged != nil {
			if st, ok := c.Staged.(*staged); !ok || st.storage != s {
				return nil, fmt.Errorf("%w: %T", errForeign, c.Staged)
			}
		}
		if c.Keeps && (c.Staged == nil || c.Options.Mode != CreateOnly || i == len(changes)-1) {
			return nil, fmt.Errorf("%q keeps no object, or is not stored with CreateOnly", c.Key)
		}
		if c.Follows && (c.Options.Mode != Overwrite || i == 0 || changes[i-1].Staged == nil) {
			return nil, fmt.Errorf("%q follows no object, or is not stored with Overwrite", c.Key)
		}
		renamed = renamed && c.Follows
		switch {
		case renamed:
		case !keys[c.Key]:
			keys[c.Key] = true
		case c.Staged != nil && c.Options.Mode == CreateOnly:
			repeated, renamed = append(repeated, i), true
		default:
			return nil, fmt.Errorf("%q is changed twice", c.Key)
		}
	}
	return repeated, nil
}

// taken returns an ExistsError of the known indexes and of all others whose keys exist, so that the
// caller need not find them one by one.
func (s *Storage) taken(ctx context.Context, changes []Change, known []int) error {
	var others []int
	for i, c := range changes {
		if c.Staged != nil && c.Options.Mode == CreateOnly && !slices.Contains(known, i) {
			others = append(others, i)
		}
	}
	exist := make([]bool, len(changes))
	sideBySide(ctx, changes, others, func(i int) error {
		_, err := s.driver.Stat(WithoutCache(ctx), changes[i].Key)
		exist[i] = err == nil
		return nil
	})
	all := slices.Clone(known)
	for _, i := range others {
		if exist[i] {
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

// outcome is what became of a change.
type outcome struct {
	begun    bool
	made     bool
	info     Info // zero for a removal
	replaced bool // an object had the key before
}

// inSteps makes the changes step by step, those of a step side by side, and undoes them if one
// fails.
func (s *Storage) inSteps(ctx context.Context, changes []Change) ([]Info, error) {
	outcomes, infos := make([]outcome, len(changes)), make([]Info, len(changes))
	for _, step := range steps(changes) {
		errs := sideBySide(ctx, changes, step, func(i int) error {
			if s.isRenamed(changes, i+1) { // with its removal
				return nil
			}
			if s.isRenamed(changes, i) {
				err := s.rename(ctx, changes, outcomes, infos, i)
				if !errors.Is(err, errors.ErrUnsupported) {
					return err
				}
				if err := s.make(ctx, changes, outcomes, infos, i-1); err != nil {
					return err
				}
			}
			return s.make(ctx, changes, outcomes, infos, i)
		})
		if len(errs) > 0 {
			return nil, s.failed(ctx, changes, outcomes, errs)
		}
	}
	return infos, nil
}

// make makes one change.
func (s *Storage) make(ctx context.Context, changes []Change, outcomes []outcome, infos []Info, i int) error {
	c := changes[i]
	if c.Follows && infos[i-1].ModTime.After(c.Options.NotBefore) {
		c.Options.NotBefore = infos[i-1].ModTime
	}
	if err := s.isKept(ctx, changes, i); err != nil {
		return err
	}
	outcomes[i].begun = true // also after a panic
	made, err := s.change(ctx, c)
	made.begun = true
	outcomes[i], infos[i] = made, made.info
	return err
}

// isRenamed reports whether a change removes the object that the one before it keeps, in a backend
// that can rename it.
func (s *Storage) isRenamed(changes []Change, i int) bool {
	_, renames := s.driver.(Renamer)
	return renames && i > 0 && i < len(changes) && changes[i-1].Keeps && changes[i].Staged == nil
}

// rename makes a removal and the change before it, which keeps the object, by a new key for it.
func (s *Storage) rename(ctx context.Context, changes []Change, outcomes []outcome, infos []Info, i int) error {
	kept := changes[i-1].Staged.(*staged).inner.(*original) //nolint:forcetypeassert // a Renamer is no Stager
	renamed := kept.info
	renamed.Key = changes[i-1].Key
	limited, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrUnavailable)
	defer cancel()
	ctx, o := s.begin(limited, "rename", kept.info.Key)
	outcomes[i].begun = true
	again := false // an earlier attempt, whose reply was lost, may have renamed the object
	err := s.attempt(ctx, "rename", func(ctx context.Context) error {
		err := s.driver.(Renamer).Rename(ctx, kept.info, renamed.Key) //nolint:forcetypeassert // isRenamed
		if again && (errors.Is(err, ErrChanged) || errors.Is(err, fs.ErrExist)) {
			err = errors.Join(s.isStill(ctx, renamed), s.isGone(ctx, kept.info.Key))
		}
		again = true
		return err
	})
	_ = o.end(err) // the caller wraps it
	if err == nil {
		outcomes[i-1], infos[i-1] = outcome{begun: true, made: true, info: renamed}, renamed
		outcomes[i].made, outcomes[i].replaced = true, true
	}
	return err
}

// isGone returns ErrChanged if there is an object.
func (s *Storage) isGone(ctx context.Context, key string) error {
	_, err := s.driver.Stat(WithoutCache(ctx), key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return ErrChanged
	}
	return err
}

// isKept returns ErrChanged if a change that only Storage can compare is not one of the object that
// the change before it keeps: copying may have taken long.
func (s *Storage) isKept(ctx context.Context, changes []Change, i int) error {
	if i == 0 || !changes[i-1].Keeps || changes[i].Options.IfMatch != "" {
		return nil
	}
	if st, ok := changes[i-1].Staged.(*staged); ok {
		if kept, ok := st.inner.(*original); ok {
			return s.isStill(ctx, kept.info)
		}
	}
	return nil
}

// isStill returns ErrChanged if another object is under the key of info by now, or none.
func (s *Storage) isStill(ctx context.Context, info Info) error {
	now, err := s.driver.Stat(WithoutCache(ctx), info.Key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !now.Same(info) {
		return ErrChanged
	}
	return err
}

// steps returns the indexes of the changes in the order in which they are made: objects that can be
// removed again, those that may replace others, those that follow them, and one removal after the
// other.
func steps(changes []Change) [][]int {
	all := make([][]int, 3, len(changes)+3)
	for i, c := range changes {
		switch {
		case c.Staged == nil:
			all = append(all, []int{i})
		case c.Follows:
			all[2] = append(all[2], i)
		default:
			all[c.Options.Mode] = append(all[c.Options.Mode], i)
		}
	}
	return all
}

// abreast is how many changes of a commit are made at the same time. An object counts once more for
// each of its MiB, because drivers hold parts of it in memory.
const abreast = 16

// sideBySide calls f for the indexes of changes, several at the same time, and returns the errors
// by index. After an error, or the end of ctx, it begins no other call.
func sideBySide(ctx context.Context, changes []Change, indexes []int, f func(i int) error) map[int]error {
	errs := map[int]error{}
	if len(indexes) == 1 {
		if err := f(indexes[0]); err != nil {
			errs[indexes[0]] = err
		}
		return errs
	}
	var (
		mu    sync.Mutex
		calls sync.WaitGroup
		slots = semaphore.NewWeighted(abreast)
	)
	failed := func(i int, err error) bool {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs[i] = err
		}
		return len(errs) > 0
	}
	for _, i := range indexes {
		weight := int64(1)
		if st, ok := changes[i].Staged.(*staged); ok {
			weight = min(abreast, 1+st.size>>20)
		}
		if slots.Acquire(ctx, weight) != nil {
			failed(i, context.Cause(ctx))
		}
		if failed(i, nil) {
			break
		}
		calls.Go(func() {
			defer slots.Release(weight)
			failed(i, guard.Call(func() error { return f(i) }))
		})
	}
	calls.Wait()
	return errs
}

// change makes one change, see [Storage.store].
func (s *Storage) change(ctx context.Context, c Change) (outcome, error) {
	if c.Staged == nil {
		return s.removal(ctx, c)
	}
	st := c.Staged.(*staged) //nolint:forcetypeassert // validated
	if from, ok := st.inner.(*original); ok {
		return s.store(s.withProgress(ctx), "copy", c, func(ctx context.Context) (Info, error) { return from.send(ctx, c) })
	}
	bytes, early := st.inner.(*spool).reader(), st.early //nolint:forcetypeassert // the driver is no Stager
	if !early.serves(c) {
		early.abandon()
		early = nil
	}
	return s.store(s.withProgress(ctx), "commit", c, func(ctx context.Context) (Info, error) {
		info, sent, err := early.finish(ctx)
		early = nil
		if sent {
			return info, err
		}
		return s.send(ctx, c.Key, bytes, c.Options)
	})
}

// store stores the object of a change by put, which may be repeated. It also returns an object
// whose size differs from what was sent.
func (s *Storage) store(
	ctx context.Context, op string, c Change, put func(context.Context) (Info, error),
) (outcome, error) {
	var (
		made   outcome
		looked bool                      // before the first attempt, whose lost reply may have stored the object
		size   = c.Staged.(*staged).size //nolint:forcetypeassert // validated
	)
	ctx, o := s.begin(ctx, op, c.Key)
	note(ctx, attribute.Int64("media.size", size))
	err := s.attempt(ctx, op, func(ctx context.Context) error {
		if c.Options.Mode == Overwrite && !looked {
			info, err := s.driver.Stat(WithoutCache(ctx), c.Key)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			looked, made.replaced = true, err == nil
			if c.Options.IfMatch != "" && info.ETag != c.Options.IfMatch {
				return ErrChanged
			}
		}
		info, err := put(ctx)
		if err == nil {
			made.made, made.info = true, info
		}
		return err
	})
	if err == nil && made.info.Size != size {
		err = ErrSizeMismatch
	}
	_ = o.end(err) // the caller wraps it
	return made, err
}

// removal makes one change, which removes an object.
func (s *Storage) removal(ctx context.Context, c Change) (outcome, error) {
	limited, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrUnavailable)
	defer cancel()
	ctx, o := s.begin(limited, "delete", c.Key)
	again := false // an earlier attempt, whose reply was lost, may have removed the object
	err := s.attempt(ctx, "delete", func(ctx context.Context) error {
		err := s.deleteMatching(ctx, c.Key, c.Options.IfMatch)
		missing := err
		if again && errors.Is(err, ErrChanged) { // some backends report a missing object so
			_, missing = s.driver.Stat(WithoutCache(ctx), c.Key)
		}
		if again && errors.Is(missing, fs.ErrNotExist) {
			err = nil
		}
		again = true
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: it is missing", ErrChanged)
	}
	_ = o.end(err) // the caller wraps it
	return outcome{made: err == nil, replaced: true}, err
}

// failed undoes the changes that were made, because others failed, and returns the error of the
// commit.
func (s *Storage) failed(ctx context.Context, changes []Change, outcomes []outcome, errs map[int]error) error {
	// The undoing does not end with the caller.
	after, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.opts.Timeout, ErrUnavailable)
	defer cancel()
	result := &CommitError{Index: -1}
	for _, i := range slices.Sorted(maps.Keys(errs)) {
		if result.Index < 0 || errors.Is(result.Err, fs.ErrExist) && !errors.Is(errs[i], fs.ErrExist) {
			result.Index, result.Err = i, errs[i]
		}
	}
	var created []int
	for i, one := range outcomes {
		if isKept := i > 0 && changes[i-1].Keeps && one.begun; isKept {
			if one.made {
				err := s.bringBack(after, changes[i], one, outcomes[i-1].info)
				if err == nil {
					continue
				}
				result.Undo = errors.Join(result.Undo, err)
			}
			created = slices.DeleteFunc(created, func(created int) bool { return created == i-1 })
		}
		switch {
		case one.made && one.replaced:
			result.Replaced = append(result.Replaced, i)
		case one.made:
			created = append(created, i)
		}
	}
	undone := slices.Repeat([]error{ErrUnavailable}, len(changes)) // unless there is time to remove it
	sideBySide(after, changes, created, func(i int) error {
		undone[i] = s.deleteOwn(after, outcomes[i].info)
		return nil
	})
	for _, i := range created {
		if undone[i] != nil {
			result.Stored = append(result.Stored, i)
			result.Undo = errors.Join(result.Undo, undone[i])
		}
	}
	if !errors.Is(result.Err, fs.ErrExist) {
		return result
	}
	if len(result.Replaced)+len(result.Stored) > 0 {
		result.Err = errors.New(result.Err.Error()) // no other key helps
		return result
	}
	return s.taken(after, changes, slices.Collect(maps.Keys(errs)))
}

// bringBack stores the kept object again under the key of a change, unless another writer has
// changed that since.
func (s *Storage) bringBack(ctx context.Context, c Change, made outcome, kept Info) error {
	if LeaseLost(ctx) {
		return errLeaseLost
	}
	back, err := s.StageKept(ctx, kept)
	if err != nil {
		return err
	}
	c.Staged, c.Options.ID, c.Options.IfMatch, c.Options.Mode = back, rand.Text(), made.info.ETag, Overwrite
	c.Options.fill(c.Key)
	switch {
	case made.info == (Info{}):
		c.Options.Mode = CreateOnly // it was removed
	case made.info.ETag == "":
		if from, ok := back.(*staged).inner.(*original); ok { //nolint:forcetypeassert // of StageKept
			err = from.fetch(min(kept.Size, maxKept)) // which may take long
		}
		if err == nil {
			err = s.isStill(ctx, made.info)
		}
	}
	if err == nil {
		_, err = s.change(ctx, c)
	}
	return errors.Join(err, back.Close())
}

var errLeaseLost = errors.New("the lease is lost")

// deleteOwn removes an object unless another writer has replaced it. It is tried even while the
// circuit is open. It stats the object first. Without Compare in [Features], an object that another
// writer stores between Stat and Delete is lost.
func (s *Storage) deleteOwn(ctx context.Context, own Info) error {
	ctx, o := s.begin(ctx, "delete", own.Key)
	return o.end(s.repeat(ctx, guarded(func(ctx context.Context) error {
		info, err := s.driver.Stat(WithoutCache(ctx), own.Key)
		if LeaseLost(ctx) {
			return errLeaseLost
		}
		if err == nil && info.Same(own) {
			err = s.deleteMatching(ctx, own.Key, own.ETag)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrChanged) {
			return nil
		}
		return err
	})))
}
