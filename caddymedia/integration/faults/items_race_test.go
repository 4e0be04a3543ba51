package faults_test

import (
	"fmt"
	"image"
	"image/color"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestRaces moves, copies, replaces and deletes the same two items by several requests at the same
// time. The answers and the final items must be those of the same requests one after the other, in
// some order, except that a copy reads first and writes later. Of the requests with the entity tag
// of the old item, exactly one changes it. MEDIA_TEST_ROUNDS sets the number of rounds.
//
// On two nodes that is so where the backend compares. A folder does not. versitygw compares, but
// not in one step with the change, and fake-gcs-server ignores conditions of deletions. There, only
// whole items are guaranteed, and the deviations are counted.
//
// Images are raced like files. Afterwards each one has its own variant.
func TestRaces(t *testing.T) {
	t.Parallel()
	for _, driver := range []site.RemoteDriver{local, {Name: "s3", Start: site.StartS3}, {Name: "azblob", Start: site.StartAzblob}, {Name: "gcs", Start: site.StartGCS}} {
		for _, number := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s on %d", driver.Name, number), func(t *testing.T) {
				t.Parallel()
				nodes := newNodes(t, driver.Start(t), number)
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				// versitygw removes empty folders, and may then fail to store an object in one.
				nodes[0].put(t, "file", "stays.bin", "stays")
				nodes[0].put(t, "image", "stays.png", sample.EncodePNG(t, sample.Plain(9, 9, color.NRGBA{})))
				counted := map[string]int{}
				for i := range site.Number(t, "MEDIA_TEST_ROUNDS", 8) {
					r := &race{
						nodes: nodes, prefix: fmt.Sprintf("r%d-", i), random: rand.New(rand.NewPCG(seed, uint64(i))), tagged: i%2 == 0,
						exact: number == 1 || driver.Name == "azblob", counted: counted, kind: "file", path: "file", ext: ".bin",
					}
					if i%5 < 2 {
						r.kind, r.path, r.ext = "image", "img", ".png"
					}
					r.run(t)
				}
				t.Logf("counted: %v", counted)
			})
		}
	}
}

// race is one round, with the items a and b behind a prefix of its own. The second one may be
// missing at the beginning.
type race struct {
	nodes           []*node
	prefix          string
	random          *rand.Rand
	tagged          bool // all requests are for the old a, by its entity tag
	exact           bool // conditions are
	counted         map[string]int
	kind, path, ext string // of the items
	tags            map[string]string
	changes         []*change
}

