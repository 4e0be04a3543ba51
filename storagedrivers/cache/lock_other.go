//go:build !unix

package cache

import (
	"errors"
	"os"
)

// lock returns an error, because there are no locks. Nothing is cached on such a system.
func lock(*os.File) error { return errors.ErrUnsupported }

func unlock(*os.File) error { return nil }
