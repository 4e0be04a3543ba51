package local

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caddymedia/media/internal/test"
)

var intents = []intent{
	{create, "f/a b", `"1-2-3"`, "", "a1"}, {replace, "ě", `"1"`, `"0"`, "b"}, {remove, "c.webp", `"3"`, "", "zz"},
}

func recordOf(state string, intents ...intent) []byte {
	data := []byte(state)
	for _, one := range intents {
		data = append(data, one.line()...)
	}
	return data
}

func TestRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	test.Must(t, err)
	defer root.Close()
	r, err := newRecord(root, "1.group", intents)
	test.Must(t, err)
	for _, state := range []string{recordOpen, recordDecided, recordVoid} {
		test.Must(t, r.set(state))
		data, err := os.ReadFile(filepath.Join(dir, "1.group"))
		test.Must(t, err)
		want := intents
		if state == recordVoid {
			want = nil
		}
		gotState, got := parseRecord(data)
		if gotState != state || !slices.Equal(got, want) || !bytes.Equal(data, recordOf(state, intents...)) {
			t.Errorf("%q is %q, %v", data, gotState, got)
		}
	}
	test.Must(t, r.close())
	data := recordOf(recordOpen, intents...)
	for n := range data { // of a record that is not whole nothing was done yet
		if _, got := parseRecord(data[:n]); !slices.Equal(got, intents[:len(got)]) || len(got) == len(intents) {
			t.Errorf("%d bytes are %v", n, got)
		}
		bent := bytes.Clone(data)
		bent[n] ^= 1
		if _, got := parseRecord(bent); !slices.Equal(got, intents[:len(got)]) || len(got) == len(intents) {
			t.Errorf("with byte %d changed it is %v", n, got)
		}
	}
}

func TestRecordRefusesOddIntents(t *testing.T) {
	t.Parallel()
	for _, odd := range []intent{
		{},
		{"other", "a", `"1"`, "", "a"},
		{create, "../a", `"1"`, "", "a"},
		{create, ".media-tmp-A/1", `"1"`, "", "a"},
		{create, "a", "", "", "a"},
		{create, "a", `"1"`, `"0"`, "a"},
		{replace, "a", `"1"`, "", "a"},
		{create, "a", `"1"`, "", ""},
		{create, "a", `"1"`, "", "../a"},
		{create, "a", `"1"`, "", "a/b"},
		{create, "a", `"1"`, "", "a.group"},
	} {
		if _, got := parseRecord(recordOf(recordOpen, odd, intents[0])); len(got) > 0 {
			t.Errorf("%+v is read as %+v", odd, got)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(recordOf(recordOpen, intents...))
	f.Add(append([]byte(recordVoid), recordOf(recordDecided, intents...)...))
	f.Add([]byte(recordOpen + "00000000 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, parsed := parseRecord(data)
		for _, one := range parsed {
			if !one.valid() {
				t.Errorf("%+v", one)
			}
		}
		if _, again := parseRecord(recordOf(state, parsed...)); !slices.Equal(again, parsed) {
			t.Errorf("%+v, then %+v", parsed, again)
		}
	})
}
