package edit

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/storagedrivers/options"
)

// Download returns the configuration of the app for use outside the host. Each secret in it is
// replaced by a placeholder such as {env.MEDIA_STORAGES_ARCHIVE_PASSWORD}.
func (e *Editor) Download(ctx context.Context) (map[string]any, error) {
	c, err := e.read(ctx)
	if err != nil {
		return nil, err
	}
	c.veil()
	return c.app, nil
}

// veil replaces the secrets by placeholders.
func (c config) veil() {
	v := veiler{taken: map[string]bool{}}
	for _, s := range slices.Sorted(maps.Keys(sections)) { // that the same names are given each time
		entries := c.section(s)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			entry, _ := entries[name].(object)
			place := []string{string(s), name}
			opts, err := s.options(driverOf(entry))
			if err != nil {
				v.allBut(driverKind, place, group(entry, driverGroup))
				continue
			}
			v.described(opts, place, entry)
		}
	}
	if store := group(c.app, tokenStore); store != nil {
		v.tokens(store)
	}
}

// veiler replaces secrets by placeholders. Each placeholder stands for one secret.
type veiler struct{ taken map[string]bool }

// described replaces the options that the description marks as secret.
func (v veiler) described(opts []options.Option, place []string, entry object) {
	for _, option := range opts {
		switch {
		case option.Type == options.Group && option.Name == driverGroup:
			v.described(option.Options, place, group(entry, option.Name))
		case option.Type == options.Group:
			v.described(option.Options, append(slices.Clone(place), option.Name), group(entry, option.Name))
		case option.Secret && !empty(entry[option.Name]):
			entry[option.Name] = v.veiled(place, option.Name, entry[option.Name])
		}
	}
}

// allBut replaces all options except the known one, which is harmless.
func (v veiler) allBut(known string, place []string, entry object) {
	for _, name := range slices.Sorted(maps.Keys(entry)) {
		if name != known && !empty(entry[name]) {
			entry[name] = v.veiled(place, name, entry[name])
		}
	}
}

// tokens replaces the secrets of a token store, or all options of a store that does not describe
// them.
func (v veiler) tokens(store object) {
	place := []string{tokenStore}
	if opts := tokenOptions(store); opts != nil {
		v.described(opts, place, store)
		return
	}
	v.allBut(storeKind, place, store)
}

// The token store is in a group of this name. One of its options is the name of the store.
const (
	tokenStore = "tokens"
	storeKind  = "store"
)

// tokenOptions returns the options of a token store, or nil if the store does not describe them.
func tokenOptions(store object) []options.Option {
	kind, _ := store[storeKind].(string)
	info, err := caddy.GetModule("media.tokens." + kind)
	if err != nil {
		return nil
	}
	described, ok := info.New().(options.Described)
	if !ok {
		return nil
	}
	return described.Schema().Options
}

var (
	wholePlaceholder = regexp.MustCompile(`^\{[^{}]+\}$`)
	unfit            = regexp.MustCompile(`[^A-Z0-9]+`)
)

// veiled returns the placeholder for a secret, or the secret itself if it is a placeholder.
func (v veiler) veiled(place []string, option string, secret any) any {
	if text, ok := secret.(string); ok && wholePlaceholder.MatchString(text) {
		return text
	}
	name := "MEDIA_" + unfit.ReplaceAllString(strings.ToUpper(strings.Join(append(slices.Clone(place), option), "_")), "_")
	free := name
	for i := 2; v.taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	v.taken[free] = true
	return "{env." + free + "}"
}
