//go:build !linux

package local

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

func openUnnamed(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func canLink() bool { return false }

func openBeneath(*os.File, string) *os.File { return nil }

func changed(*os.File) time.Time { return time.Time{} }

func openFileBeneath(*os.File, string) (readFile, bool) { return nil, false }

func infoIn(*os.File, string, string) (storagedrivers.Info, bool) {
	return storagedrivers.Info{}, false
}

func statBeneath(*os.File, string, bool) (storagedrivers.Info, fs.FileMode, error) {
	return storagedrivers.Info{}, 0, errors.ErrUnsupported
}

func rename(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }

func linkUnnamed(*os.File, *os.File, string) error { return errors.ErrUnsupported }

func stampDescriptor(*os.File, time.Time) error { return errors.ErrUnsupported }

func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }

func beginWriting(*os.File, int64, int64) {}

func canShare(*os.File) bool { return false }

func syncAll(*os.File) error { return errors.ErrUnsupported }

func spaceOf(*os.File) (storagedrivers.Space, error) {
	return storagedrivers.Space{}, errors.ErrUnsupported
}

func syncData(file *os.File) error { return file.Sync() }
