package adminapi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// caddyfileAnswer is the configuration of the app as a global option of a Caddyfile.
type caddyfileAnswer struct {
	// Text is the global option, with the rest as comments before it.
	Text string `json:"text"`
	// Command prints a value of the configuration on the host, if "/" and its path are added.
	Command string `json:"command"`
	// Variables stand for the secrets.
	Variables []variable `json:"variables"`
	// Omitted are the paths of the values that a Caddyfile cannot express.
	Omitted []string `json:"omitted"`
}

// variable is a variable of the environment that stands for a secret.
type variable struct {
	Name string `json:"name"`
	// Path is the path of the secret in the configuration of the app: accounts/shop/password_hash.
	Path string `json:"path"`
}

// caddyfile returns a configuration as a global option of a Caddyfile, without secrets.
func (c config) caddyfile(command string) (*caddyfileAnswer, error) {
	variables := c.veil()
	block, omitted, err := plugin.Caddyfile(canonical(c.app))
	if err != nil {
		return nil, fmt.Errorf("writing the configuration as a Caddyfile: %w", err)
	}
	comments := make([]string, 0, len(variables)+len(omitted))
	for _, v := range variables {
		comments = append(comments, v.Name+": "+v.Path)
	}
	text := commented("Variables to set in the environment of Caddy. Keep the line of the old Caddyfile instead where\n"+
		"its value was not changed. "+command+"/<path> prints each value:", comments) +
		commented("Not in this block, because a Caddyfile cannot express it:", omitted) + block
	return &caddyfileAnswer{Text: text, Command: command, Variables: variables, Omitted: append([]string{}, omitted...)}, nil
}

// commented returns comments of a Caddyfile, none if there are no lines.
func commented(title string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("\t# " + strings.ReplaceAll(title, "\n", "\n\t# ") + "\n")
	for _, line := range lines {
		text.WriteString("\t#   " + strings.Join(strings.Fields(line), " ") + "\n") // a line of its own
	}
	return text.String()
}

// veil replaces the secrets by placeholders, and returns their variables.
func (c config) veil() []variable {
	v := &veiler{taken: map[string]bool{}, variables: []variable{}}
	for _, found := range envPlaceholder.FindAllStringSubmatch(string(canonical(c.app)), -1) {
		v.taken[found[1]] = true
	}
	for _, s := range slices.Sorted(maps.Keys(sections)) { // that the same names are given each time
		entries := c.section(s)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			entry, _ := entries[name].(object)
			path := []string{string(s), name}
			opts, err := s.options(driverOf(entry))
			if err != nil {
				v.veil(nil, driverName, append(path, driverGroup), group(entry, driverGroup))
				continue
			}
			v.veil(opts, "", path, entry)
		}
	}
	store := group(c.app, tokenStore)
	name, _ := store[storeName].(string)
	opts, _ := moduleOptions("media.tokens." + name)
	v.veil(opts, storeName, []string{tokenStore}, store)
	v.veil(media.Schemas.Settings.Options, "", nil, c.app)
	return v.variables
}

// veiler replaces secrets by placeholders. Each placeholder stands for one secret.
type veiler struct {
	taken     map[string]bool // names of variables
	variables []variable
}

// veil replaces the options that are described as secret. Without a description it replaces all
// options but the name of the module, which is harmless.
func (v *veiler) veil(opts []options.Option, module string, path []string, entry object) {
	for _, name := range slices.Sorted(maps.Keys(entry)) {
		if opts == nil && name != module && !empty(entry[name]) {
			entry[name] = v.veiled(append(slices.Clone(path), name), entry[name])
		}
	}
	for _, option := range opts {
		option = asGroup(option, entry)
		at := append(slices.Clone(path), option.Name)
		switch {
		case option.Type == options.Group && option.Options != nil:
			v.veil(option.Options, "", at, group(entry, option.Name))
		case option.Secret && !empty(entry[option.Name]):
			entry[option.Name] = v.veiled(at, entry[option.Name])
		}
	}
}

// The token store is in a group of this name. One of its options is the name of the store.
const (
	tokenStore = "tokens"
	storeName  = "store"
)

var (
	wholePlaceholder = regexp.MustCompile(`^\{[^{}]+\}$`)
	envPlaceholder   = regexp.MustCompile(`\{env\.([^{}]+)\}`)
	unfit            = regexp.MustCompile(`[^A-Z0-9]+`)
)

// veiled returns the placeholder for a secret, or the secret itself if it is a placeholder. Each of
// a list has its own.
func (v *veiler) veiled(path []string, secret any) any {
	if list, ok := secret.([]any); ok {
		veiled := make([]any, len(list))
		for i, one := range list {
			veiled[i] = v.veiled(append(slices.Clone(path), strconv.Itoa(i)), one)
		}
		return veiled
	}
	if text, ok := secret.(string); ok && wholePlaceholder.MatchString(text) {
		return text
	}
	words := slices.Clone(path)
	if words[0] == string(storages) && words[2] == driverGroup {
		words = slices.Delete(words, 2, 3) // it says nothing
	}
	name := "MEDIA_" + unfit.ReplaceAllString(strings.ToUpper(strings.Join(words, "_")), "_")
	free := name
	for i := 2; v.taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	v.taken[free] = true
	v.variables = append(v.variables, variable{free, strings.Join(path, "/")})
	return "{env." + free + "}"
}
