//go:build !linux

package local

import (
	"errors"
	"os"
)

func openUnnamed(*os.Root) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, *os.File, string) error { return errors.ErrUnsupported }

func exchange(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }

func beginWriting(*os.File, int64, int64) {}
