package storagedrivers

import (
	"context"
	"errors"
	"fmt"
)

// A Grouper is a [Stager] that commits several objects as one: a crash leaves all of them or none.
type Grouper interface {
	Stager
	// Group returns a new group, without I/O.
	Group() Group
}

// Group holds the names of one request: objects to commit, and objects to remove with them. The
// order of calls is Plan and PlanRemove, Prepare, [Staged.Commit] of the planned objects and
// Remove, Finish, Close. It is for one goroutine.
//
// If the process dies before Finish has returned, the driver undoes the group when it is next used,
// or at the latest in [Sweeper.Sweep]: it removes created objects and restores replaced or removed
// ones. It leaves an object that another process has since stored under one of the keys. After
// Finish has succeeded nothing is undone. If the driver is not a [Grouper], a crash may leave a part
// of a group.
type Group interface {
	// Plan makes the Commit of staged, an object of this driver, a part of the group. key is the
	// expected one; Commit accepts another one, but then has to wait once more. With [CreateOnly] a
	// key that is seen to exist, also in this group, is fs.ErrExist, and staged is not planned.
	Plan(ctx context.Context, staged Staged, key string, opts PutOptions) error

	// PlanRemove announces a Remove of the object under key.
	PlanRemove(ctx context.Context, key string) error

	// Prepare makes the bytes of all planned objects durable. No object is visible yet.
	Prepare(ctx context.Context) error

	// Remove removes the object under key. A missing one is no error.
	Remove(ctx context.Context, key string) error

	// Finish returns when the new names are durable. After an error the caller must roll back the
	// planned objects, see [Staged.Rollback].
	Finish(ctx context.Context) error

	// Close ends the group. Unless Finish has succeeded, a [Grouper] undoes all changes of several
	// names that are not rolled back, or tries it again at the next start. It must be called once,
	// in any case, after a Rollback and before the Close of a planned object.
	Close() error
}

// CanGroup reports whether the driver is a [Grouper].
func (s *Storage) CanGroup() bool {
	_, ok := s.driver.(Grouper)
	return ok
}

// Group returns a new group of staged and stored objects of the storage. The staged ones keep the
// storage open.
func (s *Storage) Group() Group {
	if grouper, ok := s.driver.(Grouper); ok {
		return &group{storage: s, inner: grouper.Group()}
	}
	return plainGroup{s}
}

// group is the driver's Group with the checks of every storage.
type group struct {
	storage *Storage
	inner   Group
	members int
	held    bool // the storage is open for this group, which has no members
}

func (g *group) Plan(ctx context.Context, member Staged, key string, opts PutOptions) error {
	const op = "plan"
	st, err := g.storage.member(member, key)
	if err == nil {
		opts.fill(key)
		err = g.inner.Plan(ctx, st.inner, key, opts)
	}
	if err == nil {
		g.members++
	}
	return g.storage.wrap(op, key, err)
}

func (g *group) PlanRemove(ctx context.Context, key string) error {
	const op = "plan"
	if err := ValidKey(key); err != nil {
		return g.storage.wrap(op, key, err)
	}
	if g.members == 0 && !g.held {
		if g.held = g.storage.references.Acquire(); !g.held {
			return g.storage.wrap(op, key, ErrClosed)
		}
	}
	return g.storage.wrap(op, key, g.inner.PlanRemove(ctx, key))
}

func (g *group) Prepare(ctx context.Context) error {
	return g.together(ctx, "prepare", g.inner.Prepare)
}

func (g *group) Remove(ctx context.Context, key string) error {
	if err := ValidKey(key); err != nil {
		return g.storage.wrap("delete", key, err)
	}
	return g.run(ctx, "delete", key, func(ctx context.Context) error { return g.inner.Remove(ctx, key) })
}

func (g *group) Finish(ctx context.Context) error { return g.together(ctx, "finish", g.inner.Finish) }

// together runs a step of all objects. With a single object it is a part of the Commit and is not
// observed.
func (g *group) together(ctx context.Context, op string, step func(context.Context) error) error {
	if g.members < 2 {
		return g.storage.wrap(op, "", step(ctx))
	}
	return g.run(ctx, op, "", step)
}

// run calls one step of the driver. A failed step is not retried, because the group is undone.
func (g *group) run(ctx context.Context, op, key string, step func(context.Context) error) error {
	ctx, o := g.storage.begin(ctx, op, key)
	return o.end(step(ctx))
}

func (g *group) Close() error {
	err := g.inner.Close()
	if g.held {
		err = errors.Join(err, g.storage.references.Release())
	}
	return g.storage.wrap("finish", "", err)
}

// plainGroup is the Group of a driver that is not a [Grouper]: each object is committed by itself.
type plainGroup struct{ storage *Storage }

func (g plainGroup) Plan(_ context.Context, member Staged, key string, _ PutOptions) error {
	_, err := g.storage.member(member, key)
	return g.storage.wrap("plan", key, err)
}

func (g plainGroup) PlanRemove(context.Context, string) error { return nil }
func (g plainGroup) Prepare(context.Context) error            { return nil }
func (g plainGroup) Finish(context.Context) error             { return nil }
func (g plainGroup) Close() error                             { return nil }

func (g plainGroup) Remove(ctx context.Context, key string) error { return g.storage.Delete(ctx, key) }

var errForeign = errors.New("the object was staged by another storage")

// member returns the staged object of this storage, to be committed under key. The error is
// errForeign for an object of another storage, or that of [ValidKey].
func (s *Storage) member(member Staged, key string) (*staged, error) {
	st, ok := member.(*staged)
	if !ok || st.storage != s {
		return nil, fmt.Errorf("%w: %T", errForeign, member)
	}
	return st, ValidKey(key)
}
