package mediacmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// trashed is a version in the trash of the tests, and when it was removed.
type trashed struct {
	alias, filename string
	ago             time.Duration
}

// bin is what the trash has: two versions of an item, items of another folder and alias, and one
// whose time has ended.
var bin = []trashed{
	{"file/docs", "a.txt", time.Minute},
	{"file/docs", "sub/b.txt", 30 * time.Minute},
	{"file/docs", "a.txt", 3 * time.Hour},
	{"img/content", "c.png", 4 * time.Hour},
	{"file/docs", "old.txt", 24 * 365 * time.Hour},
}

// filledTrash writes a configuration file, and bin to the storage in the folder root. It
// returns the IDs of bin, and one that is not in the trash any more.
func filledTrash(t *testing.T) (config, root string, ids []string) {
	t.Helper()
	folder := t.TempDir()
	config = configFile(t, folder, []string{"main", "replacing"}, map[string]any{
		"trash":         "14d",
		"image_aliases": map[string]any{"content": map[string]any{"storage": "main"}},
		"file_aliases": map[string]any{
			"docs": map[string]any{"storage": "main"}, "none": map[string]any{"storage": "main", "trash": "off"},
			"over": map[string]any{"storage": "replacing"},
		},
	})
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	replacing := strings.Replace(string(text), `"replacing":{`, `"replacing":{"overwrite_strategy":"overwrite",`, 1)
	if err := os.WriteFile(config, []byte(replacing), 0o600); err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(folder, "main")
	now := time.Now()
	for _, one := range bin {
		alias := &item.Alias{Prefix: one.alias}
		removed := now.Add(-one.ago)
		kept := alias.NewKept(storagedrivers.Info{Key: alias.Key(one.filename), ModTime: removed.Add(-time.Hour), Size: 1536}, removed)
		stored(t, root, alias.TrashKey(kept))
		ids = append(ids, kept.ID())
	}
	docs := &item.Alias{Prefix: "file/docs"}
	gone := docs.NewKept(storagedrivers.Info{Key: docs.Key("gone.txt"), ModTime: now.Add(-time.Hour)}, now)
	return config, root, append(ids, gone.ID())
}

// jsonLines decodes the lines of a command, the last one apart.
func jsonLines[L, T any](t *testing.T, out string) (lines []L, totals T) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range all[:len(all)-1] {
		var one L
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		lines = append(lines, one)
	}
	if err := json.Unmarshal([]byte(all[len(all)-1]), &totals); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return lines, totals
}

// TestTrash: the flags select what is listed, and removed with --purge.
func TestTrash(t *testing.T) { // not parallel: Caddy has globals
	for _, tt := range []struct {
		args string // ID0 stands for the first ID of bin
		want []int  // indexes in bin, in the order of the list
	}{
		{"", []int{3, 0, 1, 2}},
		{"file/docs", []int{0, 1, 2}},
		{"file/docs --purge", []int{0, 1, 2}},
		{"img/content file/over", []int{3}},
		{"--folder sub/", []int{1}},
		{"file/docs --folder /", []int{0, 1, 2}},
		{"file/docs --folder su --purge", nil},
		{"file/docs --folder sub --purge", []int{1}},
		{"--filename a.txt", []int{0, 2}},
		{"--search B", []int{1}},
		{"--removed-within 1h", []int{0, 1}},
		{"--older-than 1h", []int{3, 2}},
		{"file/docs img/content --older-than 1h --purge", []int{2, 3}},
		{"--older-than 10m --removed-within 200m", []int{1, 2}},
		{"file/docs --id ID2 --id ID0", []int{2, 0}},
		{"file/docs --id ID1 --purge", []int{1}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			config, root, ids := filledTrash(t)
			args := append(strings.Fields(withIDs(tt.args, ids)), "--config", config, "--json")
			purge := slices.Contains(args, "--purge")
			out, messages, err := run(t, trashCommand(), args...)
			lines, totals := jsonLines[trashResult, trashTotals](t, out)
			want := trashTotals{Number: len(tt.want), Bytes: int64(1536 * len(tt.want))}
			if purge {
				want.Purged = want.Number
			}
			if err != nil || messages != "" || totals != want {
				t.Errorf("%v, %q, %+v, want %+v", err, messages, totals, want)
			}
			got, wanted := []string{}, []string{}
			for _, line := range lines {
				got = append(got, line.Alias+" "+line.ID)
				if kept, _ := item.KeptOf(line.ID); line.Filename != kept.Filename || !line.Removed.Equal(kept.Removed) || line.Size != 1536 ||
					!line.Stored.Equal(kept.Stored) || !line.ExpiresAt.Equal(kept.Removed.Add(14*24*time.Hour)) || line.Purged != purge {
					t.Errorf("%+v", line)
				}
			}
			for _, i := range tt.want {
				wanted = append(wanted, bin[i].alias+" "+ids[i])
			}
			if purge { // several at a time
				slices.Sort(got)
				slices.Sort(wanted)
			}
			if !slices.Equal(got, wanted) {
				t.Errorf("%q, want %q", got, wanted)
			}
			if files := filesIn(t, root); len(files) != len(bin)-want.Purged {
				t.Errorf("%q is left", files)
			}
		})
	}
}

