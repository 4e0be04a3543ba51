package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/cache"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

// configOf returns a configuration with a storage in memory, without sub folders, and the aliases
// "content" and, for images, "webp".
func configOf(t *testing.T) Config {
	t.Helper()
	return Config{
		Tokens:   new(store),
		Comparer: tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
		Storages: []Storage{{Name: "default", Driver: memory.New(), SubFolderFormat: "/"}},
		ImageAliases: map[string]*ImageAlias{
			"content": {},
			"webp":    {AliasOptions: AliasOptions{CDNBase: "https://cdn.example.com"}, WebP: new(WebP)},
		},
		FileAliases: map[string]*FileAlias{"content": {AliasOptions: AliasOptions{MaxSize: 2 << 20}}},
	}
}

// start returns a service that is closed at the end of the test.
func start(t *testing.T, config Config) *Service {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// store is a token store that stores nothing and counts the calls of Close.
type store struct {
	tokens.Store
	saved  int
	closed int
}

func (s *store) Check(context.Context) error { return nil }

func (s *store) Close() error { s.closed++; return nil }

func (s *store) Update(context.Context, string, string, func(tokens.Entry) (tokens.Entry, error)) error {
	s.saved++
	return nil
}

func wantStored(t *testing.T, s *Service, key, want string) {
	t.Helper()
	storage, _ := s.core.Storage("default")
	body, _, err := storage.Open(t.Context(), key, struct{ Offset, Length int64 }{})
	if err != nil {
		t.Error(err)
		return
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != want {
		t.Errorf("%s holds %.40q, %v, want %.40q", key, got, err, want)
	}
}

func pngOf(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSideBySide: services of one process share nothing.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	first, second := configOf(t), configOf(t)
	second.Limits.MaxUploads = 1
	second.Accounts = map[string]*Account{"site": {PasswordHash: "password"}}
	a, b := start(t, first), start(t, second)
	actor := item.Actor{Account: "site"}
	for _, s := range []*Service{a, b} {
		if _, ok := s.core.BeginUpload(actor, nil, 0); !ok {
			t.Error("the first upload of an account is refused")
		}
	}
	if _, ok := a.core.BeginUpload(actor, nil, 0); !ok {
		t.Error("an upload counts in another service")
	}
	if _, ok := b.core.BeginUpload(actor, nil, 0); ok {
		t.Error("an account has two uploads under way, and may have one")
	}
	if _, _, err := b.core.Issuer().Issue(t.Context(), "site", "password", netip.Addr{}); err != nil || second.Tokens.(*store).saved != 1 {
		t.Errorf("issuing a token: %v", err)
	}
	if _, _, err := a.core.Issuer().Issue(t.Context(), "site", "password", netip.Addr{}); !errors.Is(err, access.ErrCredentials) {
		t.Errorf("an account of another service: %v", err)
	}
}

// TestSharedProcess: an upload of an account counts in all services with one Process.
func TestSharedProcess(t *testing.T) {
	t.Parallel()
	services, process := make([]*Service, 2), NewProcess()
	for i := range services {
		config := configOf(t)
		config.Process, config.Limits.MaxUploads = process, 1
		services[i] = start(t, config)
	}
	ended, ok := services[0].core.BeginUpload(item.Actor{Account: "site"}, nil, 0)
	if !ok {
		t.Fatal("the first upload of an account is refused")
	}
	if _, ok := services[1].core.BeginUpload(item.Actor{Account: "site"}, nil, 0); ok {
		t.Error("an upload does not count in another service")
	}
	ended()
	if _, ok := services[1].core.BeginUpload(item.Actor{Account: "site"}, nil, 0); !ok {
		t.Error("an upload that has ended counts in another service")
	}
}

// TestManyServices: services start, work and close at the same time, each with its own items. None
// leaves a goroutine, which TestMain checks.
func TestManyServices(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		content := strconv.Itoa(n)
		t.Run(content, func(t *testing.T) {
			t.Parallel()
			s := start(t, configOf(t))
			s.Start()
			got := s.FormFile(formRequest(t, sentFile("cv", "cv.txt", content)), "cv", "", "")
			wantResult(t, got, `{"success":true,"full_path":"/static/file/content/cv.txt","filename":"cv.txt"}`)
			wantStored(t, s, "file/content/cv.txt", content)
		})
	}
}

// TestClose: a service stays open until its last reference is released.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := configOf(t)
		kept := config.Tokens.(*store)
		s := start(t, config)
		storage, _ := s.core.Storage("default")
		s.Start()
		synctest.Wait()
		_, release, err := s.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Acquire(); !errors.Is(err, ErrClosed) {
			t.Errorf("acquired a closed service: %v", err)
		}
		if got := s.DownloadFile(t.Context(), "", "", ""); got.Success || !strings.Contains(got.Message, "does not run") {
			t.Errorf("stored in a closed service: %+v", got)
		}
		if _, err := storage.Stat(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) || kept.closed > 0 {
			t.Errorf("closed before the last reference is released: %v, %d", err, kept.closed)
		}
		release()
		if _, err := storage.Stat(t.Context(), "a"); errors.Is(err, fs.ErrNotExist) || kept.closed != 1 {
			t.Errorf("not closed: %v, %d", err, kept.closed)
		}
		s.Start() // does nothing
	})
}

