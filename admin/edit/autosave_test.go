package edit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestSyncAutosave: the saved configuration is synced after each change that is made, and only then.
// A change stands if that fails, which the log says.
func TestSyncAutosave(t *testing.T) {
	t.Parallel()
	core, log := observer.New(zap.WarnLevel)
	e := editorOf(t, &admin{body: `{"image_aliases":{"b":{}}}`})
	synced, failure := 0, error(nil)
	e.log, e.sync = zap.New(core), func(string) error { synced++; return failure }
	add := Change{Section: FileAliases, Name: "a", Condition: Condition{New: true}, Value: object{}}

	for i, change := range []func() error{
		func() error { _, err := e.Put(t.Context(), add); return err },
		func() error { return e.Delete(t.Context(), FileAliases, "a", Condition{Tags: "*"}) },
		func() error { failure = errors.New("disk"); _, err := e.Put(t.Context(), add); return err },
	} {
		if err := change(); err != nil || synced != i+1 || log.Len() != i/2 {
			t.Errorf("change %d: error %v, %d syncs, log %v", i, err, synced, log.All())
		}
	}
	if _, err := e.Put(t.Context(), add); err == nil || synced != 3 {
		t.Errorf("a refused change: error %v, %d syncs", err, synced)
	}
}

func TestSyncFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "autosave.json")
	if err := syncFile(file); err != nil {
		t.Errorf("missing: %v", err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syncFile(file); err != nil {
		t.Errorf("there: %v", err)
	}
	if err := syncFile(folder); err == nil {
		t.Error("a folder in its place was synced")
	}
}
