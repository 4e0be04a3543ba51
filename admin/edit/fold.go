package edit

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddymedia/media/storagedrivers/options"
)

// fold renames all known keys to their proper spelling. Caddy also accepts them in upper case, and
// a secret or a section under such a name would not be recognized.
func (c config) fold() {
	fold(c.app, tokenStore)
	for s := range sections {
		fold(c.app, string(s))
		for _, value := range c.section(s) {
			entry, _ := value.(object)
			fold(entry, driverGroup)
			if opts, err := s.options(driverOf(entry)); err == nil {
				foldOptions(entry, opts)
			}
		}
	}
	tokens := group(c.app, tokenStore)
	foldOptions(tokens, tokenOptions(tokens))
}

func foldOptions(of object, opts []options.Option) {
	for _, option := range opts {
		fold(of, option.Name)
		foldOptions(group(of, option.Name), asGroup(option, of).Options)
	}
}

// fold renames keys that differ from a name by case alone. The last of several counts, but the
// members of several objects are merged, as when Caddy reads them.
func fold(of object, name string) {
	folded := object{}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if !strings.EqualFold(key, name) {
			continue
		}
		before, after := group(folded, name), group(of, key)
		folded[name] = of[key]
		delete(of, key)
		if before != nil && after != nil {
			maps.Copy(before, after)
			folded[name] = before
		}
	}
	maps.Copy(of, folded)
}