// TestNewErrors: an error of New names the mistake, and New closes nothing.
func TestNewErrors(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		`storage "A": a name is 1 to 64`:                           func(c *Config) { c.Storages[0].Name = "A" },
		`storage "default" is there twice`:                         func(c *Config) { c.Storages = append(c.Storages, c.Storages[0]) },
		`storage "default": it has no driver`:                      func(c *Config) { c.Storages[0].Driver = nil },
		`image alias "content": it is empty`:                       func(c *Config) { c.ImageAliases["content"] = nil },
		`image alias "a/b": a name is 1 to 64`:                     func(c *Config) { c.ImageAliases["a/b"] = new(ImageAlias) },
		`file alias "content": storage: there is no storage "far"`: func(c *Config) { c.FileAliases["content"].Storage = "far" },
		`file alias "content": prefix "img/webp/x" overlaps`:       func(c *Config) { c.FileAliases["content"].Prefix = "img/webp/x" },
		`file alias "content": trash needs a prefix other than /`: func(c *Config) {
			c.Trash, c.FileAliases["content"].Prefix = "1d", "/"
		},
		`trash: "1s" is not from 1m to 3650d, or off`:               func(c *Config) { c.Trash = "1s" },
		`trash: locked needs a time`:                                func(c *Config) { c.Trash = "off locked" },
		`file alias "content": trash: locked needs a time`:          func(c *Config) { c.FileAliases["content"].Trash = " locked" },
		`file alias "content": prefix: `:                            func(c *Config) { c.FileAliases["content"].Prefix = "a/../b" },
		`file alias "content": extensions: "php" is never accepted`: func(c *Config) { c.FileAliases["content"].Extensions = []string{"php"} },
		`image alias "content": negotiate needs webp`:               func(c *Config) { c.ImageAliases["content"].Negotiate = true },
		`image alias "content": cache_control is no valid header`:   func(c *Config) { c.ImageAliases["content"].CacheControl = "a\nb" },
		`redirect: the driver of storage "default" cannot sign`:     func(c *Config) { c.ImageAliases["content"].Redirect = &Redirect{To: "presigned"} },
		`redirect: public needs the address`:                        func(c *Config) { c.ImageAliases["content"].Redirect = &Redirect{To: "public"} },
		`redirect: the lifetime is between 1s and 7d, not 1ns`: func(c *Config) {
			c.ImageAliases["content"].Redirect = &Redirect{To: "public", Base: "https://example.com", Lifetime: 1}
		},
		`account "a": aliases: there is no alias "none"`: func(c *Config) {
			c.Accounts = map[string]*Account{"a": {PasswordHash: "x", Aliases: []string{"none"}}}
		},
		`cors: an origin is a scheme, a host and a port`: func(c *Config) { c.CORS = []string{"example.com"} },
		`account "a": password_hash is missing`:          func(c *Config) { c.Accounts = map[string]*Account{"a": {}} },
		`limits: max_files is a number above zero`:       func(c *Config) { c.Limits.MaxFiles = -1 },
		`token_lifetime is a duration above zero`:        func(c *Config) { c.TokenLifetime = -1 },
		`spool_folder: /dev/null is no folder`:           func(c *Config) { c.SpoolFolder = "/dev/null" },
		`cdn_base is an address such as`:                 func(c *Config) { c.CDNBase = "cdn.example.com" },
		`storage "default": cache: folder is missing`:    func(c *Config) { c.Storages[0].Cache = new(Cache) },
		`storage "default": cache: a local folder needs no cache`: func(c *Config) {
			c.Storages[0].Cache, c.Storages[0].Options.Description.Local = &Cache{Folder: "x"}, true
		},
		`storage "other": cache: its folder is that of storage "default"`: func(c *Config) {
			c.Storages[0].Cache = &Cache{Folder: "/x/y"}
			c.Storages = append(c.Storages, Storage{Name: "other", Driver: memory.New(), Cache: &Cache{Folder: "/x/z/../y"}})
		},
		`stale_if_error of the cache is for items that never change`: func(c *Config) {
			c.Storages[0].Cache, c.Storages[0].OverwriteStrategy = &Cache{Folder: "x", StaleIfError: 1}, overwriteItems
		},
		`file alias "content": types: "txt" is not <extension>=<type>`: func(c *Config) { c.FileAliases["content"].Types = []string{"txt"} },
		`file alias "content": the folder of storage "default" is within one called @uploads`: func(c *Config) {
			c.Storages[0].Options.Location = storagedrivers.Location{Backend: "x", Root: "/srv/a/@Uploads/b"}
			c.ImageAliases = nil
		},
		"redirect public does not go with private": func(c *Config) {
			c.ImageAliases["content"].Private, c.ImageAliases["content"].Redirect = new(Private), &Redirect{To: "public", Base: "https://example.com"}
		},
		`private.public: there is no rendition "x"`:   func(c *Config) { c.ImageAliases["content"].Private = &Private{Public: []string{"x"}} },
		"step is whole seconds":                       func(c *Config) { c.ImageAliases["content"].Private = &Private{Step: options.Duration(169 * time.Hour)} },
		"signing_key: a key has 31 bytes":             func(c *Config) { c.SigningKey = []string{strings.Repeat("x", 31)} },
		`image alias "content": svg is one of reject`: func(c *Config) { c.ImageAliases["content"].SVG = "clean" },
	} {
		config := configOf(t)
		change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		} else if strings.Contains(err.Error(), "xxx") {
			t.Errorf("the key is in %v", err)
		}
		if config.Tokens.(*store).closed > 0 {
			t.Errorf("%s: the token store is closed", want)
		}
	}
}

