package mediacmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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

// TestUploadFolder: a folder is sent as sub folders, without hidden files and links.
func TestUploadFolder(t *testing.T) {
	home := t.TempDir()
	tree := filepath.Join(home, "holiday")
	stored(t, tree, "a.txt", "2026/b.txt", "2026/11/c.txt", ".hidden", ".git/config")
	stored(t, home, "alone.txt", ".named")
	for link, to := range map[string]string{"link.txt": "a.txt", "2026/folder": "..", "../shortcut": "holiday"} {
		if err := os.Symlink(to, filepath.Join(tree, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		args     []string
		want     []string // sub folder and name
		contains string   // in the output
	}{
		"a folder":             {[]string{"holiday"}, []string{"holiday a.txt", "holiday/2026 b.txt", "holiday/2026/11 c.txt"}, "3 of 3 files stored\nleft out: 4\n"},
		"with a slash":         {[]string{"holiday/2026/11/"}, []string{"11 c.txt"}, "1 of 1 files stored\n"},
		"below a sub folder":   {[]string{"holiday/2026/11", "--sub-folder", "x/y"}, []string{"x/y/11 c.txt"}, "1 of 1"},
		"in the root":          {[]string{"holiday/2026/11", "--sub-folder", "/"}, []string{"11 c.txt"}, "1 of 1"},
		"with files":           {[]string{"alone.txt", "holiday/2026/11", ".named"}, []string{" alone.txt", "11 c.txt", " .named"}, "3 of 3"},
		"a link to a folder":   {[]string{"shortcut"}, []string{"shortcut a.txt", "shortcut/2026 b.txt", "shortcut/2026/11 c.txt"}, "3 of 3"},
		"the working folder":   {[]string{"."}, []string{"home alone.txt", "home/holiday a.txt", "home/holiday/2026 b.txt", "home/holiday/2026/11 c.txt"}, "4 of 4"},
		"left out, with words": {[]string{"holiday"}, []string{"holiday a.txt", "holiday/2026 b.txt", "holiday/2026/11 c.txt"}, "holiday/.git: left out, it is hidden or not a regular file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(home)
			f := newFakeService(t)
			args := append(test.args, "--server", f.URL, "--api-key", "site", "--password-file", aFile(t, "password", "secret"))
			out, messages, err := run(t, uploadCommand(), args...)
			if err != nil || !strings.Contains(out, test.contains) {
				t.Fatalf("%q, %q, error %v, want %q", out, messages, err, test.contains)
			}
			got := make([]string, 0, len(f.forms))
			for _, form := range f.forms {
				got = append(got, strings.Join(form.Value["sub_folder"], ",")+" "+form.File["files[]"][0].Filename)
			}
			want := make([]string, len(test.want))
			for i := range want {
				want[i] = strings.Replace(test.want[i], "home", filepath.Base(home), 1)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}
