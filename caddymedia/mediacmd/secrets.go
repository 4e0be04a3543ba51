package mediacmd

import (
	"encoding/json"
	"net/url"
	"strings"
)

// A secret shorter than this stands in many words by chance.
const minSecret = 4

// hideSecrets replaces secrets in a text, also where they are quoted or part of an
// address.
func hideSecrets(text string, secrets []string) string {
	for _, secret := range secrets {
		for _, spelling := range spellings(secret) {
			if len(spelling) >= minSecret {
				text = strings.ReplaceAll(text, spelling, "***")
			}
		}
	}
	return text
}

// spellings gives what a secret may look like in an error: itself, each line of a key, and
// both as they stand in quotes and in addresses.
func spellings(secret string) []string {
	const long = 16 // shorter lines say nothing by themselves
	plain := []string{secret, strings.TrimSpace(secret)}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= long && !strings.HasPrefix(line, "-----") {
			plain = append(plain, line)
		}
	}
	all := make([]string, 0, 4*len(plain))
	for _, text := range plain {
		all = append(all, text, url.QueryEscape(text), url.PathEscape(text))
		if quoted, err := json.Marshal(text); err == nil {
			all = append(all, string(quoted[1:len(quoted)-1]))
		}
	}
	return all
}
