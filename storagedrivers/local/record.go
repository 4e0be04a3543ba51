package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// record is a file in the scratch folder that lists the intended changes of a commit. It is durable
// before the first name changes. An open record is void before the commit is acknowledged. If its
// process has died, an open record is undone, and a decided one is completed.
//
// The first line is the state. Each following line is one intent, as a checksum and JSON. An
// incomplete line ends the record: it was not durable, and no name was changed.
type record struct {
	root *os.Root
	name string
	file *os.File
}

// All states of a record have the same length, so that a change overwrites a single block.
const (
	recordOpen    = "media open  2\n" // created names can be removed, nothing else has changed
	recordDecided = "media apply 2\n" // all objects are created, the others can be replaced or removed
	recordVoid    = "media void  1\n"

	recordSuffix = ".group"
	maxRecord    = 16 << 20 // far more than the largest request needs
)

// An action is the kind of a commit's change of one name.
type action string

const (
	create  action = "create"
	replace action = "replace"
	remove  action = "remove"
)

// intent is one name that a commit is about to change.
type intent struct {
	Do  action `json:"do"`
	Key string `json:"key"`
	// ETag identifies the object that is created or removed, or that replaces the one of Old.
	ETag string `json:"etag"`
	Old  string `json:"old,omitempty"`
	// Aside is the name of the new object of a replacement in the scratch folder, and otherwise a
	// name for an object that loses its own one.
	Aside string `json:"aside"`
}

// valid reports whether a commit could have written the intent.
func (i intent) valid() bool {
	known := i.Do == create || i.Do == replace || i.Do == remove
	return known && i.ETag != "" && (i.Old != "") == (i.Do == replace) && storagedrivers.ValidKey(i.Key) == nil &&
		i.Aside != "" && strings.Trim(i.Aside, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// line returns the intent as a line of a record.
func (i intent) line() []byte {
	data, err := json.Marshal(i)
	if err != nil {
		panic(err) // strings alone
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(data), data)
}

// parseRecord returns the state of a record and its intents; none if it is void.
func parseRecord(data []byte) (state string, intents []intent) {
	if len(data) < len(recordOpen) {
		return recordVoid, nil
	}
	state = string(data[:len(recordOpen)])
	if state != recordOpen && state != recordDecided {
		return state, nil
	}
	rest := data[len(recordOpen):]
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		sum, payload, ok := bytes.Cut(line, []byte(" "))
		if !whole || !ok || len(sum) != 8 {
			return state, intents
		}
		want, err := strconv.ParseUint(string(sum), 16, 32)
		if err != nil || uint32(want) != crc32.ChecksumIEEE(payload) {
			return state, intents
		}
		var one intent
		if json.Unmarshal(payload, &one) != nil || !one.valid() {
			return state, intents
		}
		intents, rest = append(intents, one), after
	}
}

// newRecord creates an open record, which is not durable yet.
func newRecord(root *os.Root, name string, intents []intent) (*record, error) {
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making a record: %w", mapError(err))
	}
	r := &record{root, name, file}
	data := []byte(recordOpen)
	for _, one := range intents {
		data = append(data, one.line()...)
	}
	if _, err := file.Write(data); err != nil {
		return nil, errors.Join(fmt.Errorf("writing a record: %w", mapError(err)), r.close())
	}
	return r, nil
}

// set changes the state.
func (r *record) set(state string) error {
	if _, err := r.file.WriteAt([]byte(state), 0); err != nil {
		return fmt.Errorf("writing a record: %w", mapError(err))
	}
	return nil
}

// close removes the file. This need not be durable, because the record is void.
func (r *record) close() error {
	return errors.Join(r.file.Close(), r.root.Remove(r.name))
}

// recovery undoes or completes commits of the process that holds the lock of a scratch folder: of
// this process, or of one that has died, with its lock.
type recovery struct {
	folder  *folder
	scratch string // its name
}

// asideNew is the suffix of a name that an object gets in the scratch folder before it loses or
// gets its own name.
const asideNew = ".new"

// all recovers all commits in the scratch folder that are not void.
func (r *recovery) all() error {
	entries, err := fs.ReadDir(r.folder.root.FS(), r.scratch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed []error
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), recordSuffix) {
			continue
		}
		if err := r.one(r.scratch + "/" + entry.Name()); err != nil {
			failed = append(failed, fmt.Errorf("recovering an aborted upload: %w", err))
		}
	}
	return errors.Join(failed...)
}