// TestCache: a storage reads through its cache, but not unfinished uploads. The service closes the
// cache that it has opened.
func TestCache(t *testing.T) {
	t.Parallel()
	config, driver, opened := configOf(t), memory.New(), 0
	driver.Fail = func(op, _ string) error {
		if op == "open" {
			opened++
		}
		return nil
	}
	folder := t.TempDir()
	config.Storages[0].Driver, config.Storages[0].Cache = driver, &Cache{Folder: folder}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	storage, _ := s.core.Storage("default")
	for key, want := range map[string]int{"img/content/a.jpg": 1, naming.UploadsFolder + "/a": 3} {
		if _, err := storage.Put(t.Context(), key, strings.NewReader("text"), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		opened = 0
		for range 3 {
			wantStored(t, s, key, "text")
		}
		if opened != want {
			t.Errorf("%s: opened %d times at the storage, want %d", key, opened, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	blocks := cache.NewStore(cache.Options{Folder: folder})
	if err := blocks.Empty(); err != nil {
		t.Errorf("the folder is still in use: %v", err)
	}
	if err := blocks.Close(); err != nil {
		t.Error(err)
	}
}

// slowDriver reads slowly.
type slowDriver struct {
	*memory.Driver
	reading, atClose atomic.Int32
}

type slowBody struct {
	io.ReadCloser
	d *slowDriver
}

func (b slowBody) Read(p []byte) (int, error) {
	b.d.reading.Add(1)
	defer b.d.reading.Add(-1)
	time.Sleep(20 * time.Millisecond)
	return b.ReadCloser.Read(p[:min(len(p), 64<<10)])
}

func (d *slowDriver) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	return slowBody{body, d}, info, nil
}

func (d *slowDriver) Close() error {
	d.atClose.Store(d.reading.Load())
	return d.Driver.Close()
}

// TestCloseEndsFetches: a driver is closed after the fetches of its cache have ended.
func TestCloseEndsFetches(t *testing.T) {
	t.Parallel()
	config, driver := configOf(t), &slowDriver{Driver: memory.New()}
	config.Storages[0].Driver, config.Storages[0].Cache = driver, &Cache{Folder: t.TempDir()}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	storage, _ := s.core.Storage("default")
	if _, err := storage.Put(t.Context(), "img/content/a.jpg", strings.NewReader(strings.Repeat("x", 1<<20)), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	body, _, err := storage.Open(t.Context(), "img/content/a.jpg", storagedrivers.Range{Length: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(body); err != nil {
		t.Error(err)
	}
	if err := errors.Join(body.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if n := driver.atClose.Load(); n > 0 {
		t.Errorf("the driver was closed while %d of its readers were reading", n)
	}
}

// TestSharedBlocks: storages that share the folder of their caches do not share objects.
func TestSharedBlocks(t *testing.T) {
	t.Parallel()
	config := configOf(t)
	blocks := cache.NewStore(cache.Options{Folder: t.TempDir()})
	config.Storages[0].Cache, config.Storages[0].Blocks = &Cache{}, blocks
	config.Storages = append(config.Storages, Storage{Name: "other", Driver: memory.New(), Cache: &Cache{}, Blocks: blocks})
	s := start(t, config)
	t.Cleanup(func() {
		if err := blocks.Close(); err != nil {
			t.Error(err)
		}
	})
	storage, _ := s.core.Storage("default")
	if _, err := storage.Put(t.Context(), "a", strings.NewReader("text"), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	wantStored(t, s, "a", "text")
	other, _ := s.core.Storage("other")
	if _, _, err := other.Open(t.Context(), "a", storagedrivers.Range{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that there is no object", err)
	}
}

// TestStorageOf: the storage of an alias is the one it names, else the one called default, else the
// only one.
func TestStorageOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		names []string
		want  string // empty: an error
	}{
		{"far", []string{"default", "far"}, "far"},
		{"", []string{"default", "far"}, "default"},
		{"", []string{"far"}, "far"},
		{"", []string{"near", "far"}, ""},
		{"", nil, ""},
		{"none", []string{"far"}, ""},
	} {
		if got, err := StorageOf(c.name, c.names); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q of %q: %q, error %v", c.name, c.names, got, err)
		}
	}
}

// TestBadAddresses: an address begins with a scheme and a host, and has nothing that may be a
// secret.
func TestBadAddresses(t *testing.T) {
	t.Parallel()
	for _, base := range []string{
		"cdn.example.com", "/cdn", "//cdn.example.com", "ftp://cdn.example.com", "https://", "https:///x", "https:x",
		"https://cdn.example.com?x", "https://cdn.example.com#x", "https://user@cdn.example.com", "https://cdn example.com", " ",
	} {
		shown, _, _ := strings.Cut(base, "?") // what follows may be a secret
		config := configOf(t)
		config.CDNBase = base
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("cdn_base is an address such as https://cdn.example.com, not \"%s", shown)) {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestOverlappingPrefixes: the second of two aliases with overlapping prefixes on one storage is
// refused.
func TestOverlappingPrefixes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		image, file string
		overlap     bool
	}{
		{"a", "a", true},
		{"a", "/a/", true},
		{"a", "a/b", true},
		{"a/b", "a", true},
		{"/", "a", true},
		{"a", "/", true},
		{"/", "/", true},
		{"a", "ab", false},
		{"a/b", "a/c", false},
		{"file/two", "", true}, // the default of the other
		{"img", "", false},
		{"file", "", true},
	} {
		for _, storage := range []string{"default", "other"} {
			config := configOf(t)
			config.Storages = append(config.Storages, Storage{Name: "other", Driver: memory.New()})
			config.ImageAliases = map[string]*ImageAlias{"one": {AliasOptions: AliasOptions{Storage: "default", Prefix: c.image}}}
			config.FileAliases = map[string]*FileAlias{"two": {AliasOptions: AliasOptions{Storage: storage, Prefix: c.file}}}
			s, err := New(config)
			if err == nil {
				err = errors.Join(s.Close())
			}
			overlaps := c.overlap && storage == "default"
			if (err != nil) != overlaps || overlaps && !strings.Contains(err.Error(), `file alias "two": prefix`) {
				t.Errorf("%q and %q on %s: %v", c.image, c.file, storage, err)
			}
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
