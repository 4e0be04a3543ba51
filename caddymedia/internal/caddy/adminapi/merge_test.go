package adminapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/options"
)

// testOptions has an option of each type that is merged differently.
var testOptions = []options.Option{
	{Name: "text", Type: options.Text},
	{Name: "list", Type: "texts"},
	{Name: "on", Type: "switch"},
	{Name: "size", Type: options.Size},
	{Name: "secret", Type: options.Text, Secret: true},
	{Name: "group", Type: options.Group, Options: []options.Option{
		{Name: "inner", Type: options.Text},
		{Name: "hidden", Type: options.Text, Secret: true},
	}},
	{Name: "boxes", Type: options.Groups, Line: "box", Options: []options.Option{
		{Name: "width", Type: "count"},
		{Name: "hidden", Type: options.Text, Secret: true},
	}},
}

func TestShown(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]struct {
		value   string
		secrets []string
	}{
		`{}`: {`{}`, nil},
		`{"text":"a","list":["b"],"on":false,"size":9007199254740993}`: {`{"text":"a","list":["b"],"on":false,"size":9007199254740993}`, nil},
		`{"secret":"s","group":{"inner":"i","hidden":"h"}}`:            {`{"group":{"inner":"i"}}`, []string{"secret", "group.hidden"}},
		`{"secret":"","text":null,"group":{}}`:                         {`{"group":{}}`, nil},
		`{"other":"unknown","group":{"other":"secret"}}`:               {`{"group":{}}`, nil},
		`{"boxes":{"b":{"width":1,"hidden":"h"},"a":{"hidden":"h"}}}`:  {`{"boxes":{"a":{},"b":{"width":1}}}`, []string{"boxes.a.hidden", "boxes.b.hidden"}},
	} {
		value, secrets := shown(testOptions, parsed(t, entry))
		mustEqual(t, value, want.value)
		if !slices.Equal(secrets, want.secrets) {
			t.Errorf("%s: secrets %q, want %q", entry, secrets, want.secrets)
		}
	}
}

