//go:build unix

package local

import (
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// recovered opens the folder like the next start, and reports whether it has one of the states. A
// growing object may have more than is known, and an empty one is as good as none.
func (d *testDisk) recovered(driver *Driver) (got map[string]string, ok bool) {
	test.Must(d.t, errors.Join(driver.Check(d.t.Context()), driver.Close()))
	got = files(d.t, d.root)
	if got["growing"] == "" {
		delete(got, "growing")
	}
	return got, slices.ContainsFunc(d.states, func(want map[string]string) bool {
		if end := want["growing"]; strings.HasPrefix(got["growing"], end) {
			want = maps.Clone(want)
			if want["growing"] = got["growing"]; want["growing"] == "" {
				delete(want, "growing")
			}
		}
		return maps.Equal(got, want)
	})
}

// work runs all kinds of requests.
func (d *testDisk) work(driver *Driver) {
	t, ctx := d.t, d.t.Context()
	s := storagedrivers.New("test", driver, storagedrivers.Options{})
	d.states = []map[string]string{{}}
	d.record(everything)
	store := func(key, content string) {
		d.request(map[string]string{key: content}, func() { test.Must(t, put(t, s, key, content, storagedrivers.Overwrite)) })
	}
	remove := func(key string) {
		d.request(map[string]string{key: ""}, func() { test.Must(t, s.Delete(ctx, key)) })
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		store(key, before[key])
	}
	for _, content := range []string{"1", "2", "3"} {
		store("a/b/c", content)
	}
	remove("a/b/c")
	for _, again := range []bool{false, true} {
		commitSeveral(t, driver, func(key, content string) {
			store(key, content)
			if again {
				d.states = append(d.states, after)
			}
		}, again)
		d.answered(d.states[len(d.states)-1])
		if !again {
			remove("g/created")
		}
	}
	d.changeTwo(driver)
	w, err := driver.Append(ctx, "growing", 0)
	test.Must(t, err)
	_, err = w.Write([]byte("known"))
	test.Must(t, err)
	d.request(map[string]string{"growing": "known"}, func() { test.Must(t, w.Flush(ctx)) })
	_, err = w.Write([]byte(" and not"))
	test.Must(t, errors.Join(err, w.Close()))
	d.request(map[string]string{"f/grown": "known and not"}, func() {
		w, err := driver.Append(ctx, "growing", 13)
		test.Must(t, err)
		st, err := w.Adopt(ctx)
		test.Must(t, err)
		test.Must(t, errors.Join(commitOne(ctx, driver, st, "f/grown", storagedrivers.PutOptions{}), st.Close()))
	})
	test.Must(t, s.Close())
}

// changeTwo replaces two objects by one commit, removes both by another, and creates them by a
// third.
func (d *testDisk) changeTwo(driver *Driver) {
	t, ctx := d.t, d.t.Context()
	for _, content := range []string{"newer", "", "newest"} {
		changes := []storagedrivers.Change{{Key: "f/created", Options: overwrite}, {Key: "f/new", Options: overwrite}}
		for i := range changes {
			if content == "" {
				continue
			}
			st, err := driver.Stage(ctx)
			test.Must(t, err)
			defer st.Close()
			_, err = st.Write([]byte(content))
			test.Must(t, err)
			changes[i].Staged = st
		}
		d.request(map[string]string{"f/created": content, "f/new": content}, func() {
			_, err := driver.Commit(ctx, changes)
			test.Must(t, err)
		})
	}
}

// cuts yields power failures after every moment from the second on: with nothing that was not
// synced, with all of it, and with some.
func (d *testDisk) cuts(rnd *rand.Rand, some int) iter.Seq2[int, cut] {
	return func(yield func(int, cut) bool) {
		for end := 2; end <= len(d.moments); end++ {
			for i := range 2 + some {
				kept := []func(int) int{func(int) int { return 0 }, func(n int) int { return n - 1 }, rnd.IntN}[min(i, 2)]
				if !yield(end, cut{d.moments[:end], kept}) {
					return
				}
			}
		}
	}
}

// TestPowerFailure: after a power failure at any moment, each answered request has happened, and
// each other one as a whole or not at all. The same is true after a second failure during the
// recovery. Without syncs the test finds losses.
func TestPowerFailure(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Driver){
		"unnamed": func(*Driver) {},
		"named":   func(d *Driver) { d.named = true },
		"no sync": func(d *Driver) { d.sync = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seed = 1
			rnd := rand.New(rand.NewPCG(seed, 0))
			first := newDisk(t)
			defer first.remove()
			driver := first.driver(Config{})
			set(driver)
			synced := driver.sync
			first.work(driver)
			lost := 0
			check := func(d *testDisk, driver *Driver, message string, args ...any) {
				set(driver)
				got, ok := d.recovered(driver)
				if ok {
					return
				}
				lost++
				if synced {
					t.Errorf(message+": %v, want one of %v", append(args, got, d.states)...)
				}
			}
			for at, one := range first.cuts(rnd, 2) {
				d, twice := one.restored(t), rnd.IntN(32) == 0
				d.record(everything)
				check(d, d.driver(Config{Sync: new(twice)}), "after moment %d", at)
				if twice {
					for again, one := range d.cuts(rnd, 1) {
						d := one.restored(t)
						check(d, d.driver(Config{Sync: new(false)}), "after moments %d and %d", at, again)
						d.remove()
					}
				}
				d.remove()
			}
			t.Logf("%d moments, %d losses", len(first.moments), lost)
			if !synced && lost == 0 {
				t.Error("no loss was noticed")
			}
		})
	}
}
