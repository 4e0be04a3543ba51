package mediacmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/mediacmd/copying"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// place is where a storage is: the options of its driver that say so, expanded.
type place map[string]string

// where are the options that say where a storage is, beside the folder in it.
var where = []string{"endpoint", "region", "bucket", "account", "connection_string", "container", "address", "user"}

func placeOf(module storagedrivers.Module) place {
	raw, err := json.Marshal(module)
	var values map[string]any
	if err != nil || json.Unmarshal(raw, &values) != nil {
		return place{}
	}
	var expand options.Expander
	p := place{"driver": mediaapp.DriverKind(module)}
	for _, name := range append([]string{"root", "prefix"}, where...) {
		if text, ok := values[name].(string); ok {
			p[name] = expand.Text(name, text)
		}
	}
	return p
}

// folder is the path of the place below what it is in.
func (p place) folder() string {
	if p["driver"] == "local" {
		if full, err := filepath.Abs(p["root"]); err == nil {
			return filepath.ToSlash(resolved(full))
		}
	}
	return path.Clean(path.Join(p["root"], p["prefix"]))
}

// resolved follows links, as far as there is something.
func resolved(full string) string {
	if real, err := filepath.EvalSymlinks(full); err == nil {
		return real
	}
	parent := filepath.Dir(full)
	if parent == full {
		return full
	}
	return filepath.Join(resolved(parent), filepath.Base(full))
}

// public is the place without what may be secret.
func (p place) public() place {
	shown := maps.Clone(p)
	delete(shown, "connection_string")
	return shown
}

// overlaps tells whether one of two places is the other or lies within it.
func (p place) overlaps(other place) bool {
	if p["driver"] != other["driver"] {
		return false
	}
	for _, name := range where {
		if p[name] != other[name] {
			return false
		}
	}
	return within(p.folder(), other.folder()) || within(other.folder(), p.folder())
}

func within(inner, outer string) bool {
	if outer == "." { // the folder of the login, or the whole bucket
		return !path.IsAbs(inner) && inner != ".." && !strings.HasPrefix(inner, "../")
	}
	return strings.HasPrefix(inner+"/", strings.TrimSuffix(outer, "/")+"/")
}

// differentPlaces refuses to copy a storage to itself, or into itself, as far as the
// configuration tells.
func (s *session) differentPlaces(from, to string) error {
	a, b := s.App.Driver(from), s.App.Driver(to)
	if from == to || a.PoolKey() == b.PoolKey() || placeOf(a).overlaps(placeOf(b)) {
		return fmt.Errorf("%q and %q are the same place, or one lies within the other", from, to)
	}
	return nil
}

// reachable looks whether both storages can be used. Before a real run it also stores a
// small object in the destination and removes it again: so it is known at once whether it
// may be written to, and that the source is not the same place under another name.
func reachable(ctx context.Context, opts copying.Options) error {
	for _, s := range []*storagedrivers.Storage{opts.From, opts.To} {
		if err := s.Check(ctx); err != nil {
			return fmt.Errorf("storage %q cannot be used: %w", s.Name(), err)
		}
	}
	if opts.DryRun {
		return nil
	}
	key := "media-probe-" + rand.Text() + ".txt"
	_, err := opts.To.Put(ctx, key, strings.NewReader(key), storagedrivers.PutOptions{})
	if err != nil {
		_ = opts.To.Delete(context.WithoutCancel(ctx), key) // if its answer was lost
		return fmt.Errorf("storage %q cannot be written to: %w", opts.To.Name(), err)
	}
	_, err = opts.From.Stat(ctx, key)
	switch {
	case err == nil:
		err = fmt.Errorf("%q and %q are the same place", opts.From.Name(), opts.To.Name())
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return errors.Join(err, opts.To.Delete(context.WithoutCancel(ctx), key))
}
