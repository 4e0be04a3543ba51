package adminapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestView(t *testing.T) {
	t.Parallel()
	c := loaded(t, `{"storages":{"a":{"driver":{"name":"sftp","address":"h","password":"p-of-a"},"sanitize":false},
		"x":{"driver":{"name":"unknown","password":"p-of-x"},"sanitize":true}},
		"accounts":{"k":{"password_hash":"hash","aliases":["content"]}},"image_aliases":{"i":{"webp":{"quality":70}}}}`)
	for name, want := range map[string]string{
		"storages/a":           `{"section":"storages","name":"a","implicit":false,"value":{"driver":{"name":"sftp","address":"h"},"sanitize":false},"secrets":["driver.password"]}`,
		"storages/x":           `{"section":"storages","name":"x","implicit":false,"value":{"driver":{"name":"unknown"}},"secrets":[]}`,
		"accounts/k":           `{"section":"accounts","name":"k","implicit":false,"value":{"aliases":["content"]},"secrets":["password_hash"]}`,
		"image_aliases/i":      `{"section":"image_aliases","name":"i","implicit":false,"value":{"webp":{"quality":70}},"secrets":[]}`,
		"storages/none":        ``,
		"file_aliases/content": ``,
	} {
		word, entry, _ := strings.Cut(name, "/")
		view := c.view(section(word), entry)
		if (view == nil) != (want == "") {
			t.Errorf("%s: %v", name, view)
		}
		if view != nil {
			mustEqual(t, view, want)
		}
	}
	if view := loaded(t, `{}`).view(imageAliases, "content"); view == nil || !view.Implicit {
		t.Errorf("the app's own alias: %+v", view)
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, entry := range []string{`{}`, `{"a":1}`, `{"a":2}`, `{"a":"1"}`, `{"password":"x"}`, `{"password":"y"}`} {
		tag := tagOf(storages, "s", parsed(t, entry))
		if other, twice := seen[tag]; twice {
			t.Errorf("%s and %s have one tag", entry, other)
		}
		seen[tag] = entry
	}
	if tagOf(storages, "s", parsed(t, `{"a":1,"b":2}`)) != tagOf(storages, "s", parsed(t, `{"b":2,"a":1}`)) {
		t.Error("the order of keys counts")
	}
	if tagOf(storages, "s", object{}) == tagOf(accounts, "s", object{}) || tagOf(storages, "s", object{}) == tagOf(storages, "r", object{}) {
		t.Error("two entries have one tag")
	}
}

func TestCondition(t *testing.T) {
	t.Parallel()
	current := &shownEntry{Tag: `"12ab"`}
	for name, c := range map[string]struct {
		condition condition
		current   *shownEntry
		want      int
	}{
		"new":                       {condition{isNew: true}, nil, 0},
		"new, and there is one":     {condition{isNew: true}, current, http.StatusPreconditionFailed},
		"nothing":                   {condition{}, current, http.StatusPreconditionRequired},
		"nothing, and none":         {condition{}, nil, http.StatusPreconditionRequired},
		"the tag":                   {condition{tags: `"12ab"`}, current, 0},
		"the tag compressed":        {condition{tags: `"12ab-gzip"`}, current, 0},
		"one of several":            {condition{tags: `"x", "12ab"`}, current, 0},
		"any":                       {condition{tags: `*`}, current, 0},
		"another":                   {condition{tags: `"x"`}, current, http.StatusPreconditionFailed},
		"a weak one":                {condition{tags: `W/"12ab"`}, current, http.StatusPreconditionFailed},
		"the tag, and it is gone":   {condition{tags: `"12ab"`}, nil, http.StatusNotFound},
		"something without a quote": {condition{tags: `12ab`}, current, http.StatusPreconditionFailed},
	} {
		err := c.condition.check(storages, "s", c.current)
		if status, _ := statusOf(err); status != c.want {
			t.Errorf("%s: status %d, want %d", name, status, c.want)
		}
	}
}

func TestEntryNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"storages/a-b_1": 0, "storages/": 400, "storages/A": 400, "storages/a b": 400, "storages/a/b": 400, "storages/..": 400,
		"image_aliases/x": 0, "accounts/Site.One~1": 0, "accounts/a/b": 400, "accounts/": 400, "limits/x": 404, "tokens/x": 404, "/": 404,
	} {
		word, entry, _ := strings.Cut(name, "/")
		if status, _ := statusOf(section(word).check(entry)); status != want {
			t.Errorf("%s: status %d, want %d", name, status, want)
		}
	}
	if storages.check(strings.Repeat("a", 65)) == nil {
		t.Error("a name of 65 letters is taken")
	}
}
