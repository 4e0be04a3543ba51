package media

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// DefaultStorage is the name of the storage of aliases that name none.
const DefaultStorage = "default"

// Storage keeps items, under names that follow its options.
type Storage struct {
	// Name of the storage, by the rule [Names].
	Name string `json:"-"`
	// Driver of the backend. It is closed with the service, unless Options have another Close.
	Driver storagedrivers.Driver `json:"-"`
	// Options of the storage. Observe is set by the service.
	Options storagedrivers.Options `json:"-"`
	// Settings identify the driver's settings. A service takes over the state of a storage that has the
	// same name and settings in the previous one.
	Settings string `json:"-"`

	// The folder of items whose upload names none: a strftime pattern of letters, digits, `-`, `_`,
	// `.`, `/` and conversions such as `%Y`, or `/` for the root of the alias. Default: year, month
	// and day as `26-11/20`.
	SubFolderFormat string `json:"sub_folder_format,omitempty" option:"common" example:"%y-%m/%d"`

	// What happens to an upload whose name exists. `append_time` adds the time to the name
	// (`photo-1795132800.jpg`), so that stored items never change. `overwrite` replaces the stored
	// item; caches must then revalidate at each request. Default: `append_time`.
	OverwriteStrategy string `json:"overwrite_strategy,omitempty" option:"common,words=append_time|overwrite"`

	// Whether names are simplified: lower case, without accents, spaces and special characters.
	// Otherwise a name is stored exactly as submitted, or refused if it is not safe. Default:
	// `true`.
	Sanitize *bool `json:"sanitize,omitempty" option:"common"`
}

// overwriteItems is the word of OverwriteStrategy that replaces items.
const overwriteItems = "overwrite"

// Check implements options.Checker.
func (s *Storage) Check() error {
	if _, err := naming.ParseFormat(s.SubFolderFormat); err != nil {
		return fmt.Errorf("sub_folder_format: %w", err)
	}
	return nil
}

// complete checks the options and adds the spool folder.
func (s *Storage) complete(spoolFolder string) error {
	if err := Names.Check(s.Name); err != nil {
		return err
	}
	if s.Driver == nil {
		return errors.New("it has no driver")
	}
	s.Options.SpoolDir = cmp.Or(s.Options.SpoolDir, spoolFolder)
	return Schemas.Storage.Check(s)
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

// noStorage returns the error of an option that names an unknown storage.
func noStorage(name string, storages []string) error {
	return fmt.Errorf("storage: there is no storage %q; there are %s",
		name, strings.Join(slices.Sorted(slices.Values(storages)), ", "))
}

// open adds a storage to the service.
func (s *Service) open(config *Storage) error {
	if s.storages[config.Name] != nil {
		return fmt.Errorf("storage %q is there twice", config.Name)
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
