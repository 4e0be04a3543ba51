package api

import "strings"

// optionError gives what is wrong with the options of a driver without what Caddy puts in
// front.
func optionError(err error) string {
	text := err.Error()
	for _, wrapper := range []string{": provision media.storages.", ": invalid configuration: ", "decoding module config: media.storages."} {
		_, inner, found := strings.Cut(text, wrapper)
		if !found {
			continue
		}
		if strings.HasSuffix(wrapper, ".") { // the name of the module follows
			_, inner, _ = strings.Cut(inner, ": ")
		}
		text = inner
	}
	return text
}
