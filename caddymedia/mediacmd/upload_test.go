package mediacmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestUploadInterrupted: the messages distinguish files that were not sent from files that may have
// been stored.
func TestUploadInterrupted(t *testing.T) {
	f := newFakeService(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	f.refuse["/api/upload/file"] = []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		interrupt(errors.New("a signal"))
		<-r.Context().Done()
	}}
	first, second := aFile(t, "a.txt", "x"), aFile(t, "b.txt", "x")
	var out bytes.Buffer
	cmd := uploadCommand()
	cmd.SetOut(&out)
	if err := cmd.ParseFlags([]string{
		"--json", "--parallel", "1", "--server", f.URL, "--api-key", "site", "--password-file", aFile(t, "password", "secret"),
	}); err != nil {
		t.Fatal(err)
	}
	cmd.SetContext(ctx)
	if err := cmd.RunE(cmd, []string{first, second}); !errors.Is(err, errReported) {
		t.Errorf("error %v, want %v", err, errReported)
	}
	messages := map[string]string{}
	for line := range strings.Lines(out.String()) {
		var result uploadResult
		if err := json.Unmarshal([]byte(line), &result); err != nil || result.Success {
			t.Fatalf("%v in %q", err, line)
		}
		messages[result.File] = result.Message
	}
	if messages[first] != "interrupted: it may have been stored" || messages[second] != "interrupted: it was not sent" {
		t.Errorf("%q", messages)
	}
}
