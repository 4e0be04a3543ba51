package faults_test

import (
	"fmt"
	"image/color"
	"maps"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestKillDuringChanges kills a Caddy at random moments while it moves, copies, replaces and deletes items. Each item
// is whole, under the old name, the new one or both. A repetition of the requests completes them, and
// no variant or rendition is left of a missing item. MEDIA_TEST_ROUNDS sets the number of rounds.
func TestKillDuringChanges(t *testing.T) {
	t.Parallel()
	for _, driver := range []site.RemoteDriver{local, {Name: "s3", Start: site.StartS3}} {
		t.Run(driver.Name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			p := driver.Start(t)
			k := &killing{
				node: newNodes(t, p, 1)[0], random: rand.New(rand.NewPCG(seed, 0)), variants: map[string]string{}, small: map[string]string{},
				seen: map[string]int{},
			}
			k.red, k.blue = k.image(t, "red.png", color.NRGBA{200, 0, 0, 255}), k.image(t, "blue.png", color.NRGBA{0, 0, 200, 255})
			for i := range site.Number(t, "MEDIA_TEST_ROUNDS", 3) {
				k.run(t, fmt.Sprintf("k%d-", i), i > 0) // the first round only measures
				if t.Failed() {
					t.Fatalf("after round %d", i)
				}
			}
			k.wantNoOrphans(t, p)
			t.Logf("after a kill: %v", k.seen)
		})
	}
}

// killing is a trial with one Caddy.
type killing struct {
	*node
	random    *rand.Rand
	red, blue string // images
	// variants and small are the variants and the renditions called soon, by image.
	variants, small map[string]string
	took            time.Duration  // by the requests of a round, about
	seen            map[string]int // the outcomes
}

// image uploads an image and records what is made of it.
func (k *killing) image(t *testing.T, name string, c color.NRGBA) string {
	t.Helper()
	content := sample.EncodePNG(t, sample.Plain(60, 40, c))
	if r := k.client.UploadImage(t, k.token, "over", name, content); r.Status != http.StatusOK {
		t.Fatal(r)
	}
	k.variants[content], _ = k.fetch(t, "img/over/"+name+".webp")
	k.small[content], _ = k.fetch(t, "img/over@soon/"+name)
	if k.variants[content] == "" || k.small[content] == "" {
		t.Fatal("the image has no variant or no rendition")
	}
	return content
}

// victim is an item of a round, with the request that may be cut short.
type victim struct {
	*change
	old    string // the content before
	beside string // the content of an item that a move or a copy replaces
}

// run sends the requests of a round, kills the Caddy meanwhile, and checks the items.
func (k *killing) run(t *testing.T, prefix string, kills bool) {
	t.Helper()
	victims, sets := k.prepare(t, prefix)
	changes := sets
	for _, v := range victims {
		changes = append(changes, v.change)
	}
	begin := time.Now()
	var clients sync.WaitGroup
	var last atomic.Int64 // when the last request was answered
	for _, c := range changes {
		clients.Go(func() {
			if err := c.send(t.Context(), k.node); err != nil {
				c.status = 0 // there may be half an answer
				return
			}
			last.Store(int64(time.Since(begin)))
		})
	}
	if kills {
		time.Sleep(time.Duration(k.random.Int64N(int64(k.took)))) // the random moment
		k.Kill()
	}
	clients.Wait()
	if kills {
		k.start(t)
	}
	if slices.ContainsFunc(changes, func(c *change) bool { return c.status == 0 }) {
		k.took += k.took / 10
	} else {
		k.took = time.Duration(last.Load())
	}
	for _, c := range changes {
		if c.status != 0 && c.status != http.StatusOK {
			t.Errorf("%v", c)
		}
	}
	for _, v := range victims {
		k.check(t, v)
	}
	for _, c := range sets {
		k.checkSet(t, c)
	}
}

// prepare stores the items of a round and returns the requests.
func (k *killing) prepare(t *testing.T, prefix string) (victims []victim, sets []*change) {
	t.Helper()
	file := func() string {
		size := 100 + k.random.IntN(50_000)
		if k.random.IntN(8) == 0 {
			size += 9 << 20 // several parts
		}
		return string(sample.Described(k.random.Uint64(), size))
	}
	for _, kind := range []string{"file", "image"} {
		ext, content := ".bin", file
		if kind == "image" {
			ext, content = ".png", func() string { return k.red }
		}
		name := func(base string) string { return prefix + base + ext }
		add := func(base string, c change) {
			c.kind, c.name = kind, name(base)
			v := victim{change: &c, old: content()}
			k.put(t, kind, c.name, v.old)
			if base == "onto" {
				v.beside = k.blue
				if kind == "file" {
					v.beside = file()
				}
				k.put(t, kind, c.to, v.beside)
			}
			victims = append(victims, v)
		}
		replacement := k.blue
		if kind == "file" {
			replacement = file()
		}
		add("moved", change{method: http.MethodPost, to: name("new")})
		add("onto", change{method: http.MethodPost, to: name("other")})
		add("copied", change{method: http.MethodPost, copyTo: name("copy")})
		add("replaced", change{method: http.MethodPut, content: replacement, match: "*"})
		set := &change{method: http.MethodPost, kind: kind}
		for i := range 3 {
			set.names = append(set.names, name(fmt.Sprint("set", i)))
			k.put(t, kind, set.names[i], content())
		}
		sets = append(sets, set)
	}
	return victims, sets
}

