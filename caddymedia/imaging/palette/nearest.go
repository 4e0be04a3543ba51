package palette

import (
	"cmp"
	"slices"
)

// finder finds the nearest of some colours.
type finder struct {
	entries []entry  // by their green, in which colours differ most visibly
	above   [256]int // the first entry with at least that green
}

type entry struct {
	r, g, b int
	index   int
}

func newFinder(colors []rgb) *finder {
	f := &finder{}
	for i, c := range colors {
		f.entries = append(f.entries, entry{int(c[0]), int(c[1]), int(c[2]), i})
	}
	slices.SortStableFunc(f.entries, func(a, b entry) int { return cmp.Compare(a.g, b.g) })
	i := 0
	for g := range f.above {
		for i < len(f.entries) && f.entries[i].g < g {
			i++
		}
		f.above[g] = i
	}
	return f
}

// nearest returns the index of the colour with the least squared distance. The samples must be 0 to
// 255, and there must be a colour.
func (f *finder) nearest(r, g, b int) int {
	best, least := 0, 1<<30
	middle := f.above[g]
	for i := middle; i < len(f.entries); i++ {
		e := &f.entries[i]
		d := (e.g - g) * (e.g - g)
		if d >= least {
			break
		}
		if d += (e.r-r)*(e.r-r) + (e.b-b)*(e.b-b); d < least {
			best, least = e.index, d
		}
	}
	for i := middle - 1; i >= 0; i-- {
		e := &f.entries[i]
		d := (e.g - g) * (e.g - g)
		if d >= least {
			break
		}
		if d += (e.r-r)*(e.r-r) + (e.b-b)*(e.b-b); d < least {
			best, least = e.index, d
		}
	}
	return best
}