// one recovers a commit and removes its record. If that fails, the record stays for the next
// attempt. It is idempotent.
func (r *recovery) one(name string) error {
	file, err := r.folder.root.OpenFile(name, os.O_RDWR|openNonblock, 0)
	if err != nil {
		return err
	}
	rec := &record{r.folder.root, name, file}
	data, err := io.ReadAll(io.LimitReader(file, maxRecord))
	state, intents := parseRecord(data)
	if err == nil {
		err = r.apply(state, intents)
	}
	if err == nil {
		err = r.folder.syncFolders(intents)
	}
	r.folder.mark("recovered")
	if err == nil {
		err = rec.set(recordVoid)
	}
	if err == nil && r.folder.sync { // a record that reappears would undo a later change
		err = r.folder.syncBy(syncData, file)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	r.folder.mark("void")
	return rec.close()
}

// apply undoes the intents of an open record, and completes those of a decided one. An object that
// another process has stored since stays.
func (r *recovery) apply(state string, intents []intent) (failed error) {
	for _, one := range intents {
		var err error
		switch {
		case one.Do == create && state == recordOpen, one.Do == remove && state == recordDecided:
			_, err = r.takeAway(one)
		case one.Do == replace && state == recordDecided:
			there, statErr := r.folder.root.Lstat(one.Key)
			if statErr == nil && etag(there) == one.Old {
				// Without its new object the process has given up, but could not void the record.
				if err = r.replace(one); errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
			} else {
				err = ignoreMissing(statErr)
			}
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// replace gives the new object of a replacement its name. The object keeps its name in the scratch
// folder until the commit ends: after a power failure the two may be lost one without the other.
func (r *recovery) replace(one intent) error {
	aside := r.scratch + "/" + one.Aside
	if err := r.folder.root.Link(aside, aside+asideNew); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	r.folder.mark("named aside")
	err := r.folder.root.Rename(aside+asideNew, one.Key)
	if r.folder.isGone(aside+asideNew, err) { // it was deleted since the commit was decided
		return nil
	}
	return err
}

// takeAway removes an object, and reports whether it did: another process may have removed or
// replaced it. It checks the object once more when that has lost its name.
func (r *recovery) takeAway(one intent) (taken bool, err error) {
	if taken, err = r.returnAside(one); err != nil { // an earlier attempt may have moved another one
		return false, err
	}
	there, err := r.folder.root.Lstat(one.Key) // after a power failure an object may have both names
	if err != nil || etag(there) != one.ETag {
		return taken, ignoreMissing(err)
	}
	if err = r.folder.root.Rename(one.Key, r.scratch+"/"+one.Aside+asideNew); err != nil {
		return taken, ignoreMissing(err)
	}
	r.folder.mark("taken away")
	return r.returnAside(one)
}

// returnAside removes the aside name of an object that is removed, and reports whether there was
// one. An object of another process gets its name back, and so does a folder with such objects.
func (r *recovery) returnAside(one intent) (removed bool, err error) {
	aside := r.scratch + "/" + one.Aside + asideNew
	moved, err := r.folder.root.Lstat(aside)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && moved.IsDir() {
		return false, r.folder.root.Rename(aside, one.Key)
	}
	own := err == nil && etag(moved) == one.ETag
	if err == nil && !own {
		err = r.giveBack(aside, one.Key)
	}
	if err != nil {
		return false, err
	}
	return own, r.folder.root.Remove(aside)
}

// giveBack links an object to its name again, unless another one has it. The folder of the name may
// have been empty, and removed.
func (r *recovery) giveBack(aside, key string) error {
	dir, err := r.folder.openDir(key)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err = r.folder.root.Link(aside, key); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// syncFolders makes the changed names of intents durable.
func (f *folder) syncFolders(intents []intent) error {
	names := folders(intents)
	failed := make([]error, len(names))
	for i, name := range names {
		failed[i] = f.syncDir(name, true)
	}
	return errors.Join(failed...)
}

// folders returns the folders in which intents change names.
func folders(intents []intent) []string {
	names := make([]string, len(intents))
	for i, one := range intents {
		names[i] = path.Dir(one.Key)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
