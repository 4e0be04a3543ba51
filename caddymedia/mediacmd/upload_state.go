package mediacmd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// uploadStates keeps the addresses of unfinished resumable uploads between runs, readable by their
// owner only. A failure to read or write one only costs that the file is sent from its beginning.
type uploadStates struct{ folder string }

// uploadState is the content of a file of [uploadStates].
type uploadState struct {
	Address   string `json:"address"`    // path on the server
	ExpiresAt int64  `json:"expires_at"` // Unix seconds
}

// newUploadStates returns the states beside the tokens, in Caddy's data folder.
func newUploadStates() uploadStates {
	return uploadStates{filepath.Join(caddy.AppDataDir(), appName, "upload_states")}
}

// path returns the file for an upload that is identified by all of parts.
func (s uploadStates) path(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return filepath.Join(s.folder, hex.EncodeToString(sum[:16])+".json")
}

// read returns the state in a file, and false if there is none that is still valid.
func (s uploadStates) read(path string, now time.Time) (uploadState, bool) {
	var state uploadState
	raw, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(raw, &state) != nil {
		return uploadState{}, false
	}
	return state, state.Address != "" && time.Unix(state.ExpiresAt, 0).After(now)
}

// write stores a state. It replaces the file atomically.
func (s uploadStates) write(path string, state uploadState) bool {
	raw, err := json.Marshal(state)
	return err == nil && replaceFile(path, raw) == nil
}

// remove removes a state.
func (s uploadStates) remove(path string) {
	_ = os.Remove(path) // it expires
}

// clean removes the states that have expired or cannot be read.
func (s uploadStates) clean(now time.Time) {
	paths, _ := filepath.Glob(filepath.Join(s.folder, "*.json")) // the pattern is valid
	for _, path := range paths {
		if _, ok := s.read(path, now); !ok {
			s.remove(path)
		}
	}
}

// replaceFile writes a file that only its owner may read. It replaces an earlier one atomically.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "new-*") // for the owner only
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name()) // nothing else is left to be done about it
	}
	return err
}
