package edit

import (
	"net/http"
	"strings"
	"testing"
)

func TestView(t *testing.T) {
	t.Parallel()
	c := loaded(t, `{"storages":{"a":{"driver":{"name":"sftp","address":"h","password":"p-of-a"},"sanitize":false},
		"x":{"driver":{"name":"foreign","password":"p-of-x"},"sanitize":true}},
		"accounts":{"k":{"password_hash":"hash","aliases":["content"]}},"image_aliases":{"i":{"webp":{"quality":70}}}}`)
	for name, want := range map[string]string{
		"storages/a":           `{"section":"storages","name":"a","implicit":false,"value":{"driver":{"name":"sftp","address":"h"},"sanitize":false},"secrets":["driver.password"]}`,
		"storages/x":           `{"section":"storages","name":"x","implicit":false,"value":{"driver":{"name":"foreign"}},"secrets":[]}`,
		"accounts/k":           `{"section":"accounts","name":"k","implicit":false,"value":{"aliases":["content"]},"secrets":["password_hash"]}`,
		"image_aliases/i":      `{"section":"image_aliases","name":"i","implicit":false,"value":{"webp":{"quality":70}},"secrets":[]}`,
		"storages/none":        ``,
		"file_aliases/content": ``,
	} {
		section, entry, _ := strings.Cut(name, "/")
		view := c.view(Section(section), entry)
		if (view == nil) != (want == "") {
			t.Errorf("%s: %v", name, view)
		}
		if view != nil {
			mustEqual(t, view, want)
		}
	}
	if view := loaded(t, `{}`).view(ImageAliases, "content"); view == nil || !view.Implicit {
		t.Errorf("the app's own alias: %+v", view)
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, entry := range []string{`{}`, `{"a":1}`, `{"a":2}`, `{"a":"1"}`, `{"password":"x"}`, `{"password":"y"}`} {
		tag := tagOf(Storages, "s", parsed(t, entry))
		if other, twice := seen[tag]; twice {
			t.Errorf("%s and %s have one tag", entry, other)
		}
		seen[tag] = entry
	}
	if tagOf(Storages, "s", parsed(t, `{"a":1,"b":2}`)) != tagOf(Storages, "s", parsed(t, `{"b":2,"a":1}`)) {
		t.Error("the order of keys counts")
	}
	if tagOf(Storages, "s", object{}) == tagOf(Accounts, "s", object{}) || tagOf(Storages, "s", object{}) == tagOf(Storages, "r", object{}) {
		t.Error("two entries have one tag")
	}
}

func TestCondition(t *testing.T) {
	t.Parallel()
	current := &Entry{Tag: `"12ab"`}
	for name, c := range map[string]struct {
		condition Condition
		current   *Entry
		want      int
	}{
		"new":                       {Condition{New: true}, nil, 0},
		"new, and there is one":     {Condition{New: true}, current, http.StatusPreconditionFailed},
		"nothing":                   {Condition{}, current, http.StatusPreconditionRequired},
		"nothing, and none":         {Condition{}, nil, http.StatusPreconditionRequired},
		"the tag":                   {Condition{Tags: `"12ab"`}, current, 0},
		"the tag compressed":        {Condition{Tags: `"12ab-gzip"`}, current, 0},
		"one of several":            {Condition{Tags: `"x", "12ab"`}, current, 0},
		"any":                       {Condition{Tags: `*`}, current, 0},
		"another":                   {Condition{Tags: `"x"`}, current, http.StatusPreconditionFailed},
		"a weak one":                {Condition{Tags: `W/"12ab"`}, current, http.StatusPreconditionFailed},
		"the tag, and it is gone":   {Condition{Tags: `"12ab"`}, nil, http.StatusNotFound},
		"something without a quote": {Condition{Tags: `12ab`}, current, http.StatusPreconditionFailed},
	} {
		err := c.condition.check(Storages, "s", c.current)
		if status, _ := statusOf(err); status != c.want {
			t.Errorf("%s: status %d, want %d", name, status, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"storages/a-b_1": 0, "storages/": 400, "storages/A": 400, "storages/a b": 400, "storages/a/b": 400, "storages/..": 400,
		"image_aliases/x": 0, "accounts/Site.One~1": 0, "accounts/a/b": 400, "accounts/": 400, "limits/x": 404, "tokens/x": 404, "/": 404,
	} {
		section, entry, _ := strings.Cut(name, "/")
		if status, _ := statusOf(Section(section).check(entry)); status != want {
			t.Errorf("%s: status %d, want %d", name, status, want)
		}
	}
	if Storages.check(strings.Repeat("a", 65)) == nil {
		t.Error("a name of 65 letters is taken")
	}
}
