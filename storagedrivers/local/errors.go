package local

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers"
)

// mapError returns the contract's error for one of the operating system. Errors about missing,
// existing and forbidden files already match those of io/fs.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if sentinel := sentinelOf(err); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, err)
	}
	return err
}

// mapReadError is mapError for looking up an object. A key below a file is fs.ErrNotExist.
func mapReadError(err error) error {
	if isNotDir(err) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return mapError(err)
}

// isMissing reports whether nothing has a name.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) || isNotDir(err) }

// escapes reports whether os.Root refused to follow a path out of the root. That error matches no
// exported one.
func escapes(err error) bool {
	var pathErr *fs.PathError
	return errors.As(err, &pathErr) && pathErr.Err.Error() == "path escapes from parent"
}

func sentinelOf(err error) error {
	if escapes(err) {
		return storagedrivers.ErrInvalidKey
	}
	return systemSentinel(err)
}

// mapFolderError is mapError for a folder of a key. A file in its path makes the key invalid; it
// does not mean that the key is taken.
func mapFolderError(err error) error {
	if errors.Is(err, fs.ErrExist) || isNotDir(err) {
		return fmt.Errorf("%w: %v", storagedrivers.ErrInvalidKey, err) //nolint:errorlint // no fs.ErrExist
	}
	return mapError(err)
}
