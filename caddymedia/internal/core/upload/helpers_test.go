package upload

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// boundary is the boundary of all forms of formBody.
const boundary = "boundary"

var (
	noon                      = derivedtest.Noon
	red, green, blue, unloved = derivedtest.Red, derivedtest.Green, derivedtest.Blue, derivedtest.Unloved

	onMemory, onLocal, storages = derivedtest.OnMemory, derivedtest.OnLocal, derivedtest.Storages
	closed, shared              = derivedtest.Closed, derivedtest.Shared
	newAlias, imageAlias        = derivedtest.NewAlias, derivedtest.Images
	pngOf, webpOf               = derivedtest.PNGOf, derivedtest.WebPOf
	put, contents, wantContents = derivedtest.Put, derivedtest.Contents, derivedtest.WantContents
	replace, wantRenditions     = derivedtest.Replace, derivedtest.WantRenditions
	onEach                      = derivedtest.OnEach
)

type opener = derivedtest.Opener

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

// newUploader returns an Uploader with a constant clock. It buffers nothing in memory.
func newUploader(all ...*item.Alias) *Uploader {
	u := &Uploader{
		Aliases: map[item.Kind]map[string]*item.Alias{item.Image: {}, item.File: {}},
		Limits:  Limits{MaxFiles: 200, MaxFields: 100, MaxFieldSize: 8 << 10, MaxPartHeader: 16 << 10},
		Now:     func() time.Time { return noon },
		Log:     slog.New(slog.DiscardHandler),

		Staging:  NewStaging(0, 1<<40),
		Observer: NopObserver{},
		Derived:  derivedtest.NewMaker(derivedtest.Painter{}, render.Limits{}),
	}
	for _, a := range all {
		u.Aliases[a.Kind][a.Name] = a
	}
	return u
}

// storing returns a function that fails the storing of an object.
func storing(key string, err error) func(op, key string) error {
	return func(op, of string) error {
		if of == key && (op == "put" || op == "commit") {
			return err
		}
		return nil
	}
}

// uploadForm uploads a form of the parts to the default alias for files.
func uploadForm(t testing.TB, u *Uploader, parts ...send) ([]Item, item.Failures) {
	t.Helper()
	return uploadBody(t, u, bytes.NewReader(formBody(parts...)), Upload{Request: Request{Kind: item.File}})
}

// uploadBody uploads a form, and checks the result.
func uploadBody(t testing.TB, u *Uploader, body io.Reader, req Upload) ([]Item, item.Failures) {
	t.Helper()
	items, failures := u.Upload(t.Context(), req, Form(body, boundary))
	checked(t, items, failures)
	return items, failures
}

// checked asserts that a result is either items or failures, without a secret in messages.
func checked(t testing.TB, items []Item, failures item.Failures) {
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

func wantFailure(t testing.TB, failures item.Failures, reason item.Reason, filename, message string) {
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

// uploadImages uploads a form of the parts to the default alias for images.
func uploadImages(t testing.TB, u *Uploader, parts ...send) ([]Item, item.Failures) {
	t.Helper()
	return uploadBody(t, u, bytes.NewReader(formBody(parts...)), Upload{Request: Request{Kind: item.Image}})
}

// storeImages is uploadImages of images that must be stored.
func storeImages(t testing.TB, u *Uploader, parts ...send) []Item {
	t.Helper()
	items, failures := uploadImages(t, u, parts...)
	if failures != nil {
		t.Fatal(failures)
	}
	return items
}

// storeFiles is uploadForm of files that must be stored.
func storeFiles(t testing.TB, u *Uploader, parts ...send) []Item {
	t.Helper()
	items, failures := uploadForm(t, u, parts...)
	if failures != nil {
		t.Fatal(failures)
	}
	return items
}
