package modules

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

// values has an option of each kind of reader.
type values struct {
	text, word string
	texts      []string
	on         *bool
	count      int
	large      int64
	size       int64
	duration   options.Duration
	zero       options.Duration
}

func (v *values) readers() Readers {
	return Readers{
		"text": ReadText(&v.text), "texts": ReadTexts(&v.texts), "word": readWord(&v.word, "one", "two"),
		"on": readOnOff(&v.on), "count": readCount(&v.count), "large": readCount(&v.large),
		"size": readSize(&v.size), "duration": readDuration(&v.duration, false), "zero": readDuration(&v.zero, true),
	}
}

func (v *values) String() string {
	on := "not given"
	if v.on != nil {
		on = fmt.Sprint(*v.on)
	}
	return fmt.Sprintf("%q %q %q %s %d %d %d %s", v.text, v.word, v.texts, on, v.count, v.large, v.size, time.Duration(v.duration))
}

func parse(input string) (*values, *caddyfile.Dispenser, error) {
	v := new(values)
	d := caddyfile.NewTestDispenser(input)
	d.Next()
	return v, d, ParseBlock(d, "a test", v.readers(), "texts")
}

func TestParse(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]*values{
		"test":                              {},
		"test {\n}":                         {},
		"test {\n text x\n}":                {text: "x"},
		"test {\n text \"x y\"\n}":          {text: "x y"},
		"test {\n text \"\"\n}":             {},
		"test {\n texts a b\n texts c\n}":   {texts: []string{"a", "b", "c"}},
		"test {\n word two\n}":              {word: "two"},
		"test {\n on off\n}":                {on: new(bool)},
		"test {\n count 12\n}":              {count: 12},
		"test {\n large 5000000000\n}":      {large: 5e9},
		"test {\n size 32MiB\n}":            {size: 32 << 20},
		"test {\n size 2GB\n}":              {size: 2e9},
		"test {\n size 65536\n}":            {size: 65536},
		"test {\n size 1.5KiB\n}":           {size: 1536},
		"test {\n duration 90m\n}":          {duration: options.Duration(90 * time.Minute)},
		"test {\n duration 7d\n}":           {duration: options.Duration(7 * 24 * time.Hour)},
		"test {\n zero 0s\n}":               {},
		"test {\n zero 0\n}":                {},
		"test {\n text x # a comment\n}":    {text: "x"},
		"test {\n text x\n word one\n}\n\n": {text: "x", word: "one"},
	} {
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			got, _, err := parse(input)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != want.String() {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		"other x":                    `unknown option "other" of a test; there are count, duration, large, on, size, text, texts, word, zero, at Testfile:2`,
		"Text x":                     `unknown option "Text" of a test`,
		"text x\n text y":            `option "text" of a test is given twice`,
		"text":                       "text takes one value, not 0",
		"text x y":                   "text takes one value, not 2",
		"texts":                      "wrong argument count",
		"text x {\n y\n }":           `unknown option "{"`,
		"word":                       "word takes one value such as one, not 0",
		"word one two":               "word takes one value such as one, not 2",
		"word three":                 `word is one of one, two, not "three"`,
		"word \"\"":                  `word is one of one, two, not ""`,
		"on":                         "on takes one value such as on, not 0",
		"on true":                    `on is one of on, off, not "true"`,
		"count":                      "count takes one value such as 10, not 0",
		"count 0":                    `count is a number above zero, not "0"`,
		"count -1":                   `not "-1"`,
		"count 1.5":                  `not "1.5"`,
		"count 1e3":                  `not "1e3"`,
		"count x":                    `not "x"`,
		"count 99999999999999999999": `not "99999999999999999999"`,
		"size":                       "size takes one value such as 10MB, not 0",
		"size 0":                     `size is a size such as 32MiB, not "0"`,
		"size -1":                    `not "-1"`,
		"size 1XB":                   `not "1XB"`,
		"size 1 MiB":                 "size takes one value such as 10MB, not 2",
		"size 8EiB":                  `not "8EiB"`,
		"size 99EiB":                 `not "99EiB"`,
		"size NaN":                   `not "NaN"`,
		"size 0.1":                   `not "0.1"`,
		"duration":                   "duration takes one value such as 24h, not 0",
		"duration 0":                 `duration is a duration such as 24h, not "0"`,
		"duration -1h":               `not "-1h"`,
		"zero -1s":                   `zero is a duration such as 24h, not "-1s"`,
		"duration 24":                `not "24"`,
		"duration 99999999d":         `not "99999999d"`,
	} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			v, _, err := parse("test {\n " + option + "\n}")
			if err == nil {
				t.Fatalf("no error, and the values are %s", v)
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want %q", err, want)
			}
			if !strings.Contains(err.Error(), "Testfile:") {
				t.Errorf("error %q has no line", err)
			}
		})
	}
}

// TestParseStaysInItsBlock: the tokens after the block are not consumed.
func TestParseStaysInItsBlock(t *testing.T) {
	t.Parallel()
	v, d, err := parse("test {\n text x\n}\nother {\n text y\n}")
	if err != nil || v.text != "x" {
		t.Fatalf("text %q, error %v", v.text, err)
	}
	if !d.Next() || d.Val() != "other" {
		t.Errorf("the next word is %q", d.Val())
	}
}

func TestNestedBlocks(t *testing.T) {
	t.Parallel()
	var outer, inner values
	d := caddyfile.NewTestDispenser("test {\n block {\n  text x\n }\n text y\n}")
	d.Next()
	readers := outer.readers()
	readers["block"] = func(d *caddyfile.Dispenser) error { return ParseBlock(d, "a block", inner.readers()) }
	if err := ParseBlock(d, "a test", readers); err != nil {
		t.Fatal(err)
	}
	if outer.text != "y" || inner.text != "x" {
		t.Errorf("text %q outside and %q inside", outer.text, inner.text)
	}
	d = caddyfile.NewTestDispenser("test {\n block {\n  what x\n }\n}")
	d.Next()
	if err := ParseBlock(d, "a test", readers); err == nil || !strings.Contains(err.Error(), `"what" of a block`) {
		t.Errorf("error %v", err)
	}
}

func TestLargestSize(t *testing.T) {
	t.Parallel()
	v, _, err := parse(fmt.Sprintf("test {\n size %d\n}", int64(math.MaxInt64)))
	if err != nil || v.size != math.MaxInt64 {
		t.Errorf("size %d, error %v", v.size, err)
	}
}
