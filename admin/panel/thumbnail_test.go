package panel

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
)

func TestSuitable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		boxes []scale.Box
		want  int // -1 for none
	}{
		{nil, -1},
		{[]scale.Box{{Width: 159, Height: 900}, {Width: 159}, {Height: 159}}, -1},
		{[]scale.Box{{Width: 160, Height: 160}}, 0},
		{[]scale.Box{{Width: 1600}, {Width: 320, Height: 240}, {Width: 320, Height: 320}}, 1},
		{[]scale.Box{{Width: 300, Height: 300}, {Height: 200}, {Width: 100, Height: 100}}, 1},
		{[]scale.Box{{Width: 200, Height: 300}, {Width: 300, Height: 200, Cover: true}}, 0},
	} {
		renditions := make([]aliases.Rendition, len(c.boxes))
		for i, box := range c.boxes {
			renditions[i].Box = box
		}
		got := suitable(renditions)
		if c.want < 0 && got != nil || c.want >= 0 && got != &renditions[c.want] {
			t.Errorf("%v: got %+v, want number %d", c.boxes, got, c.want)
		}
	}
}
