package faults_test

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// local is a folder of this host, which several Caddys may share.
var local = site.RemoteDriver{Name: "local", Start: func(testing.TB) site.Backend {
	return site.Backend{Driver: func(_, folder, _ string) string { return "driver local $ROOT/" + folder }}
}}

// mayAll is the account of the tests, with all rights for items.
var mayAll = strings.TrimSuffix(site.Account, "\n") + " {\n\tmay upload list delete replace move copy\n}\n"

// node is a Caddy, and a client of it.
type node struct {
	*site.Child
	media  string
	client *site.Client
	token  string
}

// newNodes starts Caddys on one backend.
func newNodes(t *testing.T, p site.Backend, number int) []*node {
	t.Helper()
	nodes := make([]*node, number)
	for i := range nodes {
		n := &node{Child: site.NewChild(t), media: strings.Replace(p.Media(p.Address, ""), site.Account, mayAll, 1)}
		n.client = n.HTTP1()
		if nodes[i] = n; i > 0 {
			n.Root = nodes[0].Root
		}
		n.start(t)
	}
	return nodes
}

func (n *node) start(t *testing.T) {
	t.Helper()
	n.Start(n.media)
	n.token = n.client.MustLogin(t)
}

// change is a request that changes items.
type change struct {
	method, kind, name string
	to, copyTo         string // of a POST
	content            string // of a PUT
	match              string // If-Match
	upload             bool   // a PUT to the endpoint for uploads
	names              []string

	// The answer. The status is 0 if there is none.
	status int
	answer site.Answer
}

// send sends the request through a node.
func (c *change) send(ctx context.Context, n *node) error {
	body, form := c.content, url.Values{}
	for name, value := range map[string]string{"to": c.to, "copy_to": c.copyTo} {
		if value != "" {
			form.Set(name, value)
		}
	}
	if c.names != nil {
		form = url.Values{"action": {"delete"}, "filename": c.names}
	}
	if c.method == http.MethodPost {
		body = form.Encode()
	}
	address := n.client.Base + "/api/items/" + c.kind + "/over"
	if c.upload {
		address = n.client.Base + "/api/upload/" + c.kind + "/over"
	}
	if c.name != "" {
		address += "/" + c.name
	}
	r, err := http.NewRequestWithContext(ctx, c.method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+n.token)
	if c.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if c.match != "" {
		r.Header.Set("If-Match", c.match)
	}
	answer, err := n.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	c.answer, err = site.ParseAnswer(answer)
	if c.status = c.answer.Status; err != nil {
		c.status = 0
	} else if c.upload && c.status == http.StatusCreated {
		c.status = http.StatusOK
	}
	return err
}

// String returns the request and its answer.
func (c *change) String() string {
	text := c.method + " " + c.name
	for before, value := range map[string]string{" to ": c.to, " copied to ": c.copyTo, " if ": c.match} {
		if value != "" {
			text += before + value
		}
	}
	return text + ": " + c.answer.String()
}

func (c *change) kindOf() string {
	switch {
	case c.to != "":
		return "move"
	case c.copyTo != "":
		return "copy"
	}
	return c.method
}

