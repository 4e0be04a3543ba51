package resumable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
)

const owner = "http site"

// site is the account of the uploads.
var site = access.Account{APIKey: "site", PasswordHash: "x"}

// each runs a test on every storage of the package's tests.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	for name, open := range derivedtest.Drivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, storeOn(t, open(t, nil)))
		})
	}
}

func storeOn(t *testing.T, d storagedrivers.Driver) *Store {
	t.Helper()
	storage := storagedrivers.New("default", d, storagedrivers.Options{})
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Store{
		Issuer: newIssuer(t), Active: new(Active),
		Storages: []*storagedrivers.Storage{storage}, Expires: time.Hour, MaxOpen: 100, MaxBytes: 1 << 40,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Uploader: &upload.Uploader{ // without any alias
			Staging: upload.NewStaging(0, 1<<40), Now: time.Now, Observer: upload.NopObserver{}, Log: slog.New(slog.DiscardHandler),
		},
	}
}

// newIssuer returns an issuer that knows nothing.
func newIssuer(t *testing.T) *access.Issuer {
	t.Helper()
	issuer, err := access.NewIssuer(access.IssuerOptions{
		Store: tokenmemory.New(nil), Accounts: []access.Account{site}, Now: time.Now,
		Comparer: tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

func admit(int64) error { return nil }

// create creates an upload of the given length.
func (s *Store) create(t *testing.T, rec Record) *Upload {
	t.Helper()
	if rec.Owner == "" {
		rec.Owner, rec.Kind, rec.Filename = owner, "file", "a.txt"
	}
	u, err := s.Create(t.Context(), s.Storages[0], Creation{Record: rec, Admit: admit})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// find returns the upload as another process sees it.
func (s *Store) find(t *testing.T, u *Upload) *Upload {
	t.Helper()
	found, err := s.Find(t.Context(), u.Owner, u.ID)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func body(offset int64, r io.Reader) Body {
	return Body{
		Reader: r, Offset: offset, Interrupt: func() {}, Limit: 1 << 40,
		Reserve: func() (func(), error) { return func() {}, nil },
	}
}

// add adds the bytes of a text behind an offset.
func (u *Upload) add(t *testing.T, offset int64, text string) {
	t.Helper()
	if err := u.Append(t.Context(), body(offset, strings.NewReader(text))); err != nil {
		t.Fatal(err)
	}
}

// part returns a complete partial upload.
func (s *Store) part(t *testing.T, text string) *Upload {
	t.Helper()
	u := s.create(t, Record{Owner: owner, Kind: "file", Form: Partial, Length: int64(len(text))})
	u.add(t, 0, text)
	return u
}

// finished records the outcome of an upload.
func (u *Upload) finished(t *testing.T, outcome Outcome) {
	t.Helper()
	if err := u.record(t.Context(), outcome); err != nil {
		t.Fatal(err)
	}
}

// content returns the bytes of a complete upload.
func (u *Upload) content(t *testing.T) []byte {
	t.Helper()
	staged, err := u.storage.StageGrown(t.Context(), nil, u.objects()...)
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Close()
	b, err := io.ReadAll(staged)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pieceKey returns the key of a piece of the bytes of an upload.
func pieceKey(id string, offset int64) string {
	return fmt.Sprintf("%s.%016d", dataKey(id, bytesName), offset)
}

// keys returns the keys of all objects of a store.
func (s *Store) keys(t *testing.T) []string {
	t.Helper()
	var keys []string
	for info, err := range s.Storages[0].All(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

var errCut = errors.New("connection lost")

// cut returns a reader of b that fails after n bytes.
func cut(b []byte, n int) io.Reader {
	return io.MultiReader(bytes.NewReader(b[:n]), failing{})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errCut }

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}