// withIDs replaces ID0 to ID9 by IDs.
func withIDs(args string, ids []string) string {
	for i, id := range ids {
		args = strings.ReplaceAll(args, fmt.Sprint("ID", i), id)
	}
	return args
}

// TestTrashForPeople: the command prints a table and the totals, and only the numbers with --size.
func TestTrashForPeople(t *testing.T) { // not parallel: Caddy has globals
	config, _, ids := filledTrash(t)
	kept, _ := item.KeptOf(ids[1])
	removed := kept.Removed.Local().Format(time.DateTime)
	for _, tt := range []struct{ args, want string }{
		{"--size", "img/content  1  1.5 KiB\nfile/docs    3  4.5 KiB\nfile/over    0  0 B\n4 versions, 6.0 KiB\n"},
		{"file/docs --size --older-than 1h", "file/docs  1  1.5 KiB\n1 versions, 1.5 KiB\n"},
		{"--search b", "file/docs  sub/b.txt  1.5 KiB  " + removed + "  " + ids[1] + "\n1 versions, 1.5 KiB\n"},
		{"img/content --older-than 0s -q", ""},
		{"img/content --size --json", `{"alias":"img/content","number":1,"bytes":1536,"purged":0,"failed":0}` + "\n" + `{"number":1,"bytes":1536,"purged":0,"failed":0}` + "\n"},
		{"file/over --removed-within 1h --json", `{"number":0,"bytes":0,"purged":0,"failed":0}` + "\n"},
		{"file/docs --search none --purge", "0 versions, 0 B\n0 purged, 0 failed\n"},
		{"file/docs --folder sub --purge", "file/docs  sub/b.txt  1.5 KiB  " + removed + "  " + ids[1] + "  purged\n1 versions, 1.5 KiB\n1 purged, 0 failed\n"},
	} {
		out, messages, err := run(t, trashCommand(), append(strings.Fields(tt.args), "--config", config)...)
		if out != tt.want || messages != "" || err != nil {
			t.Errorf("%q: %q, %q, %v; want %q", tt.args, out, messages, err, tt.want)
		}
	}
}

