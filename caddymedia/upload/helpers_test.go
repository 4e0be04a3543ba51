package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// boundary is the boundary of all forms of formBody.
const boundary = "boundary"

// noon is the time of the clock.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// secret is the detail of errors. Messages must not contain any word of it.
const secret = "dial tcp 10.1.2.3:21: /srv/secret/place refused secret-key"

// send is one part of a form: a file if it has a filename.
type send struct {
	name, filename, value string
}

func file(filename, value string) send { return send{"files[]", filename, value} }

func field(name, value string) send { return send{name: name, value: value} }

// formBody returns a form as browsers send it.
func formBody(parts ...send) []byte {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		panic(err)
	}
	for _, p := range parts {
		disposition := fmt.Sprintf("form-data; name=%q", p.name)
		if p.filename != "" {
			disposition += fmt.Sprintf("; filename=%q", p.filename)
		}
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		if err == nil {
			_, err = io.WriteString(part, p.value)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return body.Bytes()
}

// newAlias returns an alias for files without a sub folder.
func newAlias(t testing.TB, name string, s *storagedrivers.Storage) *aliases.Alias {
	t.Helper()
	root, err := naming.ParseFormat("/")
	if err != nil {
		t.Fatal(err)
	}
	return &aliases.Alias{
		Kind: aliases.File, Name: name, Storage: s, Prefix: "file/" + name, SubFolder: root, Sanitize: true,
		Extensions: map[string]bool{"txt": true, "pdf": true}, MaxSize: 1 << 20,
		CacheControl: "no-cache", BaseURL: "https://cdn.example",
	}
}

// newUploader returns an Uploader with a constant clock. It buffers nothing in memory.
func newUploader(all ...*aliases.Alias) *Uploader {
	u := &Uploader{
		Aliases: map[aliases.Kind]map[string]*aliases.Alias{aliases.Image: {}, aliases.File: {}},
		Limits:  Limits{MaxFiles: 200, MaxFields: 100, MaxFieldSize: 8 << 10, MaxPartHeader: 16 << 10},
		Now:     func() time.Time { return noon },
		Log:     slog.New(slog.DiscardHandler),

		Staging:  NewStaging(0, 1<<40),
		Observer: NopObserver{},
		Derived: &derived.Maker{
			Images: render.NewMaker(painter{}, render.Limits{}),
			Now:    func() time.Time { return noon }, Observer: NopObserver{},
		},
	}
	for _, a := range all {
		u.Aliases[a.Kind][a.Name] = a
	}
	return u
}

func onMemory(t testing.TB, fail func(op, key string) error) *storagedrivers.Storage {
	t.Helper()
	d := memory.New()
	d.Fail = fail
	return closed(t, "memory", d, storagedrivers.Options{})
}

// onLocal returns a storage in its own folder. fail is called before each operation, with its name
// and key.
func onLocal(t testing.TB, fail func(op, key string) error) *storagedrivers.Storage {
	t.Helper()
	d := local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
	return closed(t, "local", &faulty{Driver: d, fail: fail}, storagedrivers.Options{})
}

// closed returns a storage that is closed at the end of the test. Nothing may use it any more then:
// staged data must be closed, too.
func closed(t testing.TB, name string, d storagedrivers.Driver, opts storagedrivers.Options) *storagedrivers.Storage {
	t.Helper()
	released, end := false, opts.Close
	if end == nil {
		end = d.Close
	}
	opts.Close = func() error {
		released = true
		return end()
	}
	s := storagedrivers.New(name, d, opts)
	t.Cleanup(func() {
		if err := s.Close(); err != nil || !released {
			t.Errorf("closing storage %s: released %t, error %v", name, released, err)
		}
	})
	return s
}

// storages are the two sorts of storages: staging in the backend, and in memory.
var storages = map[string]func(testing.TB, func(op, key string) error) *storagedrivers.Storage{
	"memory": onMemory, "local": onLocal,
}

// faulty is a local driver with faults.
type faulty struct {
	*local.Driver
	fail func(op, key string) error
}

func (d *faulty) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	if err := d.ask("stage", ""); err != nil {
		return nil, err
	}
	st, err := d.Driver.Stage(ctx)
	return &faultyStaged{st, d}, err
}

