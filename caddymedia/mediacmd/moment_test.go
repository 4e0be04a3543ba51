package mediacmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/moment"
)

// back returns the count of so many items of the tests.
func back(restored, removed int) moment.Tally {
	return moment.Tally{
		Restored: moment.Items{Items: restored, Bytes: int64(1536 * restored)}, Removed: moment.Items{Items: removed, Bytes: int64(1536 * removed)},
	}
}

// TestRestoreAt: everything becomes what it was 45 minutes ago, in the aliases, or in the folder,
// that are named. Of the names in a list, those that will be missing are told.
func TestRestoreAt(t *testing.T) { // not parallel: Caddy has globals
	for _, tt := range []struct {
		args  string
		files []string // of the alias afterwards; an item that came later is new.txt
		want  momentTotals
	}{
		{"file/docs", []string{"a.txt", "sub/b.txt"}, momentTotals{Tally: back(2, 1)}},
		{"", []string{"a.txt", "sub/b.txt"}, momentTotals{Tally: back(2, 1)}},
		{"file/docs/sub", []string{"new.txt", "sub/b.txt"}, momentTotals{Folder: "sub", Tally: back(1, 0)}},
		{"file/docs --folder sub", []string{"new.txt", "sub/b.txt"}, momentTotals{Folder: "sub", Tally: back(1, 0)}},
		{"file/docs --dry-run", []string{"new.txt"}, momentTotals{DryRun: true, Tally: back(2, 1)}},
		{
			"file/docs --dry-run --names NAMES",
			[]string{"new.txt"},
			momentTotals{DryRun: true, Tally: back(2, 1), Missing: []string{"new.txt", "../x", "none.txt"}},
		},
	} {
		t.Run(tt.args, func(t *testing.T) {
			config, root, _ := filledTrash(t)
			stored(t, root, "file/docs/new.txt")
			time.Sleep(50 * time.Millisecond) // what is stored in the moment of the command stays
			names := filepath.Join(t.TempDir(), "names")
			if err := os.WriteFile(names, []byte("a.txt\r\nnew.txt\n\n../x\nnone.txt"), 0o600); err != nil {
				t.Fatal(err)
			}
			tt.want.Alias, tt.want.Complete = "file/docs", true
			tt.want.At = time.Now().Add(-45 * time.Minute).UTC().Truncate(time.Second)
			args := strings.Fields(strings.ReplaceAll(tt.args, "NAMES", names))
			out, messages, err := run(t, restoreCommand(), append(args, "--at", tt.want.At.Format(time.RFC3339), "--config", config, "--json")...)
			if errors.Is(err, errReported) != (tt.want.Missing != nil) || messages != "" {
				t.Errorf("%v, %q", err, messages)
			}
			lines := slices.DeleteFunc(strings.SplitAfter(out, "\n"), func(line string) bool {
				return strings.Contains(line, `"alias":"`) && !strings.Contains(line, `"file/docs"`)
			})
			results, totals := jsonLines[momentResult, momentTotals](t, strings.Join(lines, ""))
			if totals.Began.IsZero() {
				t.Errorf("%+v", totals)
			}
			totals.Began = time.Time{}
			isEqual := slices.Equal(totals.Missing, tt.want.Missing)
			totals.Missing, tt.want.Missing = nil, nil
			if !isEqual || fmt.Sprint(totals) != fmt.Sprint(tt.want) || len(results) != totals.Restored.Items+totals.Removed.Items {
				t.Errorf("%s, want %+v", out, tt.want)
			}
			files := slices.DeleteFunc(filesIn(t, root), func(name string) bool { return !strings.HasPrefix(name, "file/docs/") })
			if !slices.EqualFunc(files, tt.files, func(file, want string) bool { return file == "file/docs/"+want }) {
				t.Errorf("%q, want %q", files, tt.files)
			}
		})
	}
}

// TestRestoreAsItWas: what the present options of the alias refuse fails, and comes back with
// --as-it-was.
func TestRestoreAsItWas(t *testing.T) { // not parallel: Caddy has globals
	for _, args := range []string{"file/docs --folder /", "file/docs --at " + time.Now().Add(-45*time.Minute).Format(time.RFC3339)} {
		config, root, _ := filledTrash(t)
		text, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), `"docs":{`, `"docs":{"extensions":["pdf"],`, 1)
		if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		before := len(filesIn(t, root))
		for _, flags := range []string{"", "--as-it-was"} {
			out, messages, err := run(t, restoreCommand(), append(strings.Fields(args+" "+flags), "--config", config)...)
			files, want := len(filesIn(t, root))-before, 0
			if flags != "" {
				want = 2
			}
			if files != want || (err == nil) != (flags != "") {
				t.Errorf("%s %s: %d files, %v: %q %q", args, flags, files, err, out, messages)
			}
		}
	}
}

// TestRestoreAtTold: people read of which alias and time the numbers are, and are not advised to
// repeat what cannot succeed.
func TestRestoreAtTold(t *testing.T) { // not parallel: Caddy has globals
	config, _, _ := filledTrash(t)
	for ago, message := range map[time.Duration]string{
		45 * time.Minute: "", -time.Hour: "Stopped: the time is in the future\n", 1000 * time.Hour: "Stopped: the trash reaches back to ",
	} {
		at := time.Now().Add(-ago).UTC().Format(time.RFC3339)
		out, messages, err := run(t, restoreCommand(), "--at", at, "--folder", "sub", "--dry-run", "--config", config)
		if errors.Is(err, errReported) != (message != "") || !strings.HasPrefix(messages, message) || strings.Contains(messages, "again") {
			t.Errorf("%v, %q, want %q", err, messages, message)
		}
		for _, alias := range []string{"file/docs", "file/over", "img/content"} {
			if want := alias + "/sub at " + at + "\n"; strings.Count("\n"+out, "\n"+want) != 1 {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	}
}
