package storagecopy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// record is a line of the journal: an item that was copied and verified.
type record struct {
	Key  string `json:"key"`
	Size int64  `json:"size"`
	// ETag of the item. If the storage has none, Modified distinguishes generations.
	ETag     string    `json:"etag,omitempty"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
}

func recordOf(listed, source storagedrivers.Info, sum string) record {
	return record{Key: listed.Key, Size: source.Size, ETag: source.ETag, Modified: listed.ModTime, SHA256: sum}
}

// is reports whether an item in a list is the copied one.
func (r record) is(listed storagedrivers.Info) bool {
	if r.Size != listed.Size || r.ETag != listed.ETag {
		return false
	}
	return r.ETag != "" || r.Modified.Equal(listed.ModTime)
}

// head is the first line of a journal.
type head struct {
	Copy string `json:"copy"`
}

// Journal is a file of JSON lines about the copied items. Items are looked up in the order of their
// keys, which is nearly the order of the lines. So only the records around the current key are in
// memory.
type Journal struct {
	mu   sync.Mutex
	file *os.File

	blocks []*block // of what was there at the beginning, by their first keys
	near   []*block // those around the key that was looked up last
}

// block is a part of the file.
type block struct {
	offset, length int64
	first, last    string            // keys
	records        map[string]record // while the block is near
}

// blockLines is the number of lines of a block.
const blockLines = 4096

// OpenJournal opens the journal in a file, and creates the file if necessary. copied identifies the
// copy; the journal of another copy is an error.
func OpenJournal(path, copied string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: file}
	if err := j.read(copied); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, err), file.Close())
	}
	return j, nil
}

// read builds the index. It terminates a last line that was cut off when a process ended; the line
// is ignored from then on.
func (j *Journal) read(copied string) error {
	lines := bufio.NewReaderSize(j.file, bufferSize)
	var end int64
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && n == 0 && len(line) == 0 {
			return j.write(head{copied})
		}
		if n == 0 && !isHead(line, copied) {
			return errForeign
		}
		if errors.Is(err, io.EOF) {
			return j.ready(len(line) > 0)
		}
		if err != nil {
			return err
		}
		if n > 0 {
			j.index(n, end, line)
		}
		end += int64(len(line))
	}
}

// errForeign means that the file is no journal, or the journal of another copy.
var errForeign = errors.New("it is not the journal of this copy")

// ready completes the index. cut reports whether the last line is incomplete.
func (j *Journal) ready(cut bool) error {
	slices.SortFunc(j.blocks, func(a, b *block) int { return strings.Compare(a.first, b.first) })
	if !cut {
		return nil
	}
	_, err := j.file.WriteString("\n")
	return err
}

func isHead(line []byte, copied string) bool {
	var h head
	return json.Unmarshal(line, &h) == nil && h.Copy == copied
}

// index adds line n at offset to its block.
func (j *Journal) index(n int, offset int64, line []byte) {
	if n%blockLines == 1 {
		j.blocks = append(j.blocks, &block{offset: offset})
	}
	b := j.blocks[len(j.blocks)-1]
	b.length = offset + int64(len(line)) - b.offset
	var r record
	if json.Unmarshal(line, &r) != nil || r.Key == "" {
		return // damaged: the item is looked at
	}
	if b.first == "" || r.Key < b.first {
		b.first = r.Key
	}
	b.last = max(b.last, r.Key)
}

// knows reports whether an item was copied in its present state. Items must be looked up in the
// order of their keys.
func (j *Journal) knows(listed storagedrivers.Info) (bool, error) {
	if j == nil {
		return false, nil
	}
	for len(j.blocks) > 0 && j.blocks[0].first <= listed.Key {
		j.near = append(j.near, j.blocks[0])
		j.blocks = j.blocks[1:]
	}
	j.near = slices.DeleteFunc(j.near, func(b *block) bool { return b.last < listed.Key })
	known, newest := false, int64(-1)
	for _, b := range j.near {
		if err := j.load(b); err != nil {
			return false, err
		}
		if r, ok := b.records[listed.Key]; ok && b.offset > newest {
			known, newest = r.is(listed), b.offset
		}
	}
	return known, nil
}

func (j *Journal) load(b *block) error {
	if b.records != nil {
		return nil
	}
	raw := make([]byte, b.length)
	if _, err := j.file.ReadAt(raw, b.offset); err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	b.records = make(map[string]record, blockLines)
	for line := range bytes.Lines(raw) {
		var r record
		if json.Unmarshal(line, &r) == nil {
			b.records[r.Key] = r
		}
	}
	return nil
}

func (j *Journal) append(r record) error {
	if j == nil {
		return nil
	}
	return j.write(r)
}

// write appends a line with a single system call.
func (j *Journal) write(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// Close closes the file. The receiver may be nil.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