func (d *faulty) ask(op, key string) error {
	if d.fail == nil {
		return nil
	}
	return d.fail(op, key)
}

// Commit asks for each change.
func (d *faulty) Commit(ctx context.Context, changes []storagedrivers.Change) ([]storagedrivers.Info, error) {
	changes = slices.Clone(changes)
	for i, c := range changes {
		op := "delete"
		if st, ok := c.Staged.(*faultyStaged); ok {
			op, changes[i].Staged = "commit", st.Staged
		}
		if err := d.ask(op, c.Key); errors.Is(err, fs.ErrExist) {
			return nil, &storagedrivers.ExistsError{Taken: []int{i}}
		} else if err != nil {
			return nil, &storagedrivers.CommitError{Index: i, Err: err}
		}
	}
	return d.Driver.Commit(ctx, changes)
}

type faultyStaged struct {
	storagedrivers.Staged
	driver *faulty
}

func (st *faultyStaged) Read(p []byte) (int, error) {
	if err := st.driver.ask("read", ""); err != nil {
		return 0, err
	}
	return st.Staged.Read(p)
}

func (st *faultyStaged) Close() error {
	return errors.Join(st.Staged.Close(), st.driver.ask("close", ""))
}

// at returns a function that fails the nth commit.
func at(n int, err error) func(op, key string) error {
	var mu sync.Mutex
	return func(op, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "put" || op == "commit" {
			if n--; n == 0 {
				return err
			}
		}
		return nil
	}
}

// uploadForm uploads a form of the parts to the default alias for files.
func uploadForm(t testing.TB, u *Uploader, parts ...send) ([]Item, aliases.Failures) {
	t.Helper()
	return uploadBody(t, u, bytes.NewReader(formBody(parts...)), Request{Kind: aliases.File})
}

// uploadBody uploads a form, and checks the result.
func uploadBody(t testing.TB, u *Uploader, body io.Reader, req Request) ([]Item, aliases.Failures) {
	t.Helper()
	items, failures := u.Upload(t.Context(), req, Form(body, boundary))
	checked(t, items, failures)
	return items, failures
}

// checked asserts that a result is either items or failures, without a secret in messages.
func checked(t testing.TB, items []Item, failures aliases.Failures) {
	t.Helper()
	if (items == nil) == (failures == nil) || len(items)+len(failures) == 0 {
		t.Errorf("items %v beside the failures %v", items, failures)
	}
	for _, f := range failures {
		if f.Message == "" {
			t.Errorf("failure without a message: %+v", f)
		}
		for word := range strings.FieldsSeq(secret) {
			if strings.Contains(f.Message, word) {
				t.Errorf("the message %q contains %q", f.Message, word)
			}
		}
	}
}

// contents returns the content of all objects of a storage, by key.
func contents(t testing.TB, s *storagedrivers.Storage) map[string]string {
	t.Helper()
	found := map[string]string{}
	for info, err := range s.All(context.Background(), "") {
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := s.Open(context.Background(), info.Key, storagedrivers.Range{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		found[info.Key] = string(b)
	}
	return found
}

func wantContents(t testing.TB, s *storagedrivers.Storage, want map[string]string) {
	t.Helper()
	got := contents(t, s)
	for key, value := range want {
		if have, ok := got[key]; !ok || have != value {
			t.Errorf("%s holds %.40q (there: %t), want %.40q", key, have, ok, value)
		}
		delete(got, key)
	}
	for key := range got {
		t.Errorf("%s is there, unwanted", key)
	}
}

func put(t testing.TB, s *storagedrivers.Storage, key, value string) {
	t.Helper()
	_, err := s.Put(t.Context(), key, strings.NewReader(value), storagedrivers.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func wantFailure(t testing.TB, failures aliases.Failures, reason aliases.Reason, filename, message string) {
	t.Helper()
	if len(failures) == 0 {
		t.Errorf("no failure, want %q", message)
		return
	}
	if f := failures[0]; f.Reason != reason || f.Filename != filename || !strings.Contains(f.Message, message) {
		t.Errorf("failure %d %q of %q, want %d %q of %q", f.Reason, f.Message, f.Filename, reason, message, filename)
	}
}

func filenames(items []Item) []string {
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = it.Filename
	}
	return names
}
