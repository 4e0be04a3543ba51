package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// lockTimeout is how long to wait for another process to unlock the file.
	lockTimeout = time.Second
	// damagePause is the time between attempts to open a damaged file, because each attempt costs
	// address space.
	damagePause = 10 * time.Second
)

// file is an open database. Closing the descriptor frees the file if the database can no longer be
// closed.
type file struct {
	db   *bbolt.DB
	desc *os.File
}

// damageError is a panic of bbolt, which trusts the pages of its file.
type damageError struct{ cause any }

func (e *damageError) Error() string { return fmt.Sprintf("the file is damaged: %v", e.cause) }

// guarded calls f and returns its panics as errors, including faults in a mapped file that was
// truncated.
func guarded(f func() error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err := guard.Call(f)
	if panicked, ok := errors.AsType[*guard.PanicError](err); ok {
		return &damageError{panicked.Value}
	}
	return err
}

// open returns the database, opening it if necessary. Concurrent callers share the outcome, so that
// none waits longer than one attempt takes.
func (s *Store) open(ctx context.Context) (*file, error) {
	if ctx.Err() != nil {
		return nil, s.unavailable(ctx.Err())
	}
	if f, err := s.opened(); f != nil || err != nil {
		return f, err
	}
	select {
	case o := <-s.opening.DoChan("", s.openNow):
		if o.Err != nil {
			return nil, o.Err
		}
		return o.Val.(*file), nil
	case <-ctx.Done():
		return nil, s.unavailable(ctx.Err())
	}
}

// opened returns the database if it is open, an error if it may not be opened now, and otherwise
// nil.
func (s *Store) opened() (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, s.unavailable(errClosed)
	case s.file != nil:
		return s.file, nil
	case s.damage != nil && s.now().Before(s.retryAt):
		return nil, s.unavailable(s.damage)
	}
	return nil, nil //nolint:nilnil // nil means not open yet
}

// openNow is open for one caller at a time; singleflight expects it to return any.
func (s *Store) openNow() (any, error) {
	if f, err := s.opened(); f != nil || err != nil {
		return f, err
	}
	f := new(file)
	if err := guarded(func() error { return f.open(s.path) }); err != nil {
		return nil, s.failed(f, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = guarded(f.db.Close)
		return nil, s.unavailable(errClosed)
	}
	s.file, s.damage = f, nil
	s.log.Info("token file opened", "path", s.path)
	return f, nil
}

func (f *file) open(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:      lockTimeout,
		FreelistType: bbolt.FreelistMapType, // the default is slow with many tokens
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			desc, err := os.OpenFile(name, flag, mode)
			f.desc = desc
			return desc, err
		},
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return errors.New("another process has the file locked: the embedded store belongs to one process " +
			"(tokens in redis can be shared)")
	}
	if err != nil {
		return err
	}
	err = f.db.Update(func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{bucketEntries, bucketExpiries, bucketIndexes} {
			if _, err := tx.CreateBucketIfNotExists(bucket); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = f.db.Close() // otherwise the next attempt would find the file locked
	}
	return err
}

// failed converts an error of f to one of tokens.Store. A database that panicked may hold its locks
// for ever. It is neither used again nor closed; closing the descriptor frees the file for the next
// attempt.
func (s *Store) failed(f *file, err error) error {
	if _, damaged := errors.AsType[*damageError](err); damaged {
		s.mu.Lock()
		if s.file == f {
			s.file = nil
		}
		s.damage, s.retryAt = err, s.now().Add(damagePause)
		s.mu.Unlock()
		if f.desc != nil {
			_ = f.desc.Close()
		}
	}
	return s.unavailable(err)
}

func (s *Store) unavailable(err error) error {
	return fmt.Errorf("%w: %s: %w", tokens.ErrUnavailable, s.path, err)
}