// item returns an item, which is whole. Its variant is that of the item, and missing with it. Unless
// it may be incomplete, it has a variant and a rendition.
func (k *killing) item(t *testing.T, kind, name string, mayBeIncomplete bool) string {
	t.Helper()
	if kind == "file" {
		content, _ := k.fetch(t, "file/over/"+name)
		if content != "" && sample.Verify([]byte(content)) != nil {
			t.Errorf("%s is not whole", name)
		}
		return content
	}
	content, _ := k.fetch(t, "img/over/"+name)
	if variant, _ := k.fetch(t, "img/over/"+name+".webp"); variant != k.variants[content] && (variant != "" || !mayBeIncomplete) {
		t.Errorf("%s (red: %v, blue: %v) has a variant of %d bytes", name, content == k.red, content == k.blue, len(variant))
	}
	if small, _ := k.fetch(t, "img/over@soon/"+name); small != k.small[content] {
		t.Errorf("%s (red: %v, blue: %v) has a rendition of %d bytes", name, content == k.red, content == k.blue, len(small))
	}
	return content
}

// check checks the item of a request that may be cut short, and repeats the request.
func (k *killing) check(t *testing.T, v victim) {
	t.Helper()
	to := v.to + v.copyTo
	state := func(mayBeIncomplete bool) (from, target string) {
		if from = k.item(t, v.kind, v.name, mayBeIncomplete); to != "" {
			target = k.item(t, v.kind, to, mayBeIncomplete)
		}
		return from, target
	}
	mayBeIncomplete := v.status == 0
	from, target := state(mayBeIncomplete)
	var outcome string
	switch {
	case v.method == http.MethodPut && from == v.content:
		outcome = "new"
	case v.method == http.MethodPut && from == v.old && v.status == 0, from == v.old && target == v.beside && v.status == 0:
		outcome = "old"
	case from == v.old && target == v.old && v.status == 0, v.copyTo != "" && from == v.old && target == v.old:
		outcome = "both"
	case v.to != "" && from == "" && target == v.old:
		outcome = "new"
	default:
		t.Errorf("%v: afterwards the old name has %d bytes (%v), and the new one %d (%v)",
			v.change, len(from), from == v.old, len(target), target == v.old)
		return
	}
	k.seen[v.kindOf()+" "+outcome]++
	if v.status == http.StatusOK {
		k.seen[v.kindOf()+" answered"]++
		return
	}
	again := *v.change
	if err := again.send(t.Context(), k.node); err != nil || again.status != http.StatusOK && (again.status != http.StatusNotFound || outcome != "new") {
		t.Errorf("again: %v %v", &again, err)
	}
	from, target = state(false)
	switch {
	case v.method == http.MethodPut && from == v.content, v.copyTo != "" && from == v.old && target == v.old, v.to != "" && from == "" && target == v.old:
	default:
		t.Errorf("after a repetition of %v (%s), the old name has %d bytes, and the new one %d", v.change, outcome, len(from), len(target))
	}
}

// checkSet checks the items of a set that may be cut short, and repeats its deletion.
func (k *killing) checkSet(t *testing.T, c *change) {
	t.Helper()
	left := 0
	for _, name := range c.names {
		if k.item(t, c.kind, name, c.status == 0) != "" {
			left++
		}
	}
	k.seen[fmt.Sprintf("%d of a set left", left)]++
	if c.status == http.StatusOK && left > 0 {
		t.Errorf("%v: %d items are left", c, left)
	}
	again := *c
	if err := again.send(t.Context(), k.node); err != nil || again.status != http.StatusOK {
		t.Errorf("again: %v %v", &again, err)
	}
	for _, name := range c.names {
		if k.item(t, c.kind, name, false) != "" {
			t.Errorf("%s is left after a repetition", name)
		}
	}
}

// wantNoOrphans checks that each variant and rendition in the backend belongs to an image, and that
// there are no leftovers.
func (k *killing) wantNoOrphans(t *testing.T, p site.Backend) {
	t.Helper()
	keys := map[string]bool{}
	if p.Keys == nil {
		for _, name := range site.FilesBelow(t, k.Root) {
			keys[name] = true
		}
	} else {
		for _, key := range p.Keys(t) {
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		t.Error("the backend is empty")
	}
	for key := range maps.Keys(keys) {
		folder, name, _ := strings.Cut(key, "/img/over@renditions/")
		image := folder + "/img/over/" + path.Base(path.Dir(name))
		if name == "" {
			image = strings.TrimSuffix(key, ".webp")
		}
		if !keys[image] || strings.Contains(key, "/.") {
			t.Errorf("%s is left", key)
		}
	}
}