// fetch returns an item, or a variant, and its entity tag. A missing one has neither.
func (n *node) fetch(t *testing.T, path string) (content, tag string) {
	t.Helper()
	r, err := site.Retry(func() (*http.Response, error) {
		r, err := n.client.Get(n.client.Base + "/static/" + path)
		if err != nil {
			err = site.UnansweredError{Err: err}
		}
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		t.Fatal(err)
	case r.StatusCode == http.StatusNotFound:
		return "", ""
	case r.StatusCode != http.StatusOK:
		t.Fatalf("%s: status %d %s", path, r.StatusCode, body)
	}
	return string(body), r.Header.Get("ETag")
}

// put stores an item.
func (n *node) put(t *testing.T, kind, name, content string) {
	t.Helper()
	if kind == "file" {
		n.client.MustPut(t, n.token, "over", name, []byte(content))
	} else if r := n.client.UploadImage(t, n.token, "over", name, content); r.Status != http.StatusOK {
		t.Fatal(r)
	}
}

// TestKillDuringChanges kills a Caddy at random moments while it moves, copies, replaces and
// deletes items, and starts it again with other sizes of renditions. Each item is whole, under the
// old name, the new one or both, with its own variant and renditions. A repetition of the requests
// completes them, and no variant or rendition is left of a missing item. MEDIA_TEST_ROUNDS sets the
// number of rounds.
func TestKillDuringChanges(t *testing.T) {
	t.Parallel()
	for _, driver := range []site.RemoteDriver{local, {Name: "s3", Start: site.StartS3}} {
		t.Run(driver.Name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			p := driver.Start(t)
			k := &killing{
				node: newNodes(t, p, 1)[0], random: rand.New(rand.NewPCG(seed, 0)), made: map[string][3]string{}, seen: map[string]int{},
			}
			k.images(t)
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
	red, blue string               // images
	made      map[string][3]string // the variant and the renditions soon and later, by image
	took      time.Duration        // by the requests of a round, about
	seen      map[string]int       // the outcomes
}

// images uploads the images, and records what is made of them.
func (k *killing) images(t *testing.T) {
	t.Helper()
	image := func(name string, c color.NRGBA) string {
		content := sample.EncodePNG(t, sample.Plain(60, 40, c))
		k.put(t, "image", name, content)
		k.made[content] = k.derived(t, name)
		for _, one := range k.made[content] {
			if one == "" {
				t.Fatal("the image has no variant, or not all renditions")
			}
		}
		return content
	}
	k.red, k.blue = image("red.png", color.NRGBA{200, 0, 0, 255}), image("blue.png", color.NRGBA{0, 0, 200, 255})
}

// derived returns the variant and the renditions of an image. Missing ones are empty.
func (k *killing) derived(t *testing.T, name string) (made [3]string) {
	t.Helper()
	for i, path := range []string{"img/over/" + name + ".webp", "img/over@soon/" + name, "img/over@later/" + name} {
		made[i], _ = k.fetch(t, path)
	}
	return made
}

// restart starts the Caddy again with other sizes of renditions.
func (k *killing) restart(t *testing.T) {
	t.Helper()
	width := 21 + k.random.IntN(10)
	k.media = regexp.MustCompile(`soon \d+x`).ReplaceAllString(k.media, fmt.Sprintf("soon %dx", width))
	k.media = regexp.MustCompile(`width \d+`).ReplaceAllString(k.media, fmt.Sprintf("width %d", width))
	k.start(t)
	k.images(t)
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
		k.restart(t)
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
			if c.upload { // below a folder, because one without is for the folder of the day
				c.name = "in/" + c.name
				first := change{method: c.method, kind: kind, name: c.name, content: v.old, upload: true}
				if err := first.send(t.Context(), k.node); err != nil || first.status != http.StatusOK {
					t.Fatal(first, err)
				}
			} else {
				k.put(t, kind, c.name, v.old)
			}
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
		add("uploaded", change{method: http.MethodPut, upload: true, content: replacement})
		set := &change{method: http.MethodPost, kind: kind}
		for i := range 3 {
			set.names = append(set.names, name(fmt.Sprint("set", i)))
			k.put(t, kind, set.names[i], content())
		}
		sets = append(sets, set)
	}
	return victims, sets
}

// item returns an item, which is whole. Its variant is that of the item, and missing with it. So
// are its renditions. Unless it may be incomplete, it has a variant.
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
	got, want := k.derived(t, name), k.made[content]
	if got[0] == "" && mayBeIncomplete {
		want[0] = ""
	}
	if got != want {
		t.Errorf("%s (red: %v, blue: %v) has a variant and renditions of %d, %d and %d bytes, which are not its own",
			name, content == k.red, content == k.blue, len(got[0]), len(got[1]), len(got[2]))
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
		_, filename, _ := strings.Cut(path.Dir(name), "/")
		image := folder + "/img/over/" + filename
		if name == "" {
			image = strings.TrimSuffix(key, ".webp")
		}
		if !keys[image] || strings.Contains(key, "/.") {
			t.Errorf("%s is left", key)
		}
	}
}