func (r *race) run(t *testing.T) {
	t.Helper()
	a, b := "a"+r.ext, "b"+r.ext
	before := map[string]string{a: r.content(t)}
	if r.random.IntN(2) == 0 {
		before[b] = r.content(t)
	}
	r.tags = map[string]string{}
	for name, content := range before {
		r.nodes[0].put(t, r.kind, r.prefix+name, content)
		_, tag := r.nodes[len(r.nodes)-1].fetch(t, r.path+"/over/"+r.prefix+name)
		r.tags[tag] = content
	}
	for range 4 {
		r.changes = append(r.changes, r.any(t, before[a]))
	}
	var clients sync.WaitGroup
	start := make(chan struct{})
	for i, c := range r.changes {
		clients.Go(func() {
			<-start
			if err := c.send(t.Context(), r.nodes[i%len(r.nodes)]); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	clients.Wait()
	after := map[string]string{}
	for _, name := range []string{a, b} {
		if content, tag := r.nodes[0].fetch(t, r.path+"/over/"+r.prefix+name); tag != "" {
			after[name] = content
		}
		r.checkWhole(t, name, after[name])
	}
	winners := 0
	for _, c := range r.changes {
		if c.status == http.StatusOK {
			r.counted[c.kindOf()]++
			if c.copyTo == "" {
				winners++
			}
		}
		if c.status >= http.StatusInternalServerError {
			t.Errorf("%v", c)
		}
	}
	if r.tagged && winners != 1 && slices.ContainsFunc(r.changes, func(c *change) bool { return c.copyTo == "" }) {
		r.deviates(t, "%d requests have changed the old item: %v", winners, r.changes)
	}
	if !r.explains(before, after, r.steps()) {
		r.deviates(t, "no order of the requests explains %s: before %s, after %s, %v", r.prefix, brief(before), brief(after), r.changes)
	}
}

// deviates fails the test, or counts the deviation.
func (r *race) deviates(t *testing.T, format string, args ...any) {
	t.Helper()
	if r.exact {
		t.Errorf(format, args...)
	} else {
		r.counted[format]++
	}
}

// brief returns the sizes of contents, which tell them apart.
func brief(items map[string]string) string {
	sizes := make([]string, 0, len(items))
	for _, name := range slices.Sorted(maps.Keys(items)) {
		sizes = append(sizes, fmt.Sprintf("%s (%d bytes)", name, len(items[name])))
	}
	return strings.Join(sizes, ", ")
}

// checkWhole checks that an item is whole, and that an image has its own variant. A missing item is
// empty, and has none.
func (r *race) checkWhole(t *testing.T, name, content string) {
	t.Helper()
	if r.kind == "file" {
		if err := sample.Verify([]byte(content)); content != "" && err != nil {
			t.Errorf("%s%s is a mix: %v", r.prefix, name, err)
		}
		return
	}
	variant, _ := r.nodes[0].fetch(t, r.path+"/over/"+r.prefix+name+".webp")
	switch {
	case variant == "" && content != "":
		r.deviates(t, "%s%s has no variant: %v", r.prefix, name, r.changes)
	case variant != "" && content == "":
		r.deviates(t, "%s%s is missing and has a variant: %v", r.prefix, name, r.changes)
	case variant != "" && !near(sample.Decode(t, content), sample.DecodeWebP(t, variant)):
		t.Errorf("%s%s has the variant of another image: %v", r.prefix, name, r.changes)
	}
}

// near reports whether two plain images have about the same colour.
func near(a, b image.Image) bool {
	r, g, b1, _ := a.At(0, 0).RGBA()
	r2, g2, b2, _ := b.At(0, 0).RGBA()
	for _, d := range []int{int(r>>8) - int(r2>>8), int(g>>8) - int(g2>>8), int(b1>>8) - int(b2>>8)} {
		if max(d, -d) > 12 {
			return false
		}
	}
	return true
}

// content returns new content.
func (r *race) content(t *testing.T) string {
	t.Helper()
	if r.kind == "image" {
		c := func() uint8 { return uint8(r.random.IntN(8) * 36) }
		return sample.EncodePNG(t, sample.Plain(20+r.random.IntN(50), 20+r.random.IntN(50), color.NRGBA{c(), c(), c(), 255}))
	}
	return string(sample.Described(r.random.Uint64(), 200+r.random.IntN(30_000)))
}

// any returns a change, of a with the content old if the round is tagged.
func (r *race) any(t *testing.T, old string) *change {
	t.Helper()
	names := []string{"a" + r.ext, "b" + r.ext}
	if !r.tagged && r.random.IntN(3) == 0 {
		slices.Reverse(names)
	}
	c := &change{kind: r.kind, name: r.prefix + names[0]}
	if r.tagged {
		for tag, content := range r.tags {
			if content == old {
				c.match = tag
			}
		}
	}
	switch r.random.IntN(4) {
	case 0:
		c.method, c.to = http.MethodPost, r.prefix+names[1]
	case 1:
		c.method, c.copyTo = http.MethodPost, r.prefix+names[1]
	case 2:
		c.method = http.MethodDelete
	default:
		c.method, c.content = http.MethodPut, r.content(t)
		if c.match == "" {
			c.match = "*"
		}
	}
	return c
}

// step is a part of a change: all of it, or the reading, the writing or the removal of a transfer.
type step struct {
	*change
	part  string
	after *step // that comes earlier
	read  *string
}

// steps returns the steps of the changes. A node does not see the locks of another one, which may
// thus change the items between the steps of a transfer. A copy does not lock the item that it
// reads.
func (r *race) steps() []*step {
	var steps []*step
	for _, c := range r.changes {
		moves := c.status == http.StatusOK || strings.Contains(c.answer.Message, "is stored under its new name")
		if c.to+c.copyTo == "" || len(r.nodes) == 1 && c.copyTo == "" || !moves {
			steps = append(steps, &step{change: c})
			continue
		}
		read := &step{change: c, part: "read", read: new(string)}
		write := &step{change: c, part: "write", after: read, read: read.read}
		steps = append(steps, read, write)
		if c.to != "" && c.status == http.StatusOK {
			steps = append(steps, &step{change: c, part: "remove", after: write, read: read.read})
		}
	}
	return steps
}

// explains reports whether the steps lead from the items before to those after, one after the other
// in some order, with their answers.
func (r *race) explains(before, after map[string]string, steps []*step) bool {
	if len(steps) == 0 {
		return maps.Equal(before, after)
	}
	for i, s := range steps {
		if s.after != nil && slices.Contains(steps, s.after) {
			continue
		}
		rest := slices.Concat(steps[:i], steps[i+1:])
		if next, ok := r.apply(before, s); ok && r.explains(next, after, rest) {
			return true
		}
	}
	return false
}

// apply returns the items after a step, and whether its change would have its answer.
func (r *race) apply(before map[string]string, s *step) (after map[string]string, ok bool) {
	c := s.change
	name, to := strings.TrimPrefix(c.name, r.prefix), strings.TrimPrefix(c.to+c.copyTo, r.prefix)
	content, exists := before[name]
	matches := exists && (c.match == "" || c.match == "*" || r.tags[c.match] == content)
	after = maps.Clone(before)
	switch s.part {
	case "read":
		*s.read = content
		return before, matches
	case "write":
		after[to] = *s.read
		return after, true
	case "remove":
		delete(after, name)
		return after, exists && content == *s.read
	}
	stored := strings.Contains(c.answer.Message, "is stored under its new name")
	switch {
	case c.status == http.StatusNotFound:
		return before, !exists
	case c.status == http.StatusPreconditionFailed:
		return before, exists && !matches
	case c.status == http.StatusConflict && !stored:
		return before, true
	case c.status != http.StatusOK && !stored || !matches:
		return before, false
	}
	switch c.method {
	case http.MethodPut:
		after[name] = c.content
	case http.MethodDelete:
		delete(after, name)
	default:
		after[to] = content
		if c.to != "" && !stored {
			delete(after, name)
		}
	}
	return after, true
}
