package service

import (
	"cmp"
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// partsOf returns parts with the aliases "content" and, for images, "webp", without sub folders, on
// a storage in memory.
func partsOf(t *testing.T) Parts {
	t.Helper()
	webp := newAlias(t, item.Image, "webp")
	webp.BaseURL, webp.WebP = "https://cdn.example.com", new(render.Options)
	return Parts{
		Storages: []Storage{{Name: "default", Driver: memory.New()}},
		Aliases:  aliasesOf(newAlias(t, item.Image, "content"), webp, newAlias(t, item.File, "content")),
		Limits: Limits{
			Requests: upload.Limits{MaxFiles: 200, MaxFields: 100, MaxFieldSize: 8 << 10, MaxPartHeader: 16 << 10},
			MaxBody:  4 << 30, MaxUploads: 256, MaxUploadTime: 6 * time.Hour, MaxOpenItems: 256,
		},
		Resumable: Resumable{Expires: 24 * time.Hour, MaxOpen: 100},
		Tokens:    new(store),
		Comparer:  tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
	}
}

// newAlias returns an alias for items up to 2 MiB.
func newAlias(t *testing.T, kind item.Kind, name string) *item.Alias {
	t.Helper()
	alias := derivedtest.NewAlias(t, name, nil)
	alias.Kind, alias.Prefix, alias.BaseURL, alias.MaxSize = kind, string(kind)+"/"+name, "", 2<<20
	if kind == item.Image {
		alias.Extensions = map[string]bool{"jpg": true, "jpeg": true, "png": true, "gif": true, "svg": true}
	}
	return alias
}

// aliasesOf returns aliases for Parts, each on the storage with its own name, or on the default
// one.
func aliasesOf(all ...*item.Alias) func(map[string]*storagedrivers.Storage) (Aliases, error) {
	return func(storages map[string]*storagedrivers.Storage) (Aliases, error) {
		made := Aliases{item.Image: {}, item.File: {}}
		for _, alias := range all {
			made[alias.Kind][alias.Name] = new(*alias)
			made[alias.Kind][alias.Name].Storage = cmp.Or(storages[alias.Name], storages["default"])
		}
		return made, nil
	}
}

// start returns a service that is closed at the end of the test.
func start(t *testing.T, parts Parts) *Service {
	t.Helper()
	s, err := New(parts)
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

// store is a token store that stores nothing.
type store struct{ tokens.Store }

func (*store) Check(context.Context) error { return nil }
func (*store) Close() error                { return nil }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
