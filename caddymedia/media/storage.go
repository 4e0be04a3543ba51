package media

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// DefaultStorage is the name of the storage of aliases that name none.
const DefaultStorage = "default"

// Storage is a backend with its naming rules.
type Storage struct {
	// Name of the storage, by the rule [Names].
	Name string
	// Driver of the backend. It is closed with the service, unless Options have another Close.
	Driver storagedrivers.Driver
	// Options of the storage. Observe is set by the service.
	Options storagedrivers.Options
	// Settings identify the driver's settings. A service takes over the state of a storage that has the
	// same name and settings in the previous one.
	Settings string

	// SubFolder is the folder of items whose request names none. Zero: year, month and day.
	SubFolder naming.Format
	// Overwrite replaces items of the same name. Otherwise the new one gets the time in its name.
	Overwrite bool
	// KeepNames stores names exactly as submitted, instead of plain ones.
	KeepNames bool
}

// StorageOf returns the storage of an alias. Without a name it is the default storage, or the only
// one of names.
func StorageOf(name string, names []string) (string, error) {
	storage := name
	if name == "" {
		storage = DefaultStorage
		if len(names) == 1 {
			storage = names[0]
		}
	}
	switch {
	case slices.Contains(names, storage):
		return storage, nil
	case name == "":
		return "", errors.New("storage is missing: there are several, and none is called default")
	default:
		return "", noStorage(name, names)
	}
}

// open adds a storage to the service.
func (s *Service) open(config *Storage) error {
	if err := CheckName("storage", config.Name); err != nil {
		return err
	}
	if s.storages[config.Name] != nil {
		return fmt.Errorf("storage %q is there twice", config.Name)
	}
	if config.Driver == nil {
		return fmt.Errorf("storage %q: it has no driver", config.Name)
	}
	name, failed := config.Name, s.health.add(config.Name, config.Settings)
	options := config.Options
	options.Observe = func(op string, took time.Duration, err error) {
		s.observer.StorageOperation(name, op, took, err)
		if op != "check" && storagedrivers.Fault(op, err) {
			failed()
		}
	}
	s.storages[name] = storagedrivers.New(name, config.Driver, options)
	return nil
}
