package signing

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// TestText: the text is the one of the documentation.
func TestText(t *testing.T) {
	t.Parallel()
	f := Fields{Kind: "image", Alias: "private", Scope: Filename, Name: "26-11/20/ěš.jpg", Expires: 1800000000, Download: "a b.jpg"}
	const want = "6:media15:image7:private8:filename17:26-11/20/ěš.jpg0:10:18000000007:a b.jpg1:0"
	if got := string(f.text()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestVerify: each of the keys verifies, no other does, and a signature has one spelling.
func TestVerify(t *testing.T) {
	t.Parallel()
	key := func(letter string) []byte { return []byte(strings.Repeat(letter, MinKey)) }
	f := Fields{Kind: "file", Alias: "a", Scope: Folder, Name: "/", Expires: 1}
	keys := [][]byte{key("a"), key("b")}
	for letter, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got := f.Verify(keys, f.Sign(key(letter))); got != want {
			t.Errorf("key %s: got %v", letter, got)
		}
	}
	signature := f.Sign(key("a"))
	for _, other := range []string{
		"", signature + "=", signature[1:], strings.ToLower(signature), signature + "A", " " + signature,
		signature[:42] + string(signature[42]+1), // perhaps the same bytes
	} {
		if f.Verify(keys, other) {
			t.Errorf("%q verifies", other)
		}
	}
	if f.Verify(nil, signature) {
		t.Error("it verifies without a key")
	}
}

// TestChanged: another value of any field has another signature.
func TestChanged(t *testing.T) {
	t.Parallel()
	f := Fields{"image", "a", Filename, "x", "thumb", 5, "d", 1}
	seen := map[string]Fields{}
	for _, other := range []Fields{
		f,
		{"file", "a", Filename, "x", "thumb", 5, "d", 1},
		{"image", "b", Filename, "x", "thumb", 5, "d", 1},
		{"image", "a", Folder, "x", "thumb", 5, "d", 1},
		{"image", "a", Filename, "y", "thumb", 5, "d", 1},
		{"image", "a", Filename, "x", "", 5, "d", 1},
		{"image", "a", Filename, "x", "thumb", 6, "d", 1},
		{"image", "a", Filename, "x", "thumb", 5, "", 1},
		{"image", "a", Filename, "x", "thumb", 5, "d", 2},
		{"image", "a", Filename, "x", "thumb", 51, "d", 0},
		{"image", "ax", Filename, "", "thumb", 5, "d", 1},
		{"image", "a", Filename, "", "xthumb", 5, "d", 1},
	} {
		signature := other.Sign([]byte("k"))
		if before, twice := seen[signature]; twice {
			t.Errorf("%+v and %+v sign alike", before, other)
		}
		seen[signature] = other
	}
}

// FuzzText: two sets of fields have the same text only if they are the same, because the fields can
// be read back from the text.
func FuzzText(f *testing.F) {
	f.Add("image", "a", "filename", "x", "", int64(1), "", int64(0))
	f.Add("file", "1:a", "folder", "/", "3:a:b", int64(-1), "0:", int64(9))
	f.Fuzz(func(t *testing.T, kind, alias, scope, name, rendition string, expires int64, download string, generation int64) {
		fields := Fields{kind, alias, scope, name, rendition, expires, download, generation}
		want := []string{version, kind, alias, scope, name, rendition, fmt.Sprint(expires), download, fmt.Sprint(generation)}
		rest := string(fields.text())
		for _, field := range want {
			length, after, found := strings.Cut(rest, ":")
			if !found || length != fmt.Sprint(len(field)) || !strings.HasPrefix(after, field) {
				t.Fatalf("%q is not read back from %q", field, rest)
			}
			rest = after[len(field):]
		}
		if rest != "" {
			t.Fatalf("%q is left", rest)
		}
	})
}

// TestExpiry: with a step the end is a multiple of it, between the lifetime and the lifetime plus a
// step ahead; never further ahead than allowed, and never past.
func TestExpiry(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for _, c := range []struct {
		now            int64
		lifetime, step time.Duration
		want           int64
	}{
		{1000, time.Minute, 0, 1060},
		{1000, 100 * time.Second, time.Hour, 3600},
		{1000, 2600 * time.Second, time.Hour, 3600},
		{1000, 2601 * time.Second, time.Hour, 7200},
		{604800, MaxLifetime, day, 2 * 604800},
		{604801, MaxLifetime, day, 2 * 604800},
		{604800, MaxLifetime - time.Second, day, 2 * 604800},
		{604800, time.Second, MaxLifetime, 2 * 604800},
		{2*604800 - 1, time.Hour, MaxLifetime, 2 * 604800},
	} {
		if got := Expiry(time.Unix(c.now, 5e8), c.lifetime, c.step); got != c.want {
			t.Errorf("at %d for %v in steps of %v: got %d, want %d", c.now, c.lifetime, c.step, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		now := time.Unix(r.Int64N(2e9), r.Int64N(1e9))
		lifetime := time.Duration(1+r.Int64N(604800)) * time.Second
		step := time.Duration(1+r.Int64N(604800)) * time.Second
		expires := Expiry(now, lifetime, step)
		ahead := time.Unix(expires, 0).Sub(now)
		wanted := lifetime - time.Second // the fraction of now is not counted
		if ahead <= 0 || ahead > MaxLifetime || expires%int64(step/time.Second) != 0 || ahead > lifetime+step ||
			ahead < wanted && ahead+step <= MaxLifetime {
			t.Fatalf("at %v for %v in steps of %v: %v ahead", now, lifetime, step, ahead)
		}
	}
}

// TestClocks: an address is accepted for 5 s after its end, and at most 7 days before it.
func TestClocks(t *testing.T) {
	t.Parallel()
	for now, want := range map[time.Time]bool{
		time.Unix(1000, 0): false, time.Unix(1005, 0): false, time.Unix(1005, 1): true, time.Unix(1006, 0): true, time.Unix(0, 0): false,
	} {
		if got := Expired(now, 1000); got != want {
			t.Errorf("at %v: expired is %v", now, got)
		}
	}
	for now, want := range map[time.Time]bool{time.Unix(100, 0): false, time.Unix(99, 999999999): true, time.Unix(101, 0): false} {
		if got := TooFar(now, 100+604800); got != want {
			t.Errorf("at %v: too far is %v", now, got)
		}
	}
	if TooFar(time.Unix(0, 0), -1<<62) || !TooFar(time.Unix(0, 0), 1<<62) || !Expired(time.Unix(0, 0), -1<<62) {
		t.Error("the largest numbers are wrong")
	}
}

// vectorFile are the test vectors of the documentation.
const vectorFile = "../../../docs/signing.json"

type vector struct {
	Key       string `json:"key"`
	Kind      string `json:"kind"`
	Alias     string `json:"alias"`
	Scope     string `json:"scope"`
	Name      string `json:"name"`
	Rendition string `json:"rendition"`
	Expires   int64  `json:"expires"`
	Download  string `json:"download"`
	// Generation is that of the alias.
	Generation int64  `json:"generation"`
	Text       string `json:"text"`
	Signature  string `json:"signature"`
}

func (v vector) fields() Fields {
	return Fields{v.Kind, v.Alias, v.Scope, v.Name, v.Rendition, v.Expires, v.Download, v.Generation}
}

var write = flag.Bool("write-vectors", false, "write the test vectors again")

// TestVectors: the documented vectors are those of this code.
func TestVectors(t *testing.T) {
	t.Parallel()
	if *write {
		writeVectors(t)
	}
	b, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) != 50 {
		t.Errorf("there are %d vectors, want 50", len(vectors))
	}
	for i, v := range vectors {
		if text := string(v.fields().text()); text != v.Text {
			t.Errorf("%d: the text is %q, documented is %q", i, text, v.Text)
		}
		if signature := v.fields().Sign([]byte(v.Key)); signature != v.Signature {
			t.Errorf("%d: the signature is %s, documented is %s", i, signature, v.Signature)
		}
		if sum, err := base64.RawURLEncoding.Strict().DecodeString(v.Signature); err != nil || len(sum) != 32 {
			t.Errorf("%d: the signature is %d bytes: %v", i, len(sum), err)
		}
	}
}

func writeVectors(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(26, 1))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	keys := []string{
		"a signing key of thirty-two bytes", "klíč o více než dvaatřiceti bajtech", strings.Repeat("0123456789abcdef", 9), "3:{}\"\\$&+/=?# and other characters!",
	}
	vectors := make([]vector, 0, 50)
	for i := range 50 {
		v := vector{
			Key: keys[i%len(keys)], Kind: pick("image", "file"), Alias: pick("private", "a", "img-2_x"), Scope: Filename,
			Name:    pick("26-11/20/photo.jpg", "photo.jpg", "Příliš žluťoučký kůň.png", "a b+c%20d&e=f.jpg", "x/写真.png", "it's \"5:x\".pdf", "emoji 🎉.gif"),
			Expires: 1700000000 + r.Int64N(2e8), Generation: int64(r.IntN(3)),
		}
		if r.IntN(3) == 0 {
			v.Scope, v.Name = Folder, pick("/", "26-11", "26-11/20", "žluté/写真", "a b")
		}
		if v.Kind == "image" {
			v.Rendition = pick("", "", "thumb", "large-2")
		}
		v.Download = pick("", "", "", "photo.jpg", "Účet č. 5.pdf", "a b;\"c\".txt", "写真.png")
		switch i {
		case 0: // the example of the documentation
			v.Kind, v.Alias, v.Scope, v.Name, v.Rendition, v.Expires, v.Download, v.Generation = "image", "private", Filename, "26-11/20/photo.jpg", "", 1800000000, "", 0
		case 1:
			v.Expires, v.Generation = 1, 4294967296
		}
		v.Text, v.Signature = string(v.fields().text()), v.fields().Sign([]byte(v.Key))
		vectors = append(vectors, v)
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(vectors); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorFile, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