// TestRestore: the flags select what is restored: the last removed version of each item, or that of
// an ID. It stays in the trash. What cannot be restored does not stop the rest.
func TestRestore(t *testing.T) { // not parallel: Caddy has globals
	for _, tt := range []struct {
		args  string
		taken string // by an item with other bytes
		files []string
		fails []string // filenames
	}{
		{args: "--folder /", files: []string{"a.txt", "sub/b.txt"}},
		{args: "--folder sub", files: []string{"sub/b.txt"}},
		{args: "--filename a.txt", files: []string{"a.txt"}},
		{args: "--filename none.txt"},
		{args: "--search b", files: []string{"sub/b.txt"}},
		{args: "--removed-within 10m", files: []string{"a.txt"}},
		{args: "--id ID2", files: []string{"a.txt"}},
		{args: "--id ID4 --id ID1", files: []string{"sub/b.txt"}, fails: []string{"old.txt"}},
		{args: "--id ID5 --id ID1", files: []string{"sub/b.txt"}, fails: []string{"gone.txt"}},
		{args: "--folder /", taken: "a.txt", files: []string{"a.txt", "sub/b.txt"}, fails: []string{"a.txt"}},
		{args: "--folder / --rename", taken: "a.txt", files: []string{"a-", "a.txt", "sub/b.txt"}},
		{args: "--folder / --dry-run", taken: "a.txt", files: []string{"a.txt"}},
	} {
		t.Run(tt.args+" "+tt.taken, func(t *testing.T) {
			config, root, ids := filledTrash(t)
			if tt.taken != "" {
				taken := filepath.Join(root, "file/docs", tt.taken)
				if err := errors.Join(os.MkdirAll(filepath.Dir(taken), 0o700), os.WriteFile(taken, []byte("other"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			args := append(strings.Fields("file/docs "+withIDs(tt.args, ids)), "--config", config, "--json")
			out, messages, err := run(t, restoreCommand(), args...)
			lines, totals := jsonLines[restoreResult, restoreTotals](t, out)
			var fails []string
			for _, line := range lines {
				if line.Message != "" {
					fails = append(fails, line.Filename)
				}
				if dry := totals.DryRun; line.Restored == (dry || line.Message != "") || line.Taken != (dry && line.Filename == tt.taken) {
					t.Errorf("%+v", line)
				}
			}
			restored := len(lines) - len(fails)
			want := restoreTotals{
				Alias: "file/docs", DryRun: slices.Contains(args, "--dry-run"), Restored: restored, Bytes: int64(1536 * restored), Failed: len(fails), Complete: true,
			}
			if messages != "" || errors.Is(err, errReported) != (tt.fails != nil) || !slices.Equal(fails, tt.fails) || totals != want {
				t.Errorf("%v, %q, %q and %+v, want %+v", err, messages, fails, totals, want)
			}
			files := slices.DeleteFunc(filesIn(t, root), func(name string) bool { return !strings.HasPrefix(name, "file/docs/") })
			if !slices.EqualFunc(files, tt.files, func(file, want string) bool { return strings.HasPrefix(file, "file/docs/"+want) }) ||
				len(filesIn(t, root)) != len(bin)+len(files) {
				t.Errorf("%q, want %q", filesIn(t, root), tt.files)
			}
		})
	}
}

// TestRestoreAgain: what is restored already is a success without a change, and --replace replaces
// another item, which goes to the trash.
func TestRestoreAgain(t *testing.T) { // not parallel: Caddy has globals
	config, root, _ := filledTrash(t)
	root = filepath.Join(filepath.Dir(root), "replacing")
	over := &item.Alias{Prefix: "file/over"}
	for _, ago := range []time.Duration{time.Hour, 2 * time.Hour} {
		removed := time.Now().Add(-ago)
		kept := over.NewKept(storagedrivers.Info{Key: over.Key("x.txt"), ModTime: removed.Add(-time.Hour), Size: 1536}, removed)
		stored(t, root, over.TrashKey(kept))
	}
	const before = 2
	item := filepath.Join(root, "file/over/x.txt")
	for _, tt := range []struct {
		change, args, out string
		files             int // more than before
	}{
		{"", "--removed-within 90m", "restored  1 items  1.5 KiB\nfailed    0 items\n", 1},
		{"", "--filename x.txt", "restored  1 items  1.5 KiB\nfailed    0 items\n", 1},
		{"other", "--filename x.txt", "restored  0 items  0 B\nfailed    1 items\n", 1},
		{"other", "--filename x.txt --dry-run", ", its name is taken\nwould be restored  1 items  1.5 KiB\nfailed             0 items\n", 1},
		{"other", "--filename x.txt --replace", "restored  1 items  1.5 KiB\nfailed    0 items\n", 2},
	} {
		if tt.change != "" {
			if err := os.WriteFile(item, []byte(tt.change), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, messages, err := run(t, restoreCommand(), append(strings.Fields("file/over "+tt.args), "--config", config)...)
		if !strings.HasSuffix(out, tt.out) || (err == nil) != (messages == "") || strings.HasPrefix(messages, "x.txt: ") != (err != nil) {
			t.Errorf("%q: %q, %q, %v", tt.args, out, messages, err)
		}
		if files := filesIn(t, root); len(files) != before+tt.files {
			t.Errorf("%q: %d files more: %q", tt.args, len(files)-before, files)
		}
	}
	if there, err := os.ReadFile(item); len(there) != 1536 {
		t.Errorf("%q, %v", there, err)
	}
}

// TestTrashGone: the list of a version that is gone fails, and its removal by another process
// meanwhile is no failure.
func TestTrashGone(t *testing.T) { // not parallel: Caddy has globals
	config, _, ids := filledTrash(t)
	for _, args := range [][]string{nil, {"--purge"}} {
		out, _, err := run(t, trashCommand(), append([]string{"file/docs", "--id", ids[5], "--config", config, "--json"}, args...)...)
		lines, totals := jsonLines[trashResult, trashTotals](t, out)
		if want := (trashTotals{Failed: 1}); !errors.Is(err, errReported) || totals != want || len(lines) != 1 || lines[0].Message != "there is no such item" {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
	kept, _ := item.KeptOf(ids[5])
	var w trashing
	cmd := inSession(new(cobra.Command), func(ctx context.Context, s *session, _ []string) error {
		w = trashing{session: s, permit: s.permit(), purge: true}
		alias, err := s.trashAlias("file/docs")
		return errors.Join(err, w.remove(ctx, alias, service.InTrash{Kept: kept}))
	})
	if _, messages, err := run(t, cmd, "--config", config); err != nil || messages != "" || w.totals != (trashTotals{}) {
		t.Errorf("%q, %v, %+v", messages, err, w.totals)
	}
}

// TestTrashInterrupted: an interrupted command says so, and has done nothing.
func TestTrashInterrupted(t *testing.T) { // not parallel: Caddy has globals
	config, root, _ := filledTrash(t)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for name, tt := range map[string]struct {
		cmd   *cobra.Command
		flags string
		out   string
		err   error
	}{
		"purge":   {trashCommand(), "--purge", "", errInterrupted},
		"restore": {restoreCommand(), "--folder /", `"complete":false,"stopped":"interrupted"}` + "\n", errReported},
	} {
		var out strings.Builder
		tt.cmd.SilenceUsage, tt.cmd.SilenceErrors = true, true
		tt.cmd.SetOut(&out)
		tt.cmd.SetArgs(append([]string{"file/docs", "--config", config, "--json"}, strings.Fields(tt.flags)...))
		if err := tt.cmd.ExecuteContext(ctx); !errors.Is(err, tt.err) || !strings.HasSuffix(out.String(), tt.out) {
			t.Errorf("%s: %v, %q", name, err, out.String())
		}
	}
	if files := filesIn(t, root); len(files) != len(bin) {
		t.Errorf("%q", files)
	}
}

// TestTrashArguments: wrong arguments are refused before anything is done.
func TestTrashArguments(t *testing.T) { // not parallel: Caddy has globals
	config, root, ids := filledTrash(t)
	const at = " --at 2026-11-29T12:00:00Z"
	for args, want := range map[string]string{
		"trash file/none":                          "the alias file/none has no trash: add trash to its configuration first",
		"trash docs":                               `there is no alias "docs" in the configuration; write img/<name> or file/<name>`,
		"trash --purge":                            "--purge needs the names of aliases",
		"trash --id ID0":                           "--id needs the name of one alias",
		"trash file/docs --id x":                   `--id "x" is not the ID of an item in the trash`,
		"trash file/docs --id ID0 --folder x":      "[folder id]",
		"trash --removed-within 0s":                "--removed-within must be longer than 0",
		"trash --older-than -1h":                   "--older-than must not be negative",
		"trash file/docs --size --purge":           "[purge size]",
		"restore":                                  "restore needs <alias>",
		"restore --at now":                         `--at "now" is no time`,
		"restore" + at + " --id ID0":               "[at id]",
		"restore" + at + " --names x":              "--names needs the name of an alias",
		"restore file/docs" + at + " --names none": "reading --names",
		"restore file/docs --names x --folder x":   "--names needs --at",
		"restore file/none" + at:                   "the alias file/none has no trash",
		"restore file/docs":                        "at least one of the flags",
		"restore file/docs --older-than 1h":        "at least one of the flags",
		"restore file/none --folder /":             "the alias file/none has no trash",
		"restore file/over --folder / --rename":    "the items of file/over are replaced: use --replace in place of --rename",
		"restore file/docs --folder / --replace":   "the items of file/docs are never replaced: use --rename in place of --replace",
		"restore file/docs --filename a --search":  "flag needs an argument",
	} {
		name, rest, _ := strings.Cut(withIDs(args, ids), " ")
		cmd := trashCommand()
		if name == "restore" {
			cmd = restoreCommand()
		}
		_, _, err := run(t, cmd, append([]string{"--config", config}, strings.Fields(rest)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	if files := filesIn(t, root); len(files) != len(bin) {
		t.Errorf("%q", files)
	}
}
