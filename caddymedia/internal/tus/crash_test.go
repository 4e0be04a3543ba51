package tus_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/testservice"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
)

// crash is a process that dies during the last request of an upload.
type crash struct {
	Root    string // the folder of the storages
	Tokens  string // that of the token store
	Driver  string // the key of crashDrivers
	Alias   string
	Address string // of the upload
	Steps   int    // operations of the storage before the end of the process
}

// crashDrivers are drivers with an object that grows, and with pieces. The names of an item are
// committed together, or one after the other.
var crashDrivers = map[string]func(*local.Driver) storagedrivers.Driver{
	"growing": func(d *local.Driver) storagedrivers.Driver { return d },
	"pieces, together": func(d *local.Driver) storagedrivers.Driver {
		return struct {
			storagedrivers.Driver
			storagedrivers.Stager
			storagedrivers.Sweeper
		}{d, d, d}
	},
	"pieces": func(d *local.Driver) storagedrivers.Driver { return struct{ storagedrivers.Driver }{d} },
}

// crashEnv is the environment variable with the crash of a child process, and crashCode its exit
// code.
const (
	crashEnv  = "MEDIA_TEST_CRASH"
	crashCode = 3
)

// site returns a new site on the folder. killed, if set, ends the process.
func (c crash) site(t *testing.T, killed func()) *site {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(config *media.Config) {
		config.Storages = slices.DeleteFunc(config.Storages, func(s media.Storage) bool { return s.Name != "main" && s.Name != "replacing" })
		for i := range config.Storages {
			driver := local.New(local.Config{Root: c.Root, Sync: new(false)}, slog.New(slog.DiscardHandler))
			config.Storages[i].Driver = crashDrivers[c.Driver](driver)
			config.Storages[i].Options = storagedrivers.Options{Location: storagedrivers.Location{Backend: "file", Root: c.Root}}
		}
		delete(config.Accounts, otherKey)
		config.ImageAliases = map[string]*media.ImageAlias{
			"content":   {AliasOptions: on("main"), WebP: &media.WebP{}},
			"replacing": {AliasOptions: on("replacing"), WebP: &media.WebP{}},
		}
		config.FileAliases, config.Tokens = nil, &fileTokens{Store: config.Tokens, folder: c.Tokens}
		if killed != nil {
			config.Observer = killer{testservice.Observer{}, killed}
		}
	})
	s.passed.Store(int64(time.Since(noon))) // the files have the real time
	return s
}

// fileTokens is a token store whose entries survive a process. It keeps the volatile ones in another store.
type fileTokens struct {
	tokens.Store
	folder string
	mu     sync.Mutex
}

func (s *fileTokens) file(key string) string {
	return filepath.Join(s.folder, hex.EncodeToString([]byte(key)))
}

// Get implements [tokens.Store].
func (s *fileTokens) Get(ctx context.Context, key string) (entry tokens.Entry, err error) {
	if strings.HasPrefix(key, tokens.Volatile) {
		return s.Store.Get(ctx, key)
	}
	b, err := os.ReadFile(s.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return entry, nil
	}
	return entry, errors.Join(err, json.Unmarshal(b, &entry))
}

// Update implements [tokens.Store].
func (s *fileTokens) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	if strings.HasPrefix(key, tokens.Volatile) {
		return s.Store.Update(ctx, key, index, change)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	entry, err := change(old)
	switch {
	case err != nil:
		return err
	case entry.Value == nil:
		return os.RemoveAll(s.file(key))
	}
	b, err := json.Marshal(entry)
	if err == nil {
		err = os.WriteFile(s.file(key)+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(s.file(key)+".new", s.file(key))
	}
	return err
}

// killer calls a function after each operation of a storage.
type killer struct {
	testservice.Observer
	killed func()
}

func (k killer) StorageOperation(string, string, time.Duration, error) { k.killed() }

// TestCrashChild is the process that dies.
func TestCrashChild(t *testing.T) {
	var c crash
	if json.Unmarshal([]byte(os.Getenv(crashEnv)), &c) != nil {
		t.Skip("it is run by TestCrash")
	}
	var left atomic.Int64
	left.Store(math.MaxInt64)
	s := c.site(t, func() {
		if left.Add(-1) < 0 {
			os.Exit(crashCode)
		}
	})
	r := s.request(t, http.MethodPatch, c.Address, tusHeader+tusBody+"Upload-Offset: 0\n", crashPicture)
	left.Store(int64(c.Steps))
	s.handler.ServeHTTP(httptest.NewRecorder(), r)
}

// crashPicture is the item, and crashOther an earlier one of the same name.
var crashPicture, crashOther = pngOf(16, 12), pngOf(8, 8)

// TestCrash ends a process after each operation of the storage in the last request of an
// upload. Then each way to finish the upload stores the item once, with its variant, and nothing else
// remains.
func TestCrash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starting hundreds of processes takes seconds")
	}
	for name, finish := range map[string]func(t *testing.T, c crash, survivor *site){
		"request":         func(t *testing.T, c crash, _ *site) { c.request(t, c.site(t, nil)) },
		"another process": func(t *testing.T, c crash, survivor *site) { c.request(t, survivor) },
		"start":           func(t *testing.T, c crash, _ *site) { c.start(t, c.site(t, nil)) },
	} {
		for driver := range crashDrivers {
			for _, alias := range []string{"content", "replacing"} {
				t.Run(name+", "+driver+", "+alias, func(t *testing.T) {
					t.Parallel()
					crash{Driver: driver, Alias: alias}.each(t, finish)
				})
			}
		}
	}
}

