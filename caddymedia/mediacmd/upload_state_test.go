package mediacmd

import (
	"os"
	"testing"
	"time"
)

// TestUploadStates: a state is found until it expires, by its own key alone. Cleaning removes those
// that are of no use.
func TestUploadStates(t *testing.T) {
	t.Parallel()
	states := uploadStates{t.TempDir()}
	kept, expired, damaged := states.path("a", "b"), states.path("ab", ""), states.path("c")
	for path, expires := range map[string]time.Time{kept: noon.Add(time.Minute), expired: noon} {
		if !states.write(path, uploadState{"/api/x", expires.Unix()}) {
			t.Fatalf("%s is not written", path)
		}
	}
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{kept: true, expired: false, damaged: false, states.path("none"): false} {
		if state, ok := states.read(path, noon); ok != want || ok && state.Address != "/api/x" {
			t.Errorf("%s: %+v, %v", path, state, ok)
		}
	}
	states.clean(noon)
	left, err := os.ReadDir(states.folder)
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, error %v", left, err)
	}
}
