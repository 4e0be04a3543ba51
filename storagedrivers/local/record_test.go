package local

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var intents = []intent{
	{create, "f/a b", `"1-2-3"`, "a1"}, {replace, "ě", `"1"`, "b"}, {remove, "c.webp", "", "zz"},
}

func recordOf(intents ...intent) []byte {
	data := []byte(recordOpen)
	for _, one := range intents {
		data = append(data, one.line()...)
	}
	return data
}

func TestRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r, err := newRecord(root, "1.group", intents[:2])
	if err != nil {
		t.Fatal(err)
	}
	if err := r.add(intents[2]); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "1.group"))
	if err != nil || !bytes.Equal(data, recordOf(intents...)) || !slices.Equal(parseRecord(data), intents) {
		t.Errorf("%q, %v", data, err)
	}
	for n := range data { // of a line that is not whole nothing was done yet
		if got := parseRecord(data[:n]); !slices.Equal(got, intents[:len(got)]) || len(got) == len(intents) {
			t.Errorf("%d bytes are %v", n, got)
		}
		bent := bytes.Clone(data)
		bent[n] ^= 1
		if got := parseRecord(bent); !slices.Equal(got, intents[:len(got)]) || len(got) == len(intents) {
			t.Errorf("with byte %d changed it is %v", n, got)
		}
	}
	if err := r.void(); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(filepath.Join(dir, "1.group")); err != nil || parseRecord(data) != nil {
		t.Errorf("void: %q, %v", data, err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

func TestRecordRefusesOddIntents(t *testing.T) {
	t.Parallel()
	for _, odd := range []intent{
		{},
		{"other", "a", `"1"`, "a"},
		{create, "../a", `"1"`, "a"},
		{create, ".media-tmp-A/1", `"1"`, "a"},
		{create, "a", "", "a"},
		{create, "a", `"1"`, ""},
		{create, "a", `"1"`, "../a"},
		{create, "a", `"1"`, "a/b"},
		{create, "a", `"1"`, "a.group"},
	} {
		if got := parseRecord(recordOf(odd, intents[0])); len(got) > 0 {
			t.Errorf("%+v is read as %+v", odd, got)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(recordOf(intents...))
	f.Add(append([]byte(recordVoid), recordOf(intents...)...))
	f.Add([]byte(recordOpen + "00000000 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed := parseRecord(data)
		for _, one := range parsed {
			if !one.valid() {
				t.Errorf("%+v", one)
			}
		}
		if again := parseRecord(recordOf(parsed...)); !slices.Equal(again, parsed) {
			t.Errorf("%+v, then %+v", parsed, again)
		}
	})
}