func TestMerged(t *testing.T) {
	t.Parallel()
	const old = `{"text":"a","secret":"s","group":{"inner":"i","hidden":"h"}}`
	for name, c := range map[string]struct {
		old, value string
		secrets    map[string]string
		want       string
	}{
		"options are those of the body":    {old, `{"list":["b"]}`, nil, `{"list":["b"],"secret":"s"}`},
		"numbers stay as they are":         {`{}`, `{"size":9007199254740993}`, nil, `{"size":9007199254740993}`},
		"false is a value":                 {`{}`, `{"on":false}`, nil, `{"on":false}`},
		"empty ones are left out":          {old, `{"text":"","list":[],"on":null,"group":null}`, nil, `{"secret":"s"}`},
		"a group may be empty":             {`{"group":{}}`, `{"text":"a","group":{"inner":""}}`, nil, `{"text":"a","group":{}}`},
		"a group keeps its secret":         {old, `{"group":{"inner":"j"}}`, nil, `{"secret":"s","group":{"inner":"j","hidden":"h"}}`},
		"secrets are changed":              {old, `{}`, map[string]string{"secret": "t"}, `{"secret":"t"}`},
		"secrets are removed":              {old, `{"text":"a"}`, map[string]string{"secret": ""}, `{"text":"a"}`},
		"secrets in groups are changed":    {old, `{"group":{"inner":"i"}}`, map[string]string{"group.hidden": "g"}, `{"secret":"s","group":{"inner":"i","hidden":"g"}}`},
		"a secret alone makes a group":     {`{}`, `{}`, map[string]string{"group.hidden": "g"}, `{"group":{"hidden":"g"}}`},
		"named groups are added":           {`{}`, `{"boxes":{"a":{"width":1},"b":{}}}`, map[string]string{"boxes.a.hidden": "h"}, `{"boxes":{"a":{"width":1,"hidden":"h"},"b":{}}}`},
		"a named group keeps its secret":   {`{"boxes":{"a":{"width":1,"hidden":"h"}}}`, `{"boxes":{"a":{"width":2}}}`, nil, `{"boxes":{"a":{"width":2,"hidden":"h"}}}`},
		"named groups are removed":         {`{"boxes":{"a":{"hidden":"h"},"b":{"width":2}}}`, `{"boxes":{"b":{"width":2}}}`, nil, `{"boxes":{"b":{"width":2}}}`},
		"all named groups are removed":     {`{"boxes":{"a":{"hidden":"h"}}}`, `{"boxes":{}}`, nil, `{}`},
		"without a value all are removed":  {`{"boxes":{"a":{"hidden":"h"}}}`, `{}`, nil, `{}`},
		"a new entry has what it is given": {`{}`, `{"text":"a"}`, map[string]string{"secret": "{env.S}"}, `{"text":"a","secret":"{env.S}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := merged(testOptions, parsed(t, c.old), parsed(t, c.value), c.secrets)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, got, c.want)
		})
	}
}

func TestMergedRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value   string
		secrets map[string]string
		option  string
	}{
		"an unknown option":          {`{"txet":"a"}`, nil, "txet"},
		"an unknown option in depth": {`{"group":{"x":"a"}}`, nil, "group.x"},
		"a secret among the values":  {`{"secret":"s"}`, nil, "secret"},
		"a secret that is none":      {`{}`, map[string]string{"text": "s"}, "text"},
		"an unknown secret":          {`{}`, map[string]string{"group.none": "s"}, "group.none"},
		"a group that is none":       {`{"group":"a"}`, nil, "group"},
		"a text for a number":        {`{"size":"32 MiB"}`, nil, "size"},
		"named groups that are none": {`{"boxes":"a"}`, nil, "boxes"},
		"a named group that is none": {`{"boxes":{"a":7}}`, nil, "boxes.a"},
		"an option of a named group": {`{"boxes":{"a":{"x":7}}}`, nil, "boxes.a.x"},
		"a value in a named group":   {`{"boxes":{"a":{"width":"7"}}}`, nil, "boxes.a.width"},
		"a secret of no group":       {`{"boxes":{}}`, map[string]string{"boxes.a.hidden": "s"}, "boxes.a.hidden"},
		"a number for a text":        {`{"group":{"inner":7}}`, nil, "group.inner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := merged(testOptions, object{}, parsed(t, c.value), c.secrets)
			if status, option := statusOf(err); status != http.StatusBadRequest || option != c.option {
				t.Errorf("status %d for option %q, want 400 for %q: %v", status, option, c.option, err)
			}
		})
	}
}

// TestAppliedToDrivers: the secrets of one driver never go to another.
func TestAppliedToDrivers(t *testing.T) {
	t.Parallel()
	const app = `{"storages":{"archive":{"sanitize":false,
		"driver":{"name":"sftp","address":"host","user":"u","password":"p","host_key":["k"]}}}}`
	for name, c := range map[string]struct {
		value, want string
		secrets     map[string]string
	}{
		"the same kind": {
			value: `{"driver":{"name":"sftp","address":"other"}}`,
			want:  `{"driver":{"name":"sftp","address":"other","password":"p"}}`,
		},
		"another kind": {
			value: `{"driver":{"name":"ftp2","address":"other"}}`,
		},
		"another kind that is known": {
			value:   `{"driver":{"name":"s3","bucket":"b"}}`,
			secrets: map[string]string{"driver.secret_access_key": "s"},
			want:    `{"driver":{"name":"s3","bucket":"b","secret_access_key":"s"}}`,
		},
		"another kind with a password": {
			value: `{"driver":{"name":"ftp","address":"other"}}`,
			want:  `{"driver":{"name":"ftp","address":"other"}}`,
		},
		"no driver": {value: `{"sanitize":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := loaded(t, app).applied(change{
				section: storages, name: "archive", Value: parsed(t, c.value), Secrets: c.secrets,
			})
			if c.want == "" {
				if status, option := statusOf(err); status != http.StatusBadRequest || option != "driver.name" {
					t.Errorf("status %d for option %q: %v", status, option, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, got, c.want)
		})
	}
}

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