// each crashes after each operation.
func (c crash) each(t *testing.T, finish func(t *testing.T, c crash, survivor *site)) {
	t.Helper()
	c.Steps = math.MaxInt
	_, want := c.once(t, finish)
	seen := map[string]bool{}
	for c.Steps = 0; ; c.Steps++ {
		window, got := c.once(t, finish)
		if !slices.Equal(got, want) {
			t.Errorf("after %d operations (%s): %d items %.2000q, want %d", c.Steps, window, len(got), got, len(want))
		}
		if seen[window] = true; window == "stored done" {
			break
		}
	}
	windows := []string{
		"open", "open complete", "open complete kept stored", "open complete kept stored done", "complete kept stored done", "kept stored done",
	}
	if c.Alias == "replacing" { // it looks at the old item between
		windows = append(windows, "open complete kept")
	}
	for _, want := range windows {
		if !seen[want] {
			t.Errorf("no crash has left %q of %v", want, seen)
		}
	}
}

// once crashes and finishes an upload. It returns what the crash has left, and the final items.
func (c crash) once(t *testing.T, finish func(t *testing.T, c crash, survivor *site)) (window string, items []string) {
	t.Helper()
	c.Root, c.Tokens = t.TempDir(), t.TempDir()
	s := c.site(t, nil)
	earlier := upload.Upload{Request: upload.Request{Kind: item.Image, Alias: c.Alias, Actor: item.Actor{Origin: item.OriginHTTP}}}
	if _, failures := service.Of(s.first).Uploader().Upload(t.Context(), earlier, upload.Single("a.png", strings.NewReader(crashOther))); failures != nil {
		t.Fatal(failures)
	}
	header := fmt.Sprintf("Upload-Length: %d\n%s", len(crashPicture), metadata("filename", "a.png", "alias", c.Alias))
	c.Address = s.send(t, http.MethodPost, imagesPath, header, "").want(t, http.StatusCreated, "").header.Get(location)
	c.die(t)
	window = c.window(t)
	finish(t, c, s)
	last := c.site(t, nil) // it undoes groups of items that the dead process has not completed
	c.request(t, last)
	uploads := service.Of(last.first).Uploads()
	if _, err := uploads.Sweep(t.Context(), uploads.Storages[0], resumable.SweepOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, content := range c.files(t) {
		if !strings.HasPrefix(name, "@uploads/done/") {
			items = append(items, content)
		}
	}
	slices.Sort(items)
	return window, items
}

// die runs the process.
func (c crash) die(t *testing.T) {
	t.Helper()
	given, encodeErr := json.Marshal(c)
	self, err := os.Executable()
	if err := errors.Join(encodeErr, err); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashEnv+"="+string(given))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != crashCode) {
		t.Fatalf("%v: %s", err, out)
	}
}

// request finishes the upload by HEAD or GET, after the rest of its bytes if there is one.
func (c crash) request(t *testing.T, s *site) {
	t.Helper()
	var state struct {
		Offset, Length int
		Result         []stored
	}
	if c.Steps%2 == 0 {
		header := s.send(t, http.MethodHead, c.Address, "", "").want(t, http.StatusOK, "").header
		state.Offset, _ = strconv.Atoi(header.Get("Upload-Offset"))
		state.Length, _ = strconv.Atoi(header.Get("Upload-Length"))
		state.Result = make([]stored, len(header["Media-Filename"]))
	} else {
		got := s.send(t, http.MethodGet, c.Address, "", "").want(t, http.StatusOK, "")
		if err := json.Unmarshal([]byte(got.body), &state); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case len(state.Result) == 1:
	case state.Offset < state.Length:
		header := fmt.Sprintf("%sUpload-Offset: %d\n", tusBody, state.Offset)
		s.send(t, http.MethodPatch, c.Address, header, crashPicture[state.Offset:]).want(t, http.StatusNoContent, "")
	default:
		t.Fatalf("after %d operations the upload is not finished: %+v", c.Steps, state)
	}
}

// start finishes the upload by the start of a service, unless bytes are missing.
func (c crash) start(t *testing.T, s *site) {
	t.Helper()
	owner := item.Actor{Origin: item.OriginHTTP, Account: someKey}.Owner()
	u, err := service.Of(s.first).Uploads().Find(t.Context(), owner, path.Base(c.Address))
	if err != nil {
		t.Fatal(err)
	}
	if !u.Complete() {
		return
	}
	s.passed.Add(int64(time.Minute)) // it is idle
	s.first.Start()
	awaitOutcome(t, u)
}

// window returns what a crash has left.
func (c crash) window(t *testing.T) string {
	t.Helper()
	found := map[string]bool{}
	for name, content := range c.files(t) {
		switch {
		case strings.HasPrefix(name, "@uploads/open/"):
			found["open"] = true
		case strings.HasPrefix(name, "@uploads/done/"):
			found["done"] = true
		case strings.HasPrefix(name, "@uploads/data/"):
			if content == crashPicture {
				found["complete"] = true
			}
		case content == crashPicture:
			found["stored"] = true
		}
	}
	kept, err := filepath.Glob(filepath.Join(c.Tokens, hex.EncodeToString([]byte("request/"))+"*"))
	if err != nil {
		t.Fatal(err)
	}
	found["kept"] = len(kept) > 0
	var state []string
	for _, one := range []string{"open", "complete", "kept", "stored", "done"} {
		if found[one] {
			state = append(state, one)
		}
	}
	return strings.Join(state, " ")
}

// files returns the contents of all objects.
func (c crash) files(t *testing.T) map[string]string {
	t.Helper()
	contents := map[string]string{}
	err := filepath.WalkDir(c.Root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(c.Root, path)
		if err != nil || d.IsDir() {
			if err == nil && strings.HasPrefix(name, ".media-") {
				return fs.SkipDir
			}
			return err
		}
		b, err := os.ReadFile(path)
		contents[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}
