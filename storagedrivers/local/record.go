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
	"strconv"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// record is a file in the scratch folder that lists the intended changes of a group. It is durable
// before the first name of the group changes, and void before the group is acknowledged. If its
// process has died, a record that is not void is undone.
//
// The first line is recordOpen or recordVoid. Each following line is one intent, as a checksum and
// JSON. An incomplete line ends the record: its name was not changed.
type record struct {
	root *os.Root
	name string
	file *os.File
}

// Both states of a record have the same length, so that a change overwrites a single block.
const (
	recordOpen = "media group 1\n"
	recordVoid = "media void  1\n"

	recordSuffix = ".group"
	maxRecord    = 16 << 20 // far more than the largest request needs
)

// An action is the kind of a group's change of one name.
type action string

const (
	create  action = "create"
	replace action = "replace"
	remove  action = "remove"
)

// intent is one name that a group is about to change.
type intent struct {
	Do  action `json:"do"`
	Key string `json:"key"`
	// ETag identifies the new object.
	ETag string `json:"etag,omitempty"`
	// Aside is the name in the scratch folder that the replaced or removed object gets.
	Aside string `json:"aside"`
}

// valid reports whether a group could have written the intent.
func (i intent) valid() bool {
	known := i.Do == create || i.Do == replace || i.Do == remove
	return known && (i.ETag != "" || i.Do == remove) && storagedrivers.ValidKey(i.Key) == nil &&
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

// parseRecord returns the intents of a record; none if it is void.
func parseRecord(data []byte) []intent {
	rest, ok := bytes.CutPrefix(data, []byte(recordOpen))
	if !ok {
		return nil
	}
	var intents []intent
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		sum, payload, ok := bytes.Cut(line, []byte(" "))
		if !whole || !ok || len(sum) != 8 {
			return intents
		}
		want, err := strconv.ParseUint(string(sum), 16, 32)
		if err != nil || uint32(want) != crc32.ChecksumIEEE(payload) {
			return intents
		}
		var one intent
		if json.Unmarshal(payload, &one) != nil || !one.valid() {
			return intents
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

// add appends an intent.
func (r *record) add(one intent) error {
	if _, err := r.file.Write(one.line()); err != nil {
		return fmt.Errorf("writing a record: %w", mapError(err))
	}
	return nil
}

// void marks the group as complete or undone.
func (r *record) void() error {
	if _, err := r.file.WriteAt([]byte(recordVoid), 0); err != nil {
		return fmt.Errorf("closing a record: %w", mapError(err))
	}
	return nil
}

// close removes the file. This need not be durable, because the record is void.
func (r *record) close() error {
	return errors.Join(r.file.Close(), r.root.Remove(r.name))
}

// openRecord opens the record of a process that has died, and returns it with its intents.
func openRecord(root *os.Root, name string) (*record, []intent, error) {
	file, err := root.OpenFile(name, os.O_RDWR|openNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return &record{root, name, file}, parseRecord(data), nil
}

// is returns a function that reports whether an object has the entity tag.
func is(tag string) func(fs.FileInfo) bool {
	return func(stat fs.FileInfo) bool { return etag(stat) == tag }
}
