package mediacmd

import (
	"fmt"
	"strings"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

// target is all of a storage or of an alias, or a folder or an object in it.
type target struct {
	storage *storagedrivers.Storage
	// root is the storage ("default") or the alias ("img/content") as on the command line, and
	// prefix is what the keys of all its objects begin with.
	root, prefix string
	// path is relative to root, without a slash at the end; empty for all of it.
	path string
}

// target returns the target of an argument, "img/content/26-11/21" for instance. An alias goes
// before a storage that is called img or file.
func (s *session) target(arg string) (target, error) {
	root, path, _ := strings.Cut(arg, "/")
	name, rest, _ := strings.Cut(path, "/")
	var t target
	if alias, ok := s.App.Service().Alias(ingest.Kind(root), name); ok {
		t = target{alias.Storage, root + "/" + name, alias.Key(""), rest}
	} else if storage, ok := s.App.Service().Storage(root); ok {
		t = target{storage, root, "", path}
	} else {
		return t, fmt.Errorf("there is no storage %q in the configuration, nor is %q an alias (img/<name> or file/<name>)", root, arg)
	}
	if t.path = strings.TrimSuffix(t.path, "/"); t.path == "" {
		return t, nil
	}
	if err := storagedrivers.ValidKey(t.key()); err != nil {
		return t, fmt.Errorf("%s: %w", arg, err)
	}
	return t, nil
}

// String returns the target as on the command line.
func (t target) String() string { return strings.TrimSuffix(t.root+"/"+t.path, "/") }

// key returns the key of the target as an object.
func (t target) key() string { return t.prefix + t.path }

// folder returns what the keys of the objects in the target begin with.
func (t target) folder() string {
	if t.path == "" {
		return t.prefix
	}
	return t.key() + "/"
}

// shown returns a key of the target, or a beginning of keys, as on the command line.
func (t target) shown(key string) string { return t.root + "/" + strings.TrimPrefix(key, t.prefix) }
